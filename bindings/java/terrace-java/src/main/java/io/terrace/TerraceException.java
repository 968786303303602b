package io.terrace;

import org.iq80.leveldb.DBException;

/** An error of the database. Its message names the file and, where known, the offset. */
public class TerraceException extends DBException {
    private static final long serialVersionUID = 1;

    /** What went wrong, coarsely: enough to decide what to do next. */
    public enum Kind {
        /** Something that was asked for by name does not exist. */
        NOT_FOUND,
        /** Bytes on disk are not what they must be: {@link CorruptionException}. */
        CORRUPTION,
        /** This database or file system cannot do it, a write to a read-only one for example. */
        NOT_SUPPORTED,
        /** An argument or option is out of range. Nothing was changed. */
        INVALID_ARGUMENT,
        /**
         * The operating system refused an operation, or a comparator threw: the cause is then what
         * it threw first.
         */
        IO,
        /** Somebody else holds what is needed, for example the database's lock. */
        BUSY,
        /** Others wrote a key that a transaction relies on: {@link ConflictException}. */
        CONFLICT,
        /** What was used is closed: {@link ClosedException}. */
        CLOSED,
        /** Anything else. */
        OTHER;

        private static final Kind[] KINDS = values();

        static Kind of(int number) {
            return number >= 0 && number < KINDS.length ? KINDS[number] : OTHER;
        }
    }

    /** The coarse kind. */
    private final Kind kind;

    TerraceException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    static TerraceException of(Kind kind, String message) {
        return switch (kind) {
            case CORRUPTION -> new CorruptionException(message);
            case CONFLICT -> new ConflictException(message);
            case CLOSED -> new ClosedException(message);
            default -> new TerraceException(kind, message);
        };
    }

    /**
     * Returns what went wrong, coarsely.
     *
     * @return the kind
     */
    public Kind kind() {
        return kind;
    }
}
