package io.terrace;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/**
 * A bound for the native memory of several databases together: memtables, indexes and filters of
 * open tables, and cached blocks. Writers are slowed down and wait before it is exceeded, and
 * caches shrink; reads never wait. A useful one has at least 256 KiB for each database.
 *
 * <p>Not counted are about 100 KiB of bookkeeping of each database, mapped files, and what
 * iterators and batches of the program hold. Any thread may use it.
 */
public final class MemoryBudget implements AutoCloseable {
    private final long number;
    private final long bytes;
    private final Cleaner.Cleanable cleanable;

    /**
     * Makes a budget.
     *
     * @param bytes the bound
     * @throws TerraceException if it is negative
     */
    public MemoryBudget(long bytes) {
        this.bytes = bytes;
        number = Native.memoryBudget(bytes);
        long closed = number;
        cleanable = Cleaning.register(this, () -> Native.closeMemoryBudget(closed));
    }

    long number() {
        return number;
    }

    /**
     * Returns the bound.
     *
     * @return bytes
     */
    public long bytes() {
        return bytes;
    }

    /**
     * Returns how much of it is in use.
     *
     * @return bytes
     * @throws ClosedException if the budget is closed
     */
    public long used() {
        long used = Native.memoryBudgetUsed(number);
        Reference.reachabilityFence(this);
        return used;
    }

    /** Lets no more databases in. Those that share it keep it alive. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
