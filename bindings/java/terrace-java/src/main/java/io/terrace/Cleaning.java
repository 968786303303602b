package io.terrace;

import java.lang.ref.Cleaner;

/** Closes what was not closed and is not reachable any more. */
final class Cleaning {
    private static final Cleaner CLEANER = Cleaner.create();

    private Cleaning() {}

    /** Registers an action, which must not refer to the object and runs at most once. */
    static Cleaner.Cleanable register(Object object, Runnable action) {
        return CLEANER.register(object, action);
    }
}
