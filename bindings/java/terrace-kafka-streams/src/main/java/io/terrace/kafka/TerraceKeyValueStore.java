package io.terrace.kafka;

import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A persistent key-value store on Terrace. */
class TerraceKeyValueStore extends TerraceStateStore implements KeyValueStore<Bytes, byte[]> {
    TerraceKeyValueStore(String name) {
        super(name);
    }

    /** Its values begin with a timestamp. */
    static final class Timestamped extends TerraceKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name);
        }
    }

    /** Its values begin with headers and a timestamp. */
    static final class WithHeaders extends TerraceKeyValueStore implements HeadersBytesStore {
        WithHeaders(String name) {
            super(name);
        }
    }

    @Override
    String kind() {
        return "key-value";
    }

    @Override
    KeyValue<Bytes, byte[]> restored(ConsumerRecord<byte[], byte[]> record) {
        return KeyValue.pair(Bytes.wrap(record.key()), record.value());
    }

    private static Bytes required(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null");
    }

    @Override
    public synchronized void put(Bytes key, byte[] value) {
        file().put(required(key), value);
        updatePosition();
    }

    @Override
    public synchronized byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] before = get(key);
        if (before == null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public synchronized void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> required(entry.key));
        entries.forEach(entry -> put(entry.key, entry.value));
    }

    @Override
    public synchronized byte[] delete(Bytes key) {
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public byte[] get(Bytes key) {
        StoreFile opened = file();
        return opened.get(required(key));
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean forward) {
        if (warnOfInvertedRange(from, to)) {
            return iterator(from, from, forward);
        }
        return iterator(from, to == null ? null : Keys.successor(to), forward);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return iterator(null, null, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return iterator(null, null, false);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(
            P prefix, PS prefixKeySerializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(prefixKeySerializer, "prefixKeySerializer cannot be null");
        byte[] bytes = prefixKeySerializer.serialize(null, prefix);
        return iterator(Bytes.wrap(bytes), Keys.afterPrefix(bytes), true);
    }

    @Override
    public long approximateNumEntries() {
        return file().approximateEntries();
    }
}
