package io.terrace.kafka;

import io.terrace.TerraceException;
import io.terrace.TerraceIterator;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

/** The entries of a range in either direction: what is stored, with what is buffered on top. */
final class StoreIterator implements KeyValueIterator<Bytes, byte[]> {
    private final String name;
    private final boolean forward;
    private final Iterator<Map.Entry<Bytes, byte[]>> buffered;
    private final TerraceIterator stored;
    private Map.Entry<Bytes, byte[]> nextBuffered;
    private KeyValue<Bytes, byte[]> nextStored;
    private KeyValue<Bytes, byte[]> next;
    private Runnable whenClosed = () -> {};
    private volatile boolean closed;

    StoreIterator(
            String name,
            ConcurrentSkipListMap<Bytes, byte[]> buffer,
            TerraceIterator stored,
            Bytes from,
            Bytes to,
            boolean forward) {
        this.name = name;
        this.forward = forward;
        this.stored = stored;
        boolean empty = from != null && to != null && from.compareTo(to) >= 0;
        NavigableMap<Bytes, byte[]> range = empty ? Collections.emptyNavigableMap() : buffer;
        range = empty || from == null ? range : range.tailMap(from, true);
        range = empty || to == null ? range : range.headMap(to, false);
        buffered = (forward ? range : range.descendingMap()).entrySet().iterator();
        if (!forward) {
            stored.seekToEnd();
        }
    }

    StoreIterator whenClosed(Runnable action) {
        whenClosed = action;
        return this;
    }

    private void load() {
        if (nextBuffered == null && buffered.hasNext()) {
            nextBuffered = buffered.next();
        }
        if (nextStored == null && (forward ? stored.hasNext() : stored.hasPrev())) {
            Map.Entry<byte[], byte[]> entry = forward ? stored.next() : stored.prev();
            byte[] key = entry.getKey();
            nextStored = KeyValue.pair(
                    Bytes.wrap(Arrays.copyOfRange(key, 1, key.length)), entry.getValue());
        }
    }

    /** Less than 0 if the buffered entry comes first, 0 if both have one key. */
    private int compare() {
        if (nextStored == null) {
            return -1;
        }
        if (nextBuffered == null) {
            return 1;
        }
        int order = nextBuffered.getKey().compareTo(nextStored.key);
        return forward ? order : -order;
    }

    private boolean advance() {
        while (next == null) {
            load();
            if (nextBuffered == null && nextStored == null) {
                return false;
            }
            int order = compare();
            if (order > 0) {
                next = nextStored;
                nextStored = null;
                continue;
            }
            if (order == 0) {
                nextStored = null;
            }
            if (nextBuffered.getValue() != StoreFile.DELETED) {
                next = KeyValue.pair(
                        Bytes.wrap(nextBuffered.getKey().get().clone()),
                        nextBuffered.getValue().clone());
            }
            nextBuffered = null;
        }
        return true;
    }

    boolean isClosed() {
        return closed;
    }

    @Override
    public boolean hasNext() {
        if (closed) {
            throw new InvalidStateStoreException("Iterator of store " + name + " has been closed");
        }
        try {
            return advance();
        } catch (TerraceException e) {
            throw StoreFile.failure("reading from", name, e);
        }
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        KeyValue<Bytes, byte[]> entry = next;
        next = null;
        return entry;
    }

    @Override
    public Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public void close() {
        closed = true;
        stored.close();
        whenClosed.run();
    }
}
