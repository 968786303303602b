package io.terrace;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * A load of many entries, past the log and the memtable. They become visible together by {@link
 * #finish}; of several values of one key the last one counts. Ascending keys are fastest.
 *
 * <p>Of one thread at a time. Closing it before {@link #finish} gives it up.
 */
public final class BulkLoad implements AutoCloseable {
    private static final int CHUNK = 256 << 10;

    /** Keeps the database reachable: the cleaner would close it under the load. */
    private final TerraceDb db;
    private final long number;
    private final Cleaner.Cleanable cleanable;
    private final Packer packer = new Packer(CHUNK);

    BulkLoad(TerraceDb db, long number) {
        this.db = db;
        this.number = number;
        cleanable = Cleaning.register(this, () -> Native.closeBulkLoad(number));
    }

    /**
     * Adds an entry.
     *
     * @param key the key
     * @param value its value
     */
    public void put(byte[] key, byte[] value) {
        Objects.requireNonNull(value, "value");
        int before = packer.length();
        packer.add(key);
        try {
            packer.add(value);
        } catch (Throwable e) {
            packer.truncate(before);
            throw e;
        }
        if (packer.length() >= CHUNK) {
            send();
        }
    }

    private void send() {
        Native.bulkLoadPut(number, packer.bytes(), packer.length());
        Reference.reachabilityFence(this);
        packer.clear();
    }

    /**
     * Makes all entries visible, and durable.
     *
     * @return how many there are, each key counted once
     */
    public long finish() {
        send();
        long entries = Native.finishBulkLoad(number);
        Reference.reachabilityFence(this);
        return entries;
    }

    @Override
    public void close() {
        cleanable.clean();
    }
}
