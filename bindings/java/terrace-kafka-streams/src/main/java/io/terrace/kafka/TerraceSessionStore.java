package io.terrace.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

/** A persistent session store on Terrace. Its segments go by the ends of sessions. */
class TerraceSessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    /** What a record's key has behind it in the changelog: a session's end and start. */
    private static final int SUFFIX = 2 * Long.BYTES;

    TerraceSessionStore(String name, long retention, long interval) {
        super(name, retention, interval);
    }

    /** Its values begin with headers. */
    static final class WithHeaders extends TerraceSessionStore implements HeadersBytesStore {
        WithHeaders(String name, long retention, long interval) {
            super(name, retention, interval);
        }
    }

    @Override
    String kind() {
        return "sessions, " + segments();
    }

    @Override
    KeyValue<Bytes, byte[]> restored(ConsumerRecord<byte[], byte[]> record) {
        byte[] stored = record.key();
        int length = stored.length - SUFFIX;
        Bytes key = Bytes.wrap(Arrays.copyOf(stored, length));
        ByteBuffer suffix = ByteBuffer.wrap(stored, length, SUFFIX);
        long end = suffix.getLong();
        if (!observe(end)) {
            return null;
        }
        extend(end);
        return KeyValue.pair(Keys.of(segment(end), key, end, suffix.getLong()), record.value());
    }

    @Override
    public synchronized void put(Windowed<Bytes> session, byte[] aggregate) {
        Objects.requireNonNull(session, "sessionKey cannot be null");
        Objects.requireNonNull(session.key(), "sessionKey.key() cannot be null");
        file();
        long start = session.window().start();
        long end = session.window().end();
        if (observe(end)) {
            extend(end);
            file().put(Keys.of(segment(end), session.key(), end, start), aggregate);
        } else {
            drop();
        }
        updatePosition();
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        put(session, null);
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        Objects.requireNonNull(key, "key cannot be null");
        StoreFile opened = file();
        return end < liveFrom() ? null : opened.get(Keys.of(segment(end), key, end, start));
    }

    private static Windowed<Bytes> windowed(Keys.Parts parts) {
        return new Windowed<>(parts.key(), new SessionWindow(parts.second(), parts.first()));
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Bytes key, long earliestEnd, long latestStart, boolean forward) {
        Objects.requireNonNull(key, "key cannot be null");
        long first = Math.max(earliestEnd, liveFrom());
        return new WindowedIterator<>(
                entriesOf(key, first, Long.MAX_VALUE, forward,
                        parts -> parts.second() <= latestStart),
                TerraceSessionStore::windowed);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart, boolean forward) {
        warnOfInvertedRange(keyFrom, keyTo);
        long first = Math.max(earliestEnd, liveFrom());
        return new WindowedIterator<>(
                entries(keyFrom, keyTo, first, Long.MAX_VALUE, forward,
                        parts -> parts.first() >= first && parts.second() <= latestStart),
                TerraceSessionStore::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            long earliestSessionEndTime, long latestSessionEndTime) {
        long first = Math.max(earliestSessionEndTime, liveFrom());
        return new WindowedIterator<>(
                entries(null, null, first, latestSessionEndTime, true,
                        parts -> parts.first() >= first && parts.first() <= latestSessionEndTime),
                TerraceSessionStore::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(key, earliestSessionEndTime, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(key, earliestSessionEndTime, latestSessionStartTime, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return find(key, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return find(key, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return find(keyFrom, keyTo, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return find(keyFrom, keyTo, 0, Long.MAX_VALUE, false);
    }
}
