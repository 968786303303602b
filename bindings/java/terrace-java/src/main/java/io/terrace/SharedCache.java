package io.terrace;

import java.lang.ref.Cleaner;

/**
 * A cache of blocks that several databases share, so that their memory has one limit. Any thread
 * may use it.
 */
public final class SharedCache implements AutoCloseable {
    private final long number;
    private final long bytes;
    private final Cleaner.Cleanable cleanable;

    /**
     * Makes a cache.
     *
     * @param bytes its capacity
     * @throws TerraceException if it is negative
     */
    public SharedCache(long bytes) {
        this.bytes = bytes;
        number = Native.cache(bytes);
        long closed = number;
        cleanable = Cleaning.register(this, () -> Native.closeCache(closed));
    }

    long number() {
        return number;
    }

    /**
     * Returns its capacity.
     *
     * @return bytes
     */
    public long bytes() {
        return bytes;
    }

    /** Lets no more databases in. Those that share it keep it alive. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
