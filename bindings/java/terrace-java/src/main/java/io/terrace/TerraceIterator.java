package io.terrace;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import org.iq80.leveldb.DBIterator;

/**
 * The entries of a database, or of a range of its keys, as they were when the iterator was made.
 *
 * <p>It stands between two entries, as a {@link java.util.ListIterator} does: {@link #next} returns
 * the one behind and {@link #prev} the one before. It begins before the first entry. {@link
 * #seekToLast} puts it before the last one, as leveldbjni does, and {@link #seekToEnd} behind it.
 * Entries are loaded many at a time; key and value are the caller's.
 *
 * <p>Of one thread at a time. It keeps what it reads on disk until it is closed.
 */
public final class TerraceIterator implements DBIterator {
    private final TerraceDb db;
    private final EntryWindow window;
    private final Cleaner.Cleanable cleanable;
    private volatile boolean closed;

    TerraceIterator(TerraceDb db, long number) {
        this.db = db;
        window = new EntryWindow(number);
        cleanable = Cleaning.register(this, () -> Native.closeIterator(number));
    }

    // Methods that load entries keep the iterator, and with it the database, reachable until they
    // are done: the cleaner would close it under the native call.
    private EntryWindow open() {
        if (closed) {
            throw new ClosedException("the iterator is closed");
        }
        db.checkOpen();
        return window;
    }

    /** Puts the iterator before the first entry at or after {@code key}. */
    @Override
    public void seek(byte[] key) {
        open().seek(Objects.requireNonNull(key, "key"));
    }

    @Override
    public void seekToFirst() {
        open().seekToFirst();
    }

    /** Puts the iterator before the last entry, which {@link #next} returns then. */
    @Override
    public void seekToLast() {
        open().seekToLast();
    }

    /** Puts the iterator behind the last entry, which {@link #prev} returns then. */
    public void seekToEnd() {
        open().seekToEnd();
    }

    @Override
    public boolean hasNext() {
        boolean more = open().hasNext();
        Reference.reachabilityFence(this);
        return more;
    }

    @Override
    public Map.Entry<byte[], byte[]> next() {
        Map.Entry<byte[], byte[]> entry = peekNext();
        window.moveNext();
        return entry;
    }

    @Override
    public Map.Entry<byte[], byte[]> peekNext() {
        if (!hasNext()) {
            throw new NoSuchElementException("there is no entry behind the iterator");
        }
        return window.peekNext();
    }

    @Override
    public boolean hasPrev() {
        boolean more = open().hasPrev();
        Reference.reachabilityFence(this);
        return more;
    }

    @Override
    public Map.Entry<byte[], byte[]> prev() {
        Map.Entry<byte[], byte[]> entry = peekPrev();
        window.movePrev();
        return entry;
    }

    @Override
    public Map.Entry<byte[], byte[]> peekPrev() {
        if (!hasPrev()) {
            throw new NoSuchElementException("there is no entry before the iterator");
        }
        return window.peekPrev();
    }

    /**
     * Returns the next entries.
     *
     * @param most how many at most
     * @return the entries; none at the end
     */
    public List<Map.Entry<byte[], byte[]>> nextBatch(int most) {
        EntryWindow entries = open();
        List<Map.Entry<byte[], byte[]>> batch = new ArrayList<>(Math.min(most, 1024));
        while (batch.size() < most && entries.hasNext()) {
            batch.add(entries.peekNext());
            entries.moveNext();
        }
        Reference.reachabilityFence(this);
        return batch;
    }

    @Override
    public void remove() {
        throw new UnsupportedOperationException("entries are removed by DB.delete");
    }

    @Override
    public void close() {
        closed = true;
        cleanable.clean();
    }
}
