package io.terrace.kafka;

import io.terrace.ClosedException;
import io.terrace.TerraceDb;
import io.terrace.TerraceException;
import io.terrace.TerraceIterator;
import io.terrace.TerraceWriteBatch;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The database of one store, and the writes since its last commit.
 *
 * <p>Writes are in memory until {@link #commit}, which applies them with the offsets and the
 * position in one batch. When they exceed a limit they are written before: without exactly-once
 * that is harmless, for the changelog is applied again from the committed offset; with it, the
 * batch removes the committed offsets, so that a crash before the next commit has Kafka Streams
 * rebuild the store instead of counting aborted records.
 *
 * <p>Expired entries are deleted after the batch of the next commit, since after a crash before it
 * they have not expired. Until then the caller hides them. A spill under exactly-once deletes them,
 * too: it has removed the offsets, and commits are rare there.
 *
 * <p>Any thread may read while the stream thread writes. Kafka Streams runs a query with the
 * position locked, so the order of locks is: the position, then the file. No method locks the
 * position while it holds the file's monitor.
 */
final class StoreFile implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StoreFile.class);
    private static final byte META = 0;
    private static final byte DATA = 1;
    private static final byte[] AFTER_DATA = {2};
    private static final byte[] OFFSETS = {META, 'o'};
    private static final byte[] AFTER_OFFSETS = {META, 'p'};
    private static final byte[] FORMAT = {META, 'f'};
    private static final byte[] POSITION = {META, 'q'};
    private static final byte[] TIME = {META, 't'};
    private static final byte[] USED = {META, 'u'};
    static final long NO_TIME = -1;
    static final byte[] DELETED = new byte[0];
    private static final int ENTRY_OVERHEAD = 100;

    private final String name;
    private final TerraceDb db;
    private final boolean exactlyOnce;
    private final long limit;
    private ConcurrentSkipListMap<Bytes, byte[]> buffer = new ConcurrentSkipListMap<>();
    private long buffered;
    /** Entries put into the database since it was opened, less those deleted. */
    private long written;
    /** The range of entries that have expired and are still stored; null if there are none. */
    private Bytes expiredFrom;
    private Bytes expiredTo;
    /** The stream time at which entries were last removed since the last commit. */
    private long removedAt;
    /** Whether anything was ever written or restored. */
    private boolean used;
    /** Whether Kafka Streams has asked for an offset, after which offsets are its own. */
    private boolean asked;

    /**
     * Opens the file. If it was written in another format, empties it, and Kafka Streams restores
     * it from the changelog. Fails if there is no changelog and entries would be lost.
     *
     * @param format what determines the encoding of keys and values
     * @param changelog the topic of the changelog; null if the store has none
     */
    StoreFile(
            File directory,
            String name,
            String format,
            String changelog,
            Map<String, Object> configs,
            boolean exactlyOnce) {
        this.name = name;
        this.exactlyOnce = exactlyOnce;
        limit = Memory.buffer(configs);
        try {
            db = TerraceDb.open(directory.toPath(), Memory.options(configs));
        } catch (IOException e) {
            throw new ProcessorStateException("Error opening store " + name, e);
        }
        try {
            require(format, changelog, directory);
            used = db.get(USED) != null;
            Long time = decoded(db.get(TIME));
            removedAt = time == null ? NO_TIME : time;
        } catch (TerraceException e) {
            close();
            throw failure("opening", e);
        } catch (ProcessorStateException e) {
            close();
            throw e;
        }
    }

    private void require(String wanted, String changelog, File directory) {
        byte[] format = wanted.getBytes(StandardCharsets.UTF_8);
        byte[] recorded = db.get(FORMAT);
        if (Arrays.equals(format, recorded)) {
            return;
        }
        if (holdsEntries(recorded != null)) {
            String found = recorded == null
                    ? "no recorded format"
                    : "the format \"" + new String(recorded, StandardCharsets.UTF_8) + "\"";
            String mismatch = "Store " + name + " in " + directory + " has " + found
                    + ", and its configuration wants \"" + wanted + "\".";
            if (changelog == null) {
                throw new ProcessorStateException(mismatch
                        + " It has no changelog to restore its entries from: go back to the old"
                        + " configuration, or remove the directory to begin with an empty store");
            }
            LOG.warn("{} It is emptied and restored from its changelog {}", mismatch, changelog);
        }
        // If the process dies between these two, the file is empty and the next open goes on.
        db.deleteRange(null, null);
        db.put(FORMAT, format);
    }

    /** Whether there are entries; in a file without a recorded format every key is one. */
    private boolean holdsEntries(boolean hasFormat) {
        try (TerraceIterator entries =
                db.range(hasFormat ? new byte[] {DATA} : null, hasFormat ? AFTER_DATA : null)) {
            return entries.hasNext();
        }
    }

    private StreamsException failure(String what, TerraceException e) {
        return failure(what, name, e);
    }

    /** What Kafka's users expect: a closed store is no error of the state. */
    static StreamsException failure(String what, String name, TerraceException e) {
        return e instanceof ClosedException
                ? new InvalidStateStoreException("Store " + name + " is currently closed", e)
                : new ProcessorStateException("Error " + what + " store " + name, e);
    }

    private static byte[] data(Bytes key) {
        byte[] bytes = new byte[key.get().length + 1];
        bytes[0] = DATA;
        System.arraycopy(key.get(), 0, bytes, 1, key.get().length);
        return bytes;
    }

    /** Arrays go in and out as copies: a program may write into its own ones at any time. */
    synchronized byte[] get(Bytes key) {
        byte[] written = buffer.get(key);
        if (written != null) {
            return written == DELETED ? null : written.clone();
        }
        try {
            return db.get(data(key));
        } catch (TerraceException e) {
            throw failure("reading from", e);
        }
    }

    /** Sets a key; removes it if the value is null. */
    synchronized void put(Bytes key, byte[] value) {
        keep(key, value);
        spillIfFull();
    }

    /** Sets several keys. After a crash all of them are set, or none. */
    synchronized void put(List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> keep(entry.key, entry.value));
        spillIfFull();
    }

    /**
     * Removes keys that no read asks for at a stream time. Where that is written ahead of a commit,
     * the time is too: records before it that are replayed after a crash are there already, and
     * what has removed them is not.
     */
    synchronized void remove(List<KeyValue<Bytes, byte[]>> removals, long streamTime) {
        removedAt = streamTime;
        put(removals);
    }

    /** The stream time at which entries were removed behind the last commit, if any were. */
    synchronized long removedAt() {
        return removedAt;
    }

    private void keep(Bytes key, byte[] value) {
        // A copy of an empty value is not the marker.
        byte[] kept = value == null ? DELETED : value.clone();
        byte[] before = buffer.put(Bytes.wrap(key.get().clone()), kept);
        buffered += size(key, kept) - (before == null ? 0 : size(key, before));
    }

    private void spillIfFull() {
        if (buffered > limit) {
            spill();
        }
    }

    private static long size(Bytes key, byte[] value) {
        return key.get().length + value.length + ENTRY_OVERHEAD;
    }

    private void spill() {
        try (TerraceWriteBatch batch = db.createWriteBatch()) {
            if (exactlyOnce) {
                forgetOffsets(batch);
            }
            noteTime(batch);
            apply(batch);
        }
        if (exactlyOnce) {
            // Without offsets the store is rebuilt after a crash.
            deleteExpired();
        }
    }

    private void noteTime(TerraceWriteBatch batch) {
        if (removedAt != NO_TIME) {
            batch.put(TIME, encoded(removedAt));
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
        written += more;
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

    private static byte[] encoded(long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    private static Long decoded(byte[] number) {
        return number == null ? null : ByteBuffer.wrap(number).getLong();
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
    void commit(Map<TopicPartition, Long> offsets, Position position) {
        commit(offsets, serialized(position));
    }

    private static byte[] serialized(Position position) {
        ByteBuffer serialized;
        synchronized (position) {
            serialized = PositionSerde.serialize(position);
        }
        byte[] bytes = new byte[serialized.remaining()];
        serialized.get(bytes);
        return bytes;
    }

    private synchronized void commit(Map<TopicPartition, Long> offsets, byte[] position) {
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
                        batch.put(offsetKey(partition), encoded(offset));
                    }
                });
            }
            batch.put(POSITION, position);
            if (removedAt != NO_TIME) {
                batch.delete(TIME);
            }
            apply(batch);
            removedAt = NO_TIME;
            deleteExpired();
        } catch (TerraceException e) {
            throw failure("committing", e);
        }
    }

    synchronized Long committedOffset(TopicPartition partition) {
        asked = true;
        try {
            return decoded(db.get(offsetKey(partition)));
        } catch (TerraceException e) {
            throw failure("reading from", e);
        }
    }

    Position position() {
        byte[] position = db.get(POSITION);
        return position == null
                ? Position.emptyPosition()
                : PositionSerde.deserialize(ByteBuffer.wrap(position));
    }

    /** As {@link #remove}, at once. */
    synchronized void removeRestored(Collection<KeyValue<Bytes, byte[]>> removals, long streamTime) {
        removedAt = streamTime;
        restore(removals);
    }

    /** Writes what a changelog says, which is committed already. Null values delete. */
    synchronized void restore(Collection<KeyValue<Bytes, byte[]>> records) {
        try (TerraceWriteBatch batch = db.createWriteBatch()) {
            noteTime(batch);
            for (KeyValue<Bytes, byte[]> record : records) {
                if (record.value == null) {
                    batch.delete(data(record.key));
                    written--;
                } else {
                    batch.put(data(record.key), record.value);
                    written++;
                }
            }
            write(batch, !records.isEmpty());
        }
        deleteExpired();
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

    /**
     * Removes a range that has expired, from the database with the next commit. The caller hides it
     * until then and writes nothing into it. A later range lies behind an earlier one, and what is
     * between them has expired, too.
     */
    synchronized void expire(Bytes from, Bytes to) {
        Map<Bytes, byte[]> expired = buffer.subMap(from, to);
        expired.forEach((key, value) -> buffered -= size(key, value));
        expired.clear();
        expiredFrom = expiredFrom == null || from.compareTo(expiredFrom) < 0 ? from : expiredFrom;
        expiredTo = to;
    }

    private void deleteExpired() {
        if (expiredFrom == null) {
            return;
        }
        try {
            db.deleteRange(data(expiredFrom), data(expiredTo));
        } catch (TerraceException e) {
            throw failure("expiring entries of", e);
        }
        expiredFrom = null;
        expiredTo = null;
    }

    /**
     * About how many entries there are, as RocksDB counts them: an entry that was written again
     * counts more than once until a flush or a compaction removes its old value.
     */
    synchronized long approximateEntries() {
        Map<String, Long> stats;
        try {
            stats = db.stats();
        } catch (TerraceException e) {
            throw failure("reading from", e);
        }
        long tables = stats.get("table_entries") - 2 * stats.get("table_deletions");
        // The engine does not count entries of memtables. They are the part of what was written
        // that memtables have by bytes.
        double unflushed = Math.min(1, (double) stats.get("memtable_bytes")
                / Math.max(1, stats.get("user_bytes_written")));
        long more = buffer.values().stream().filter(value -> value != DELETED).count();
        return Math.max(0, tables) + Math.max(0, Math.round(written * unflushed)) + more;
    }

    /** Waits until no flush or compaction is due or running, for tests of what they leave. */
    void waitIdle() {
        db.waitIdle();
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
