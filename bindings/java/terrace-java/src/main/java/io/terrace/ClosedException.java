package io.terrace;

/**
 * A database, an iterator, a snapshot, a transaction or a load was used after it was closed.
 */
public final class ClosedException extends TerraceException {
    private static final long serialVersionUID = 1;

    ClosedException(String message) {
        super(Kind.CLOSED, message);
    }
}
