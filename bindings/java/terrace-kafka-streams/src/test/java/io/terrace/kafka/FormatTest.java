package io.terrace.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.spy;

import io.terrace.TerraceDb;
import io.terrace.TerraceOptions;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogCaptureAppender;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Files that another kind of store has written, or the same kind with other segments. */
class FormatTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final Bytes KEY = Bytes.wrap("key".getBytes());
    private static final byte[] VALUE = "value".getBytes();
    private static final Duration HOUR = Duration.ofHours(1);
    private static final Duration DAY = Duration.ofDays(1);

    private File directory;

    @BeforeEach
    void makeDirectory() throws Exception {
        directory = Contexts.directory();
    }

    private <T extends StateStore> T open(T store) {
        InternalMockProcessorContext<?, ?> context = Contexts.context(directory, Map.of());
        context.addChangelogForStore("store", CHANGELOG.topic());
        store.init(context, store);
        return store;
    }

    private <T extends StateStore> T openWithoutChangelog(T store) {
        store.init(Contexts.context(directory, Map.of()), store);
        return store;
    }

    private static void commit(StateStore store) {
        store.committedOffset(CHANGELOG);
        store.getPosition().withComponent("topic", 0, 7);
        store.commit(Map.of(CHANGELOG, 100L));
        store.close();
    }

    private void assertEmpty(StateStore store) {
        assertEquals(Position.emptyPosition(), store.getPosition());
        assertNull(store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void a_key_value_store_of_another_format_is_emptied_and_restored() {
        List<Supplier<KeyValueStore<Bytes, byte[]>>> kinds = List.of(
                () -> TerraceStores.keyValueStore("store").get(),
                () -> TerraceStores.timestampedKeyValueStore("store").get(),
                () -> TerraceStores.timestampedKeyValueStoreWithHeaders("store").get());
        for (Supplier<KeyValueStore<Bytes, byte[]>> kind : kinds) {
            for (Supplier<KeyValueStore<Bytes, byte[]>> later : kinds) {
                KeyValueStore<Bytes, byte[]> store = open(kind.get());
                store.put(KEY, VALUE);
                commit(store);
                store = open(later.get());
                if (kind == later) {
                    assertArrayEquals(VALUE, store.get(KEY));
                    assertEquals(100, store.committedOffset(CHANGELOG));
                    store.close();
                } else {
                    assertNull(store.get(KEY));
                    assertEmpty(store);
                }
            }
        }
    }

    @Test
    void another_kind_of_store_under_the_same_name_begins_empty() {
        KeyValueStore<Bytes, byte[]> plain = open(TerraceStores.keyValueStore("store").get());
        plain.put(KEY, VALUE);
        commit(plain);
        VersionedBytesStore versioned = (VersionedBytesStore)
                open(TerraceStores.versionedKeyValueStore("store", HOUR).get());
        assertNull(versioned.get(KEY));
        versioned.put(KEY, VALUE, 1);
        commit(versioned);
        WindowStore<Bytes, byte[]> windows =
                open(TerraceStores.windowStore("store", HOUR, HOUR, false).get());
        assertFalse(windows.all().hasNext());
        windows.put(KEY, VALUE, 1);
        commit(windows);
        SessionStore<Bytes, byte[]> sessions =
                open(TerraceStores.sessionStore("store", HOUR).get());
        assertFalse(sessions.fetch(KEY).hasNext());
        assertEmpty(sessions);
    }

    @Test
    void a_file_of_unknown_format_is_emptied() throws Exception {
        KeyValueStore<Bytes, byte[]> store = open(TerraceStores.keyValueStore("store").get());
        store.put(KEY, VALUE);
        commit(store);
        try (TerraceDb db = database()) {
            db.delete(new byte[] {0, 'f'});
        }
        store = open(TerraceStores.keyValueStore("store").get());
        assertNull(store.get(KEY));
        assertEmpty(store);
    }

    @Test
    void without_a_changelog_a_store_of_another_format_is_refused_and_kept() {
        KeyValueStore<Bytes, byte[]> plain =
                openWithoutChangelog(TerraceStores.keyValueStore("store").get());
        plain.put(KEY, VALUE);
        commit(plain);
        List<Supplier<? extends StateStore>> others = List.of(
                () -> TerraceStores.timestampedKeyValueStore("store").get(),
                () -> TerraceStores.versionedKeyValueStore("store", HOUR).get(),
                () -> TerraceStores.windowStore("store", HOUR, HOUR, false).get(),
                () -> TerraceStores.sessionStore("store", HOUR).get());
        for (Supplier<? extends StateStore> other : others) {
            String refused = assertThrows(ProcessorStateException.class,
                    () -> openWithoutChangelog(other.get())).getMessage();
            assertTrue(refused.contains("\"key-value, plain\""), refused);
            assertTrue(refused.contains("remove the directory"), refused);
        }
        plain = openWithoutChangelog(TerraceStores.keyValueStore("store").get());
        assertArrayEquals(VALUE, plain.get(KEY));
        assertEquals(100, plain.committedOffset(CHANGELOG));
        plain.close();
    }

    @Test
    void without_a_changelog_a_changed_retention_is_refused_and_windows_are_kept() {
        WindowStore<Bytes, byte[]> windows = openWithoutChangelog(
                TerraceStores.windowStore("store", HOUR, HOUR, false).get());
        windows.put(KEY, VALUE, 1);
        commit(windows);
        String refused = assertThrows(ProcessorStateException.class, () -> openWithoutChangelog(
                TerraceStores.windowStore("store", DAY, HOUR, false).get())).getMessage();
        assertTrue(refused.contains("segments of " + HOUR.toMillis() / 2 + " ms"), refused);
        assertTrue(refused.contains("segments of " + DAY.toMillis() / 2 + " ms"), refused);
        windows = openWithoutChangelog(
                TerraceStores.windowStore("store", HOUR, HOUR, false).get());
        assertArrayEquals(VALUE, windows.fetch(KEY, 1));
        windows.close();
    }

    @Test
    void without_a_changelog_a_file_of_unknown_format_is_refused() throws Exception {
        try (TerraceDb db = database()) {
            db.put(VALUE, VALUE);
        }
        String refused = assertThrows(ProcessorStateException.class, () -> openWithoutChangelog(
                TerraceStores.keyValueStore("store").get())).getMessage();
        assertTrue(refused.contains("no recorded format"), refused);
        try (TerraceDb db = database()) {
            assertArrayEquals(VALUE, db.get(VALUE));
        }
    }

    @Test
    void without_a_changelog_an_empty_store_changes_its_format() {
        commit(openWithoutChangelog(TerraceStores.keyValueStore("store").get()));
        WindowStore<Bytes, byte[]> windows = openWithoutChangelog(
                TerraceStores.windowStore("store", HOUR, HOUR, false).get());
        assertEmpty(windows);
    }

    @Test
    void a_warning_is_logged_when_entries_are_removed() {
        try (LogCaptureAppender log = LogCaptureAppender.createAndRegister(StoreFile.class)) {
            KeyValueStore<Bytes, byte[]> store = open(TerraceStores.keyValueStore("store").get());
            commit(store);
            store = open(TerraceStores.timestampedKeyValueStore("store").get());
            store.put(KEY, VALUE);
            commit(store);
            assertEquals(List.of(), log.getMessages("WARN"));
            open(TerraceStores.keyValueStore("store").get()).close();
            List<String> warnings = log.getMessages("WARN");
            assertEquals(1, warnings.size());
            assertTrue(warnings.get(0).contains("\"key-value, timestamps\""), warnings.get(0));
            assertTrue(warnings.get(0).contains("restored from its changelog changelog"),
                    warnings.get(0));
        }
    }

    /** Through a task's context: the file is where a driver's only task has its store. */
    @Test
    void a_task_whose_store_has_no_changelog_is_refused() throws Exception {
        directory = new File(directory, "application/0_0");
        for (boolean logged : new boolean[] {false, true}) {
            KeyValueStore<Bytes, byte[]> plain = open(TerraceStores.keyValueStore("store").get());
            plain.put(KEY, VALUE);
            commit(plain);
            if (logged) {
                runTask(true);
            } else {
                String refused = assertThrows(ProcessorStateException.class, () -> runTask(false))
                        .getMessage();
                assertTrue(refused.contains("\"key-value, plain\""), refused);
            }
        }
    }

    private void runTask(boolean logged) {
        StreamsBuilder builder = new StreamsBuilder();
        Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counts = Materialized.as(
                TerraceStores.timestampedKeyValueStore("store"));
        builder.<String, String>stream("input").groupByKey()
                .count(logged ? counts : counts.withLoggingDisabled());
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.STATE_DIR_CONFIG,
                directory.getParentFile().getParentFile().toString());
        new TopologyTestDriver(builder.build(), settings).close();
    }

    private TerraceDb database() throws Exception {
        File file = new File(new File(
                Contexts.context(directory, Map.of()).stateDir(), "terrace"), "store");
        return TerraceDb.open(file.toPath(), new TerraceOptions());
    }

    @Test
    void segments_of_another_interval_are_not_read() {
        long now = 1_800_000_000_000L;
        WindowStore<Bytes, byte[]> windows =
                open(TerraceStores.windowStore("store", HOUR, HOUR, false).get());
        windows.put(KEY, VALUE, now);
        commit(windows);
        // As long as the interval is the same the entries are found.
        windows = open(TerraceStores.windowStore("store", HOUR, Duration.ZERO, false).get());
        assertArrayEquals(VALUE, windows.fetch(KEY, now));
        windows.close();
        windows = open(TerraceStores.windowStore("store", DAY, HOUR, false).get());
        assertNull(windows.fetch(KEY, now));
        windows.put(KEY, VALUE, now);
        try (KeyValueIterator<Windowed<Bytes>, byte[]> all = windows.all()) {
            assertEquals(now, all.next().key.window().start());
            assertFalse(all.hasNext());
        }
        assertNull(windows.committedOffset(CHANGELOG));
        windows.close();
    }

    @Test
    void sessions_of_another_interval_are_not_read() {
        long now = 1_800_000_000_000L;
        Windowed<Bytes> session = new Windowed<>(KEY, new SessionWindow(now, now));
        SessionStore<Bytes, byte[]> sessions =
                open(TerraceStores.sessionStore("store", DAY).get());
        sessions.put(session, VALUE);
        commit(sessions);
        sessions = open(TerraceStores.sessionStore("store", HOUR).get());
        assertFalse(sessions.fetch(KEY).hasNext());
        sessions.put(session, VALUE);
        assertEquals(session, sessions.fetch(KEY).next().key);
        assertNull(sessions.committedOffset(CHANGELOG));
        sessions.close();
    }

    /** Without expiry in between, for nothing observes time when a file is opened. */
    @Test
    void entries_far_apart_are_found_without_a_range_for_each_segment_between() {
        long minute = 60_000;
        long far = 1L << 50;
        List<Long> times = List.of(0L, 5 * minute, 100 * minute, far - minute, far);
        for (boolean reopen : new boolean[] {false, true}) {
            TerraceWindowStore windows =
                    open(new TerraceWindowStore("store", Long.MAX_VALUE / 2, minute, 1, false));
            if (!reopen) {
                times.forEach(time -> windows.put(KEY, VALUE, time));
            }
            assertTimeout(Duration.ofSeconds(20), () -> {
                assertEquals(times, times(windows.all()));
                assertEquals(reversed(times), times(windows.backwardAll()));
                assertEquals(times, times(windows.fetch(KEY, KEY, 0, far)));
                assertEquals(times.subList(1, 4),
                        times(windows.fetchAll(minute, far - 1)));
                for (boolean forward : new boolean[] {true, false}) {
                    List<Long> found = new ArrayList<>();
                    try (var iterator = forward
                            ? windows.fetch(KEY, 0, far)
                            : windows.backwardFetch(KEY, 0, far)) {
                        iterator.forEachRemaining(entry -> found.add(entry.key));
                    }
                    assertEquals(forward ? times : reversed(times), found);
                }
            });
            windows.commit(Map.of());
            windows.close();
        }
    }

    private static List<Long> reversed(List<Long> list) {
        List<Long> reversed = new ArrayList<>(list);
        Collections.reverse(reversed);
        return reversed;
    }

    private static List<Long> times(KeyValueIterator<Windowed<Bytes>, byte[]> windows) {
        List<Long> times = new ArrayList<>();
        try (windows) {
            windows.forEachRemaining(entry -> times.add(entry.key.window().start()));
        }
        return times;
    }

    @Test
    void a_store_that_cannot_be_opened_leaves_no_lock() throws Exception {
        KeyValueStore<Bytes, byte[]> store = open(TerraceStores.keyValueStore("store").get());
        commit(store);
        try (TerraceDb db = database()) {
            db.put(new byte[] {0, 'q'}, new byte[] {1});
        }
        assertThrows(RuntimeException.class,
                () -> open(TerraceStores.keyValueStore("store").get()));
        try (TerraceDb db = database()) {
            assertTrue(db.verify().isClean());
        }
    }

    @Test
    void a_store_that_cannot_be_registered_leaves_no_lock() throws Exception {
        InternalMockProcessorContext<?, ?> context = spy(Contexts.context(directory, Map.of()));
        doThrow(new StreamsException("registered")).when(context).register(any(), any(), any());
        KeyValueStore<Bytes, byte[]> store = TerraceStores.keyValueStore("store").get();
        assertThrows(StreamsException.class, () -> store.init(context, store));
        assertFalse(store.isOpen());
        try (TerraceDb db = database()) {
            assertTrue(db.verify().isClean());
        }
    }
}
