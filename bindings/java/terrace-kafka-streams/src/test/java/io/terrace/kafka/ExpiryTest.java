package io.terrace.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What expiry leaves on disk before and after a commit, and counts of entries. */
class ExpiryTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final Bytes KEY = Bytes.wrap("key".getBytes());
    private static final byte[] VALUE = "value".getBytes();
    private static final Duration RETENTION = Duration.ofMinutes(10);
    private static final long NOT_PUT = VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT;
    private static final long LATER = Duration.ofDays(1).toMillis();
    private static final Map<String, String> AT_LEAST_ONCE = Map.of(Memory.BUFFER, "100000");
    private static final Map<String, String> EXACTLY_ONCE = Map.of(
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            Memory.BUFFER, "100000");

    private File directory;

    @BeforeEach
    void makeDirectory() throws Exception {
        directory = Contexts.directory();
    }

    private WindowStore<Bytes, byte[]> open(Map<String, String> settings) {
        WindowStore<Bytes, byte[]> store =
                TerraceStores.windowStore("store", RETENTION, RETENTION, false).get();
        store.init(Contexts.context(directory, settings), store);
        return store;
    }

    /** What is stored, whatever has expired. */
    private static int stored(WindowStore<Bytes, byte[]> store) {
        int stored = 0;
        try (StoreIterator entries =
                ((TerraceWindowStore) store).file().range(null, null, true)) {
            while (entries.hasNext()) {
                entries.next();
                stored++;
            }
        }
        return stored;
    }

    @Test
    void entries_that_expired_are_there_after_a_crash_before_the_commit() {
        WindowStore<Bytes, byte[]> store = open(AT_LEAST_ONCE);
        store.committedOffset(CHANGELOG);
        store.put(KEY, VALUE, 1000);
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(KEY, VALUE, LATER);
        assertNull(store.fetch(KEY, 1000));
        assertFalse(store.fetch(KEY, 0, LATER - 1).hasNext());
        assertFalse(store.fetch(KEY, KEY, 0, LATER - 1).hasNext());
        assertFalse(store.fetchAll(0, LATER - 1).hasNext());
        assertFalse(store.backwardFetchAll(0, LATER - 1).hasNext());
        assertEquals(LATER, store.all().next().key.window().start());
        // Without a commit this is what a killed process leaves.
        store.close();
        store = open(AT_LEAST_ONCE);
        assertEquals(1, store.committedOffset(CHANGELOG));
        assertArrayEquals(VALUE, store.fetch(KEY, 1000));
        assertNull(store.fetch(KEY, LATER));
        // The commit that says that they have expired removes them.
        store.put(KEY, VALUE, LATER);
        store.commit(Map.of(CHANGELOG, 2L));
        assertEquals(1, stored(store));
        store.close();
        store = open(AT_LEAST_ONCE);
        assertEquals(1, stored(store));
        store.close();
    }

    @Test
    void sessions_that_expired_are_hidden_before_the_commit() {
        SessionStore<Bytes, byte[]> store = TerraceStores.sessionStore("store", RETENTION).get();
        store.init(Contexts.context(directory, AT_LEAST_ONCE), store);
        store.put(new Windowed<>(KEY, new SessionWindow(10, 1000)), VALUE);
        store.commit(Map.of());
        Windowed<Bytes> later = new Windowed<>(KEY, new SessionWindow(LATER, LATER));
        store.put(later, VALUE);
        assertNull(store.fetchSession(KEY, 10, 1000));
        assertEquals(later, store.fetch(KEY).next().key);
        assertEquals(later, store.fetch(KEY, KEY).next().key);
        assertEquals(later, store.findSessions(KEY, 0, LATER).next().key);
        assertFalse(store.findSessions(0, LATER - 1).hasNext());
        store.close();
        store = TerraceStores.sessionStore("store", RETENTION).get();
        store.init(Contexts.context(directory, AT_LEAST_ONCE), store);
        assertArrayEquals(VALUE, store.fetchSession(KEY, 10, 1000));
        store.close();
    }

    private static long fill(WindowStore<Bytes, byte[]> store, long from) {
        long time = from;
        // Several times what may be buffered, a thousand segments.
        for (int i = 0; i < 5000; i++) {
            time += Duration.ofMinutes(1).toMillis();
            store.put(Bytes.wrap(("key" + i).getBytes()), VALUE, time);
        }
        return time;
    }

    @Test
    void a_spill_under_at_least_once_keeps_what_the_committed_offset_needs() {
        WindowStore<Bytes, byte[]> store = open(AT_LEAST_ONCE);
        store.committedOffset(CHANGELOG);
        store.put(KEY, VALUE, 1000);
        store.commit(Map.of(CHANGELOG, 1L));
        fill(store, 1000);
        store.close();
        store = open(AT_LEAST_ONCE);
        assertEquals(1, store.committedOffset(CHANGELOG));
        assertArrayEquals(VALUE, store.fetch(KEY, 1000));
        store.close();
    }

    @Test
    void a_spill_under_exactly_once_removes_what_has_expired() {
        WindowStore<Bytes, byte[]> store = open(EXACTLY_ONCE);
        store.committedOffset(CHANGELOG);
        store.put(KEY, VALUE, 1000);
        store.commit(Map.of(CHANGELOG, 1L));
        long last = fill(store, 1000);
        // Commits are rare under exactly-once, and disk space is not endless.
        assertTrue(stored(store) < 1500, () -> stored(store) + " entries");
        assertArrayEquals(VALUE, store.fetch(Bytes.wrap("key4999".getBytes()), last));
        store.close();
    }

    private static TerraceVersionedStore openVersioned(File directory) {
        TerraceVersionedStore store =
                new TerraceVersionedStore("store", Duration.ofMinutes(1).toMillis());
        store.init(Contexts.context(directory, AT_LEAST_ONCE), store);
        return store;
    }

    private static int stored(TerraceVersionedStore store) {
        int stored = 0;
        try (StoreIterator entries = store.file().range(null, null, true)) {
            while (entries.hasNext()) {
                entries.next();
                stored++;
            }
        }
        return stored;
    }

    @Test
    void versions_go_once_no_read_can_ask_for_them() {
        TerraceVersionedStore store = openVersioned(directory);
        Bytes kept = Bytes.wrap("kept".getBytes());
        store.put(kept, VALUE, 0);
        long time = 0;
        for (int i = 0; i < 2000; i++) {
            time += 1000;
            Bytes key = Bytes.wrap(("key" + i).getBytes());
            store.put(key, VALUE, time);
            store.put(key, null, time + 1);
            store.put(KEY, VALUE, time);
            if (i % 100 == 0) {
                store.commit(Map.of());
            }
        }
        store.commit(Map.of());
        // Of each of the last 60 seconds three versions and as many ends.
        int stored = stored(store);
        assertTrue(stored < 500, () -> stored + " entries");
        assertArrayEquals(VALUE, store.get(kept).value());
        assertArrayEquals(VALUE, store.get(kept, time - 1000).value());
        assertEquals(time - 5000, store.get(KEY, time - 4500).timestamp());
        assertArrayEquals(VALUE, store.get(Bytes.wrap("key1990".getBytes()), 1991_000).value());
        store.close();
        // What was there before is found by an open store, too.
        store = openVersioned(directory);
        store.put(kept, null, time + Duration.ofHours(1).toMillis());
        store.put(KEY, null, time + Duration.ofHours(1).toMillis());
        store.put(kept, VALUE, time + Duration.ofHours(2).toMillis());
        store.commit(Map.of());
        assertEquals(1, stored(store));
        store.close();
    }

    private static void replaces(byte[] value, byte[] by) {
        // A spill in the middle of the put, and behind it, and none.
        for (int size : new int[] {0, 700, 730, 760, 790, 800, 810, 830, 860, 900, 2000}) {
            File directory;
            try {
                directory = Contexts.directory();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            Map<String, String> settings = Map.of(Memory.BUFFER, "1000");
            TerraceVersionedStore store = new TerraceVersionedStore("store", 60_000);
            store.init(Contexts.context(directory, settings), store);
            Bytes filler = Bytes.wrap("filler".getBytes());
            store.put(KEY, VALUE, 1000);
            store.put(KEY, value, 5000);
            store.commit(Map.of());
            store.put(filler, new byte[size], 1000);
            store.put(KEY, by, 5000);
            // Without a commit this is what a killed process leaves. It reads the record again.
            store.close();
            store = new TerraceVersionedStore("store", 60_000);
            store.init(Contexts.context(directory, settings), store);
            store.put(KEY, by, 5000);
            store.put(filler, VALUE, LATER);
            store.put(Bytes.wrap("large".getBytes()), new byte[2000], LATER);
            store.close();
            store = new TerraceVersionedStore("store", 60_000);
            store.init(Contexts.context(directory, settings), store);
            store.put(KEY, by, 5000);
            store.put(filler, VALUE, LATER);
            store.commit(Map.of());
            String text = "with " + size + " bytes before it";
            if (by == null) {
                assertNull(store.get(KEY), text);
            } else {
                assertArrayEquals(by, store.get(KEY).value(), text);
            }
            store.close();
        }
    }

    @Test
    void what_replaces_a_version_survives_a_kill_at_any_spill() {
        replaces(null, VALUE);
        replaces(VALUE, null);
        replaces(null, null);
    }

    @Test
    void a_restored_versioned_store_keeps_what_one_keeps_that_was_written() throws Exception {
        Random random = Contexts.random("ExpiryTest restores");
        for (int run = 0; run < 20; run++) {
            TerraceVersionedStore written = openVersioned(Contexts.directory());
            TerraceVersionedStore restored = openVersioned(Contexts.directory());
            List<ConsumerRecord<byte[], byte[]>> batch = new ArrayList<>();
            long now = 0;
            for (int step = 0; step < 500; step++) {
                now += random.nextInt(20) == 0 ? 100_000 : random.nextInt(3000);
                long time = Math.max(0, now - random.nextInt(80_000));
                time = random.nextBoolean() ? time : time - time % 4000;
                byte[] key = ("key" + random.nextInt(random.nextBoolean() ? 3 : 50)).getBytes();
                byte[] value = random.nextInt(3) == 0 ? null : ("v" + step).getBytes();
                if (step == 499) {
                    now += LATER;
                    time = now;
                }
                if (written.put(Bytes.wrap(key), value, time) == NOT_PUT) {
                    continue;
                }
                batch.add(record(new String(key), value, time));
                if (random.nextInt(50) == 0 || step == 499) {
                    restored.restore(batch);
                    batch.clear();
                    assertEquals(texts(written), texts(restored));
                }
            }
            written.commit(Map.of());
            assertEquals(stored(written), stored(restored));
            assertTrue(stored(written) <= 52, () -> stored(written) + " entries");
            written.close();
            restored.close();
        }
    }


    private static ConsumerRecord<byte[], byte[]> record(String key, byte[] value, long time) {
        return new ConsumerRecord<>("changelog", 0, 0, time, TimestampType.CREATE_TIME,
                key.length(), 0, key.getBytes(), value, new RecordHeaders(), Optional.empty());
    }

    /** A record that comes before what is removed is not there alone after a kill. */
    @Test
    void a_replayed_record_does_not_outlive_the_deletion_that_was_removed() throws Exception {
        for (boolean restores : new boolean[] {true, false}) {
            File directory = Contexts.directory();
            TerraceVersionedStore store = openVersioned(directory);
            store.put(KEY, null, 5000);
            store.commit(Map.of(CHANGELOG, 1L));
            List<ConsumerRecord<byte[], byte[]>> later =
                    List.of(record("key", VALUE, 4000), record("other", VALUE, LATER));
            if (restores) {
                store.restore(later.subList(0, 1));
                store.restore(later.subList(1, 2));
            } else {
                store.put(KEY, VALUE, 4000);
                store.put(Bytes.wrap("other".getBytes()), VALUE, LATER);
                store.put(Bytes.wrap("large".getBytes()), new byte[200_000], LATER);
            }
            store.close();
            store = openVersioned(directory);
            store.restore(later);
            assertNull(store.get(KEY), "restores: " + restores);
            store.commit(Map.of(CHANGELOG, 3L));
            store.close();
            // After a commit stream time begins anew, as in Kafka's own store.
            store = openVersioned(directory);
            store.put(KEY, VALUE, 6000);
            assertArrayEquals(VALUE, store.get(KEY).value());
            store.close();
        }
    }

    /** The latest value of each key. */
    private static List<String> texts(TerraceVersionedStore store) {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            VersionedRecord<byte[]> found = store.get(Bytes.wrap(("key" + i).getBytes()));
            texts.add(found == null ? null : new String(found.value()) + found.timestamp());
        }
        return texts;
    }

    @Test
    void a_store_that_is_opened_again_is_restored_from_the_beginning() throws Exception {
        TerraceVersionedStore store = openVersioned(directory);
        store.put(KEY, VALUE, LATER);
        store.close();
        store.init(Contexts.context(Contexts.directory(), AT_LEAST_ONCE), store);
        store.restore(List.of(record("old", VALUE, 1000)));
        assertArrayEquals(VALUE, store.get(Bytes.wrap("old".getBytes())).value());
        store.close();
    }

    /** A deletion that is replaced at its own time ends nothing. */
    @Test
    void a_version_that_replaces_a_deletion_stays() {
        TerraceVersionedStore store = openVersioned(directory);
        store.put(KEY, null, 5000);
        store.put(KEY, VALUE, 5000);
        Bytes other = Bytes.wrap("other".getBytes());
        store.put(other, VALUE, 5000);
        store.put(other, null, 5000);
        store.put(Bytes.wrap("last".getBytes()), VALUE, LATER);
        store.commit(Map.of());
        assertArrayEquals(VALUE, store.get(KEY).value());
        assertNull(store.get(other));
        assertEquals(2, stored(store));
        store.close();
    }

    @Test
    void the_count_of_entries_does_not_grow_by_overwriting() {
        KeyValueStore<Bytes, byte[]> store = TerraceStores.keyValueStore("counted").get();
        store.init(Contexts.context(directory, Map.of()), store);
        byte[] value = new byte[1000];
        // Before anything is flushed, so that no compaction changes the count between two reads of it.
        for (int i = 0; i < 200; i++) {
            store.put(Bytes.wrap(("key" + i).getBytes()), value);
            if (i == 99) {
                assertEquals(100, store.approximateNumEntries());
                store.commit(Map.of());
                assertEquals(100, store.approximateNumEntries());
            }
        }
        assertEquals(200, store.approximateNumEntries());
        for (int round = 0; round < 100; round++) {
            for (int i = 0; i < 1000; i++) {
                // As an aggregation does. Where nothing is read, level 0 gathers.
                Bytes key = Bytes.wrap(("key" + i).getBytes());
                store.get(key);
                store.put(key, value);
            }
            store.commit(Map.of());
        }
        // Level 0 and a compaction that is due hold old values, too.
        ((TerraceKeyValueStore) store).file().waitIdle();
        long count = store.approximateNumEntries();
        assertTrue(count >= 500 && count < 20_000, () -> count + " entries");
        store.close();
        store = TerraceStores.keyValueStore("counted").get();
        store.init(Contexts.context(directory, Map.of()), store);
        assertTrue(store.approximateNumEntries() >= 500);
        store.close();
    }
}
