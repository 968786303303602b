package io.terrace;

/**
 * Others have written a key that a transaction writes or has read for update. The transaction
 * changed nothing; run it again.
 */
public final class ConflictException extends TerraceException {
    private static final long serialVersionUID = 1;

    ConflictException(String message) {
        super(Kind.CONFLICT, message);
    }
}
