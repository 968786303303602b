package io.terrace.kafka;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;

/**
 * A persistent versioned key-value store on Terrace: of every key its versions by their time, each
 * with a first byte that says whether it is a deletion.
 *
 * <p>Behind the versions the file has, for each second, the versions that end in it: those that
 * another version follows, and deletions. Once the history that is kept begins behind that second,
 * they are removed.
 */
class TerraceVersionedStore extends TerraceStateStore
        implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final byte VALUE = 1;
    private static final byte[] DELETION = {0};
    private static final byte[] NOTHING = {};
    private static final long NONE = StoreFile.NO_TIME;
    /** The first part of keys: that of versions, and the first of those for the ends. */
    private static final long VERSIONS = 0;
    private static final long ENDS = 1;
    private static final long END_INTERVAL = 1000;
    private static final int MOST_REMOVALS = 1000;

    private final long history;
    private volatile long streamTime = NONE;
    /** Versions whose end comes before this one have been removed since the file was opened. */
    private long removedTo = ENDS;

    TerraceVersionedStore(String name, long history) {
        super(name);
        this.history = history;
    }

    /** One version in the store. */
    private record Version(long time, byte[] stored) {
        boolean isDeletion() {
            return stored[0] != VALUE;
        }

        byte[] value() {
            return Arrays.copyOfRange(stored, 1, stored.length);
        }
    }

    private static Bytes entry(Bytes key, long time) {
        return Keys.of(VERSIONS, key, time, 0);
    }

    /** The note that the version of a time ends at another one. */
    private static Bytes ending(Bytes key, long time, long end) {
        return Keys.of(segmentOf(end), key, time, 0);
    }

    private static long segmentOf(long end) {
        return ENDS + Math.max(0, end) / END_INTERVAL;
    }

    private static byte[] stored(byte[] value) {
        if (value == null) {
            return DELETION;
        }
        byte[] stored = new byte[value.length + 1];
        stored[0] = VALUE;
        System.arraycopy(value, 0, stored, 1, value.length);
        return stored;
    }

    @Override
    String kind() {
        return "versioned, with ends";
    }

    @Override
    void opened(StoreFile opened) {
        streamTime = opened.removedAt();
        removedTo = ENDS;
    }

    @Override
    KeyValue<Bytes, byte[]> restored(ConsumerRecord<byte[], byte[]> record) {
        if (record.timestamp() < streamTime - history) {
            return null;
        }
        streamTime = Math.max(streamTime, record.timestamp());
        Bytes key = Bytes.wrap(record.key());
        return KeyValue.pair(entry(key, record.timestamp()), stored(record.value()));
    }

    @Override
    void afterRestore(List<KeyValue<Bytes, byte[]>> entries) {
        List<KeyValue<Bytes, byte[]>> notes = new ArrayList<>();
        for (KeyValue<Bytes, byte[]> restored : entries) {
            Bytes key = Keys.parse(restored.key.get()).key();
            Version version = version(restored);
            noteEnds(key, version, true, at(key, version.time() - 1), notes);
        }
        file().restore(notes);
        removeEnded(removals -> file().removeRestored(removals, streamTime));
    }

    /** The first version behind a time; null if there is none. */
    private Version after(Bytes key, long time) {
        if (time == Long.MAX_VALUE) {
            return null;
        }
        try (StoreIterator versions = iterator(
                Keys.lower(VERSIONS, key, time + 1), Keys.after(VERSIONS, key), true)) {
            return versions.hasNext() ? version(versions.next()) : null;
        }
    }

    /** The last version at or before a time; null if there is none. */
    private Version at(Bytes key, long time) {
        Bytes end = end(key, time);
        try (StoreIterator versions = iterator(Keys.lower(VERSIONS, key, 0), end, false)) {
            return versions.hasNext() ? version(versions.next()) : null;
        }
    }

    /** The first key behind the versions of a key at or before a time. */
    private static Bytes end(Bytes key, long time) {
        return time == Long.MAX_VALUE
                ? Keys.after(VERSIONS, key)
                : Keys.lower(VERSIONS, key, time + 1);
    }

    private static Version version(KeyValue<Bytes, byte[]> entry) {
        return new Version(Keys.parse(entry.key.get()).first(), entry.value);
    }

    @Override
    public synchronized long put(Bytes key, byte[] value, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        file();
        if (timestamp < streamTime - history) {
            drop();
            updatePosition();
            return PUT_RETURN_CODE_NOT_PUT;
        }
        streamTime = Math.max(streamTime, timestamp);
        Version before = at(key, timestamp);
        boolean again = before != null && before.time() == timestamp;
        Version version = new Version(timestamp, stored(value));
        List<KeyValue<Bytes, byte[]>> writes = new ArrayList<>();
        writes.add(KeyValue.pair(entry(key, timestamp), version.stored()));
        boolean replacesDeletion = again && before.isDeletion();
        Version next = noteEnds(key, version, replacesDeletion, again ? null : before, writes);
        file().put(writes);
        removeEnded(removals -> file().remove(removals, streamTime));
        updatePosition();
        return next == null ? PUT_RETURN_CODE_VALID_TO_UNDEFINED : next.time();
    }

    /**
     * Notes where a version ends that was put, and the one before it. Returns the next version,
     * null if there is none.
     *
     * @param replacesDeletion whether a deletion of the same time may have been noted
     * @param before the version before it; null if there is none, or if its end is known
     */
    private Version noteEnds(
            Bytes key,
            Version version,
            boolean replacesDeletion,
            Version before,
            List<KeyValue<Bytes, byte[]>> notes) {
        long time = version.time();
        Version next = after(key, time);
        if (version.isDeletion()) {
            notes.add(KeyValue.pair(ending(key, time, time), NOTHING));
        } else {
            if (replacesDeletion) {
                notes.add(KeyValue.pair(ending(key, time, time), null));
            }
            if (next != null) {
                notes.add(KeyValue.pair(ending(key, time, next.time()), NOTHING));
            }
        }
        if (before != null && !before.isDeletion()) {
            notes.add(KeyValue.pair(ending(key, before.time(), time), NOTHING));
        }
        return next;
    }

    /**
     * Removes versions that no read can ask for any more, a few at a time, and of one key the
     * earlier ones first.
     */
    private void removeEnded(Consumer<List<KeyValue<Bytes, byte[]>>> remove) {
        long live = segmentOf(streamTime - history);
        if (live <= removedTo) {
            return;
        }
        Bytes from = Keys.segment(removedTo);
        Bytes to = Keys.segment(live);
        List<KeyValue<Bytes, byte[]>> removals = new ArrayList<>();
        try (StoreIterator ends = iterator(from, to, true)) {
            while (ends.hasNext()) {
                Keys.Parts noted = Keys.parse(ends.next().key.get());
                if (hasEnded(noted.key(), noted.first(), live)) {
                    removals.add(KeyValue.pair(entry(noted.key(), noted.first()), null));
                }
                if (removals.size() >= MOST_REMOVALS) {
                    remove.accept(removals);
                    removals = new ArrayList<>();
                }
            }
        }
        // Behind the last removals.
        file().expire(from, to);
        remove.accept(removals);
        removedTo = live;
    }

    /**
     * Whether a version is there and has ended before a segment. A process that was killed may have
     * left the note without the version, or the note of a deletion with the value that replaced it.
     */
    private boolean hasEnded(Bytes key, long time, long live) {
        byte[] stored = file().get(entry(key, time));
        if (stored == null || new Version(time, stored).isDeletion()) {
            return stored != null;
        }
        Version next = after(key, time);
        return next != null && segmentOf(next.time()) < live;
    }

    @Override
    public synchronized VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        file();
        if (timestamp < streamTime - history) {
            drop();
            return null;
        }
        VersionedRecord<byte[]> before = get(key, timestamp);
        put(key, null, timestamp);
        return before;
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        Version latest = at(key, Long.MAX_VALUE);
        return latest == null || latest.isDeletion()
                ? null
                : new VersionedRecord<>(latest.value(), latest.time());
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOfTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        Version version;
        Version next;
        do {
            version = at(key, asOfTimestamp);
            if (version == null || version.isDeletion()) {
                return null;
            }
            next = after(key, version.time());
            // A version that was put between the two reads is the one that was asked for.
        } while (next != null && next.time() <= asOfTimestamp);
        if (next == null) {
            // The next one may have been removed between the two reads, after this one.
            return file().get(entry(key, version.time())) == null
                    ? null
                    : new VersionedRecord<>(version.value(), version.time());
        }
        // History that is not kept any more is not told, even where it is still there.
        return asOfTimestamp < streamTime - history
                ? null
                : new VersionedRecord<>(version.value(), version.time(), next.time());
    }

    /**
     * Returns the versions that are valid at some time between two times, the latest first. Those
     * that have ended before the history that is kept are left out.
     */
    private List<VersionedRecord<byte[]>> versions(Bytes key, long from, long to) {
        List<VersionedRecord<byte[]>> found = new ArrayList<>();
        long kept = streamTime - history;
        Version next = after(key, Math.max(NONE, to));
        if (to < 0 || to < kept && next != null) {
            return found;
        }
        Bytes end = end(key, to);
        try (StoreIterator versions = iterator(Keys.lower(VERSIONS, key, 0), end, false)) {
            while (versions.hasNext() && (next == null || next.time() > Math.max(from, kept))) {
                Version version = version(versions.next());
                if (!version.isDeletion()) {
                    found.add(next == null
                            ? new VersionedRecord<>(version.value(), version.time())
                            : new VersionedRecord<>(
                                    version.value(), version.time(), next.time()));
                }
                next = version;
            }
        }
        return found;
    }

    private Records versions(MultiVersionedKeyQuery<Bytes, ?> query) {
        List<VersionedRecord<byte[]>> found = versions(
                query.key(),
                query.fromTime().map(Instant::toEpochMilli).orElse(Long.MIN_VALUE),
                query.toTime().map(Instant::toEpochMilli).orElse(Long.MAX_VALUE));
        if (query.resultOrder() == ResultOrder.ASCENDING) {
            Collections.reverse(found);
        }
        return new Records(found.iterator());
    }

    /** Versions that were read already. */
    private static final class Records implements VersionedRecordIterator<byte[]> {
        private final Iterator<VersionedRecord<byte[]>> records;
        private boolean closed;

        Records(Iterator<VersionedRecord<byte[]>> records) {
            this.records = records;
        }

        @Override
        public boolean hasNext() {
            if (closed) {
                throw new IllegalStateException("The iterator is out of scope.");
            }
            return records.hasNext();
        }

        @Override
        public VersionedRecord<byte[]> next() {
            if (closed) {
                throw new IllegalStateException("The iterator is out of scope.");
            }
            return records.next();
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    /** Kafka's handler of queries for many versions casts to its own store. The rest is Kafka's. */
    @Override
    @SuppressWarnings("unchecked")
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        if (!(query instanceof MultiVersionedKeyQuery<?, ?> versions)) {
            return super.query(query, bound, config);
        }
        long begin = System.nanoTime();
        int partition = context().taskId().partition();
        Position position = getPosition();
        QueryResult<R> result;
        synchronized (position) {
            if (!StoreQueryUtils.isPermitted(position, bound, partition)) {
                result = QueryResult.notUpToBound(position, bound, partition);
            } else {
                try {
                    result = QueryResult.forResult(
                            (R) versions((MultiVersionedKeyQuery<Bytes, ?>) versions));
                } catch (RuntimeException e) {
                    result = QueryResult.forFailure(FailureReason.STORE_EXCEPTION,
                            "Query " + query + " of store " + name() + " failed: " + e);
                }
            }
            result.setPosition(position.copy());
        }
        if (config.isCollectExecutionInfo()) {
            result.addExecutionInfo("Handled in " + getClass() + " in "
                    + (System.nanoTime() - begin) + "ns");
        }
        return result;
    }
}
