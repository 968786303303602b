package io.terrace.kafka;

import io.terrace.TerraceDb;
import io.terrace.TerraceException;
import io.terrace.TerraceIterator;
import io.terrace.TerraceWriteBatch;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;

/**
 * The database of one store, and the writes since its last commit.
 *
 * <p>Writes are in memory until {@link #commit}, which applies them with the offsets and the
 * position in one batch. When they exceed a limit they are written before: without exactly-once
 * that is harmless, for the changelog is applied again from the committed offset; with it, the
 * batch removes the committed offsets, so that a crash before the next commit has Kafka Streams
 * rebuild the store instead of counting aborted records.
 *
 * <p>Any thread may read while the stream thread writes.
 */
final class StoreFile implements AutoCloseable {
    private static final byte META = 0;
    private static final byte DATA = 1;
    private static final byte[] AFTER_DATA = {2};
    private static final byte[] OFFSETS = {META, 'o'};
    private static final byte[] AFTER_OFFSETS = {META, 'p'};
    private static final byte[] POSITION = {META, 'q'};
    private static final byte[] USED = {META, 'u'};
    static final byte[] DELETED = new byte[0];
    private static final int ENTRY_OVERHEAD = 100;

    private final String name;
    private final TerraceDb db;
    private final boolean exactlyOnce;
    private final long limit;
    private ConcurrentSkipListMap<Bytes, byte[]> buffer = new ConcurrentSkipListMap<>();
    private long buffered;
    /** About how many entries the database has. */
    private long entries;
    /** Whether anything was ever written or restored. */
    private boolean used;
    /** Whether Kafka Streams has asked for an offset, after which offsets are its own. */
    private boolean asked;

    StoreFile(File directory, String name, Map<String, Object> configs, boolean exactlyOnce) {
        this.name = name;
        this.exactlyOnce = exactlyOnce;
        limit = Memory.buffer(configs);
        try {
            db = TerraceDb.open(directory.toPath(), Memory.options(configs));
        } catch (IOException e) {
            throw new ProcessorStateException("Error opening store " + name, e);
        }
        Map<String, Long> stats = db.stats();
        entries = Math.max(0, stats.get("table_entries") - 2 * stats.get("table_deletions"));
        used = db.get(USED) != null;
    }

    private ProcessorStateException failure(String what, TerraceException e) {
        return new ProcessorStateException("Error " + what + " store " + name, e);
    }

    private static byte[] data(Bytes key) {
        byte[] bytes = new byte[key.get().length + 1];
        bytes[0] = DATA;
        System.arraycopy(key.get(), 0, bytes, 1, key.get().length);
        return bytes;
    }

    synchronized byte[] get(Bytes key) {
        byte[] written = buffer.get(key);
        if (written != null) {
            return written == DELETED ? null : written;
        }
        try {
            return db.get(data(key));
        } catch (TerraceException e) {
            throw failure("reading from", e);
        }
    }

    /** Sets a key; removes it if the value is null. */
    synchronized void put(Bytes key, byte[] value) {
        // An empty value is a value: it must not be taken for the marker.
        byte[] kept = value == null ? DELETED : value.length == 0 ? new byte[0] : value;
        byte[] before = buffer.put(key, kept);
        buffered += kept.length - (before == null ? 0 : before.length);
        buffered += before == null ? key.get().length + ENTRY_OVERHEAD : 0;
        if (buffered > limit) {
            spill();
        }
    }

    private void spill() {
        try (TerraceWriteBatch batch = db.createWriteBatch()) {
            if (exactlyOnce) {
                forgetOffsets(batch);
            }
            apply(batch);
        }
    }

    /** Writes a batch and what is buffered. */
    private void apply(TerraceWriteBatch batch) {
        long more = 0;
        for (Map.Entry<Bytes, byte[]> entry : buffer.entrySet()) {
            if (entry.getValue() == DELETED) {
                batch.delete(data(entry.getKey()));
                more--;
            } else {
                batch.put(data(entry.getKey()), entry.getValue());
                more++;
            }
        }
        write(batch, !buffer.isEmpty());
        entries = Math.max(0, entries + more);
        // Iterators go on with the old one.
        buffer = new ConcurrentSkipListMap<>();
        buffered = 0;
    }

