package io.terrace.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** A persistent window store on Terrace. */
class TerraceWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    /** What a record's key has behind it in the changelog: a window's start, a sequence number. */
    private static final int SUFFIX = Long.BYTES + Integer.BYTES;

    private final long windowSize;
    private final boolean retainDuplicates;
    private int sequence;

    TerraceWindowStore(
            String name,
            long retention,
            long interval,
            long windowSize,
            boolean retainDuplicates) {
        super(name, retention, interval);
        this.windowSize = windowSize;
        this.retainDuplicates = retainDuplicates;
    }

    /** Its values begin with a timestamp. */
    static final class Timestamped extends TerraceWindowStore implements TimestampedBytesStore {
        Timestamped(
                String name, long retention, long interval, long windowSize, boolean duplicates) {
            super(name, retention, interval, windowSize, duplicates);
        }
    }

    /** Its values begin with headers and a timestamp. */
    static final class WithHeaders extends TerraceWindowStore
            implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(
                String name, long retention, long interval, long windowSize, boolean duplicates) {
            super(name, retention, interval, windowSize, duplicates);
        }
    }

    @Override
    String kind() {
        return "windows, " + segments();
    }

    @Override
    KeyValue<Bytes, byte[]> restored(ConsumerRecord<byte[], byte[]> record) {
        byte[] stored = record.key();
        int length = stored.length - SUFFIX;
        Bytes key = Bytes.wrap(Arrays.copyOf(stored, length));
        ByteBuffer suffix = ByteBuffer.wrap(stored, length, SUFFIX);
        long start = suffix.getLong();
        if (!observe(start)) {
            return null;
        }
        extend(start);
        Bytes entry = Keys.of(segment(start), key, start, suffix.getInt());
        return KeyValue.pair(entry, record.value());
    }

    @Override
    public synchronized void put(Bytes key, byte[] value, long windowStart) {
        Objects.requireNonNull(key, "key cannot be null");
        file();
        if (value == null && retainDuplicates) {
            // There is no telling which of the duplicates is meant.
            return;
        }
        if (retainDuplicates) {
            sequence = sequence + 1 & Integer.MAX_VALUE;
        }
        if (observe(windowStart)) {
            extend(windowStart);
            file().put(Keys.of(segment(windowStart), key, windowStart, sequence), value);
        } else {
            drop();
        }
        updatePosition();
    }

    @Override
    public byte[] fetch(Bytes key, long time) {
        Objects.requireNonNull(key, "key cannot be null");
        StoreFile opened = file();
        return time < liveFrom() ? null : opened.get(Keys.of(segment(time), key, time, sequence));
    }

    private WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to, boolean forward) {
        Objects.requireNonNull(key, "key cannot be null");
        long first = Math.max(from, liveFrom());
        return new WindowedIterator.OfKey(entriesOf(key, first, to, forward, parts -> true));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long timeFrom, long timeTo) {
        return fetch(key, timeFrom, timeTo, true);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long timeFrom, long timeTo) {
        return fetch(key, timeFrom, timeTo, false);
    }

    private Windowed<Bytes> windowed(Keys.Parts parts) {
        long end = parts.first() + windowSize;
        long most = end < 0 ? Long.MAX_VALUE : end;
        return new Windowed<>(parts.key(), new TimeWindow(parts.first(), most));
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> fetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo, boolean forward) {
        warnOfInvertedRange(keyFrom, keyTo);
        long first = Math.max(timeFrom, liveFrom());
        return new WindowedIterator<>(
                entries(keyFrom, keyTo, first, timeTo, forward,
                        parts -> parts.first() >= first && parts.first() <= timeTo),
                this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return fetch(keyFrom, keyTo, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return fetch(keyFrom, keyTo, timeFrom, timeTo, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long timeFrom, long timeTo) {
        return fetch(null, null, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(
            long timeFrom, long timeTo) {
        return fetch(null, null, timeFrom, timeTo, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return fetch(null, null, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return fetch(null, null, 0, Long.MAX_VALUE, false);
    }
}
