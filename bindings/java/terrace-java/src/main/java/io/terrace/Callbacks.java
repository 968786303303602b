package io.terrace;

import java.util.Objects;
import org.iq80.leveldb.DBComparator;
import org.iq80.leveldb.Logger;

/** What native code calls. */
final class Callbacks {
    private Callbacks() {}

    static Throwable exception(int kind, String message, Throwable cause) {
        Throwable exception = TerraceException.of(TerraceException.Kind.of(kind), message);
        return cause == null ? exception : exception.initCause(cause);
    }

    static int compare(Object comparator, byte[] left, byte[] right) {
        return ((DBComparator) comparator).compare(left, right);
    }

    static byte[] separator(Object comparator, byte[] start, byte[] limit) {
        return ((DBComparator) comparator).findShortestSeparator(start, limit);
    }

    static byte[] successor(Object comparator, byte[] key) {
        return ((DBComparator) comparator).findShortSuccessor(key);
    }

    static void log(Object logger, String message) {
        ((Logger) logger).log(Objects.requireNonNull(message));
    }
}