    private void write(TerraceWriteBatch batch, boolean data) {
        if (data && !used) {
            batch.put(USED, DELETED);
        }
        try {
            db.write(batch);
        } catch (TerraceException e) {
            throw failure("writing to", e);
        }
        used |= data;
    }

    private void forgetOffsets(TerraceWriteBatch batch) {
        try (TerraceIterator offsets = db.range(OFFSETS, AFTER_OFFSETS)) {
            while (offsets.hasNext()) {
                batch.delete(offsets.next().getKey());
            }
        }
    }

    private static byte[] offsetKey(TopicPartition partition) {
        byte[] topic = partition.topic().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(OFFSETS.length + topic.length + Integer.BYTES)
                .put(OFFSETS)
                .put(topic)
                .putInt(partition.partition())
                .array();
    }

    /** Applies all writes with the offsets, as {@code StateStore.commit} says, and a position. */
    synchronized void commit(Map<TopicPartition, Long> offsets, Position position) {
        try (TerraceWriteBatch batch = db.createWriteBatch()) {
            // A checkpoint file that another kind of store left beside this empty one is migrated
            // before offsets are asked for. It does not say what is here.
            boolean strange = !used && !asked && buffer.isEmpty();
            if (offsets.isEmpty()) {
                forgetOffsets(batch);
            } else if (!strange) {
                offsets.forEach((partition, offset) -> {
                    if (offset == null) {
                        batch.delete(offsetKey(partition));
                    } else {
                        batch.put(offsetKey(partition),
                                ByteBuffer.allocate(Long.BYTES).putLong(offset).array());
                    }
                });
            }
            ByteBuffer serialized;
            synchronized (position) {
                serialized = PositionSerde.serialize(position);
            }
            byte[] bytes = new byte[serialized.remaining()];
            serialized.get(bytes);
            batch.put(POSITION, bytes);
            apply(batch);
        } catch (TerraceException e) {
            throw failure("committing", e);
        }
    }

    synchronized Long committedOffset(TopicPartition partition) {
        asked = true;
        byte[] offset = db.get(offsetKey(partition));
        return offset == null ? null : ByteBuffer.wrap(offset).getLong();
    }

    Position position() {
        byte[] position = db.get(POSITION);
        return position == null
                ? Position.emptyPosition()
                : PositionSerde.deserialize(ByteBuffer.wrap(position));
    }

    /** Writes what a changelog says, which is committed already. Null values delete. */
    synchronized void restore(Collection<KeyValue<Bytes, byte[]>> records) {
        try (TerraceWriteBatch batch = db.createWriteBatch()) {
            for (KeyValue<Bytes, byte[]> record : records) {
                if (record.value == null) {
                    batch.delete(data(record.key));
                } else {
                    batch.put(data(record.key), record.value);
                    entries++;
                }
            }
            write(batch, !records.isEmpty());
        }
    }

    /**
     * Returns the entries of a range.
     *
     * @param from the first key; null for none
     * @param to the key before which the range ends; null for none
     */
    synchronized StoreIterator range(Bytes from, Bytes to, boolean forward) {
        try {
            byte[] first = from == null ? new byte[] {DATA} : data(from);
            TerraceIterator stored = db.range(first, to == null ? AFTER_DATA : data(to));
            return new StoreIterator(name, buffer, stored, from, to, forward);
        } catch (TerraceException e) {
            throw failure("reading from", e);
        }
    }

    /** Removes a range that has expired, at once and whatever is committed. */
    synchronized void deleteRange(Bytes from, Bytes to) {
        buffer.subMap(from, to).clear();
        try {
            db.deleteRange(data(from), data(to));
        } catch (TerraceException e) {
            throw failure("expiring entries of", e);
        }
    }

    /** About how many entries there are. */
    synchronized long approximateEntries() {
        long more = buffer.values().stream().filter(value -> value != DELETED).count();
        return entries + more;
    }

    @Override
    public synchronized void close() {
        try {
            db.close();
        } catch (IOException e) {
            throw new ProcessorStateException("Error closing store " + name, e);
        }
    }
}
