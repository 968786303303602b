package io.terrace.kafka;

import java.util.function.Function;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** Entries of segments with keys of another form. */
class WindowedIterator<K> implements KeyValueIterator<K, byte[]> {
    private final SegmentIterator entries;
    private final Function<Keys.Parts, K> form;

    WindowedIterator(SegmentIterator entries, Function<Keys.Parts, K> form) {
        this.entries = entries;
        this.form = form;
    }

    /** Windows of one key, by their start. */
    static final class OfKey extends WindowedIterator<Long> implements WindowStoreIterator<byte[]> {
        OfKey(SegmentIterator entries) {
            super(entries, Keys.Parts::first);
        }
    }

    @Override
    public boolean hasNext() {
        return entries.hasNext();
    }

    @Override
    public KeyValue<K, byte[]> next() {
        K key = peekNextKey();
        return KeyValue.pair(key, entries.take());
    }

    @Override
    public K peekNextKey() {
        return form.apply(entries.peek());
    }

    @Override
    public void close() {
        entries.close();
    }
}
