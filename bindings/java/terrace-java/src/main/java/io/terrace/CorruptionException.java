package io.terrace;

/**
 * Bytes on disk are not what they must be. The message names the file and the offset.
 */
public final class CorruptionException extends TerraceException {
    private static final long serialVersionUID = 1;

    CorruptionException(String message) {
        super(Kind.CORRUPTION, message);
    }
}
