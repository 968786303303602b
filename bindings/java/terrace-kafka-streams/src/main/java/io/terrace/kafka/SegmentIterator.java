package io.terrace.kafka;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.LongFunction;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;

/** The entries of one segment after the other, of which a filter accepts some. */
final class SegmentIterator implements AutoCloseable {
    private final Iterator<Long> segments;
    private final LongFunction<StoreIterator> opener;
    private final SegmentedStore.Filter filter;
    private StoreIterator current;
    private Keys.Parts key;
    private byte[] value;
    private boolean closed;

    SegmentIterator(
            Iterator<Long> segments,
            LongFunction<StoreIterator> opener,
            SegmentedStore.Filter filter) {
        this.segments = segments;
        this.opener = opener;
        this.filter = filter;
        // What the first one sees is decided now.
        advance();
    }

    private void advance() {
        while (key == null) {
            if (current == null) {
                if (!segments.hasNext()) {
                    return;
                }
                current = opener.apply(segments.next());
            }
            if (!current.hasNext()) {
                current.close();
                current = null;
                continue;
            }
            KeyValue<Bytes, byte[]> entry = current.next();
            Keys.Parts parts = Keys.parse(entry.key.get());
            if (filter.accepts(parts)) {
                key = parts;
                value = entry.value;
            }
        }
    }

    /** Whether there is an entry; there is none once the iterator or its store was closed. */
    boolean hasNext() {
        if (closed || current != null && current.isClosed()) {
            return false;
        }
        advance();
        return key != null;
    }

    /** The key of the next entry. */
    Keys.Parts peek() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return key;
    }

    /** The value of the entry that {@link #peek} shows. Moves on. */
    byte[] take() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        key = null;
        return value;
    }

    @Override
    public void close() {
        closed = true;
        if (current != null) {
            current.close();
        }
    }
}
