package io.terrace;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.AbstractMap;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;

/**
 * Reads and writes that belong together. It sees the database as it was when it began, with its own
 * writes on top; others see its writes when it is committed.
 *
 * <p>{@link #commit} fails with {@link ConflictException}, and nothing has happened, if others have
 * written a key that the transaction writes or has read with {@link #getForUpdate}.
 *
 * <p>Of one thread at a time. Closing it without a commit is a rollback.
 */
public final class TerraceTransaction implements AutoCloseable {
    private static final int RANGE_BYTES = 64 << 10;

    /** Keeps the database reachable: the cleaner would close it under the transaction. */
    private final TerraceDb db;
    private final long number;
    private final Cleaner.Cleanable cleanable;

    TerraceTransaction(TerraceDb db, long number) {
        this.db = db;
        this.number = number;
        cleanable = Cleaning.register(this, () -> Native.closeTransaction(number));
    }

    /**
     * Returns the value of a key.
     *
     * @param key the key
     * @return its value; null if it has none
     */
    public byte[] get(byte[] key) {
        return get(key, false);
    }

    /**
     * Returns the value of a key that others must not write before the commit.
     *
     * @param key the key
     * @return its value; null if it has none
     */
    public byte[] getForUpdate(byte[] key) {
        return get(key, true);
    }

    private byte[] get(byte[] key, boolean forUpdate) {
        byte[] value =
                Native.transactionGet(number, Objects.requireNonNull(key, "key"), forUpdate);
        Reference.reachabilityFence(this);
        return value;
    }

    /**
     * Sets a key.
     *
     * @param key the key
     * @param value its new value
     */
    public void put(byte[] key, byte[] value) {
        Native.transactionPut(number, Objects.requireNonNull(key, "key"),
                Objects.requireNonNull(value, "value"));
        Reference.reachabilityFence(this);
    }

    /**
     * Removes a key.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        Native.transactionPut(number, Objects.requireNonNull(key, "key"), null);
        Reference.reachabilityFence(this);
    }

    /**
     * Returns the entries of a range that the transaction sees. Keys that it writes meanwhile, ahead
     * of the iterator, may be seen or not.
     *
     * @param from the first key; null for none
     * @param to the key before which the range ends; null for none
     * @return the entries, in the order of keys
     */
    public Iterator<Map.Entry<byte[], byte[]>> range(byte[] from, byte[] to) {
        return new Entries(from, to);
    }

    /** Takes note of the writes so far, for {@link #rollbackToSavepoint}. */
    public void setSavepoint() {
        Native.transactionSavepoint(number, false);
        Reference.reachabilityFence(this);
    }

    /** Undoes the writes since the last savepoint, and forgets that one. */
    public void rollbackToSavepoint() {
        Native.transactionSavepoint(number, true);
        Reference.reachabilityFence(this);
    }

    /** Applies all writes at once. The transaction is over then, whatever the outcome. */
    public void commit() {
        commit(false);
    }

    /**
     * Applies all writes at once. The transaction is over then, whatever the outcome.
     *
     * @param sync whether they are to survive the loss of power
     */
    public void commit(boolean sync) {
        Native.commit(number, sync);
        Reference.reachabilityFence(this);
    }

    @Override
    public void close() {
        cleanable.clean();
    }

    /** Fetches entries by {@link #RANGE_BYTES}. */
    private final class Entries implements Iterator<Map.Entry<byte[], byte[]>> {
        private final byte[] to;
        private byte[] from;
        private boolean after;
        private boolean isLast;
        private byte[][] fetched;
        private int at;

        // The program may write into its arrays, and into those that it gets.
        Entries(byte[] from, byte[] to) {
            this.from = from == null ? null : from.clone();
            this.to = to == null ? null : to.clone();
        }

        @Override
        public boolean hasNext() {
            if (fetched != null && at < fetched.length) {
                return true;
            }
            if (isLast) {
                return false;
            }
            fetched = Native.transactionRange(number, from, after, to, RANGE_BYTES);
            Reference.reachabilityFence(TerraceTransaction.this);
            at = 0;
            long bytes = 0;
            for (byte[] part : fetched) {
                bytes += part.length;
            }
            // What the program writes meanwhile, behind it, does not keep the range from ending.
            isLast = bytes < RANGE_BYTES;
            if (fetched.length > 0) {
                from = fetched[fetched.length - 2].clone();
                after = true;
            }
            return fetched.length > 0;
        }

        @Override
        public Map.Entry<byte[], byte[]> next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            at += 2;
            return new AbstractMap.SimpleImmutableEntry<>(fetched[at - 2], fetched[at - 1]);
        }
    }
}
