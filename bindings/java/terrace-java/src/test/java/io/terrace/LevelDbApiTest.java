package io.terrace;

import static io.terrace.TerraceFactory.asString;
import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.iq80.leveldb.CompressionType;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.DBComparator;
import org.iq80.leveldb.DBException;
import org.iq80.leveldb.DBIterator;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.Range;
import org.iq80.leveldb.ReadOptions;
import org.iq80.leveldb.Snapshot;
import org.iq80.leveldb.WriteBatch;
import org.iq80.leveldb.WriteOptions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What iq80's and leveldbjni's own tests expect of an implementation of leveldb-api. */
class LevelDbApiTest {
    private TestDirectory directory;
    private File path;
    private DB db;

    @BeforeEach
    void open() throws IOException {
        directory = new TestDirectory();
        path = directory.file("db");
        db = factory.open(path, new Options());
    }

    @AfterEach
    void close() throws IOException {
        db.close();
        directory.close();
    }

    private void reopen(Options options) throws IOException {
        db.close();
        db = factory.open(path, options);
    }

    private void put(String key, String value) {
        db.put(bytes(key), bytes(value));
    }

    private String get(String key) {
        return asString(db.get(bytes(key)));
    }

    private List<String> keys(DBIterator iterator) throws IOException {
        List<String> keys = new ArrayList<>();
        try (iterator) {
            for (iterator.seekToFirst(); iterator.hasNext(); iterator.next()) {
                keys.add(asString(iterator.peekNext().getKey()));
            }
        }
        return keys;
    }

    @Test
    void an_empty_database_has_no_value_and_no_entry() throws IOException {
        assertNull(get("foo"));
        DBIterator iterator = db.iterator();
        assertFalse(iterator.hasNext());
        iterator.seekToFirst();
        assertFalse(iterator.hasNext());
        iterator.seekToLast();
        assertFalse(iterator.hasNext());
        assertFalse(iterator.hasPrev());
        iterator.seek(bytes("foo"));
        assertFalse(iterator.hasNext());
        assertThrows(NoSuchElementException.class, iterator::next);
        assertThrows(NoSuchElementException.class, iterator::prev);
        assertThrows(NoSuchElementException.class, iterator::peekNext);
        assertThrows(NoSuchElementException.class, iterator::peekPrev);
        iterator.close();
    }

    @Test
    void an_empty_batch_survives_a_reopening() throws IOException {
        try (WriteBatch batch = db.createWriteBatch()) {
            db.write(batch);
        }
        reopen(new Options());
        assertNull(get("foo"));
    }

    @Test
    void writes_are_read_overwritten_and_deleted() {
        put("Tampa", "green");
        put("London", "red");
        assertEquals("green", get("Tampa"));
        put("Tampa", "blue");
        assertEquals("blue", get("Tampa"));
        WriteOptions sync = new WriteOptions().sync(true);
        assertNull(db.delete(bytes("Tampa"), sync));
        assertNull(get("Tampa"));
        db.delete(bytes("Tampa"));
        assertEquals("red", get("London"));
        db.put(bytes("empty"), new byte[0]);
        assertArrayEquals(new byte[0], db.get(bytes("empty")));
        db.put(new byte[0], bytes("of the empty key"));
        assertEquals("of the empty key", get(""));
    }

    @Test
    void values_come_from_memory_and_from_every_level() throws IOException {
        put("foo", "v1");
        ((TerraceDb) db).flush();
        assertEquals("v1", get("foo"));
        put("foo", "v2");
        assertEquals("v2", get("foo"));
        ((TerraceDb) db).flush();
        db.compactRange(bytes("a"), bytes("z"));
        assertEquals("v2", get("foo"));
        reopen(new Options());
        assertEquals("v2", get("foo"));
        db.compactRange(null, null);
        assertEquals("v2", get("foo"));
    }

    @Test
    void a_snapshot_keeps_its_view_across_flushes_and_compactions() throws IOException {
        for (int compacted = 0; compacted < 2; compacted++) {
            put("foo", "v1");
            Snapshot first = db.getSnapshot();
            put("foo", "v2");
            Snapshot second =
                    db.put(bytes("foo"), bytes("v3"), new WriteOptions().snapshot(true));
            put("foo", "v4");
            if (compacted == 1) {
                db.compactRange(null, null);
            }
            ReadOptions read = new ReadOptions().snapshot(first);
            assertEquals("v1", asString(db.get(bytes("foo"), read)));
            assertEquals(List.of("foo"), keys(db.iterator(read)));
            assertEquals("v3", asString(db.get(bytes("foo"), new ReadOptions().snapshot(second))));
            assertEquals("v4", get("foo"));
            first.close();
            assertThrows(DBException.class, () -> db.get(bytes("foo"), read));
            read.snapshot(null);
            assertEquals("v4", asString(db.get(bytes("foo"), read)));
            second.close();
        }
    }

    @Test
    void a_batch_applies_its_operations_in_order() throws IOException {
        put("NA", "Na");
        WriteBatch batch = db.createWriteBatch();
        batch.delete(bytes("NA")).put(bytes("Tampa"), bytes("red"));
        batch.put(bytes("Tampa"), bytes("green")).put(bytes("London"), bytes("red"));
        batch.put(bytes("New York"), bytes("blue"));
        db.write(batch);
        assertEquals(List.of("London", "New York", "Tampa"), keys(db.iterator()));
        assertEquals("green", get("Tampa"));
        db.delete(bytes("London"));
        db.write(batch);
        batch.close();
        batch.close();
        assertEquals("red", get("London"));
        assertThrows(DBException.class, () -> batch.put(bytes("a"), bytes("b")));
        assertThrows(DBException.class, () -> db.write(batch));
    }

    @Test
    void an_iterator_shows_the_moment_at_which_it_was_made() throws IOException {
        put("foo", "v1");
        DBIterator iterator = db.iterator();
        put("foo", "v2");
        for (int i = 0; i < 100; i++) {
            put("foo" + i, "x".repeat(10_000));
        }
        db.compactRange(null, null);
        iterator.seekToFirst();
        Map.Entry<byte[], byte[]> entry = iterator.next();
        assertEquals("foo", asString(entry.getKey()));
        assertEquals("v1", asString(entry.getValue()));
        assertFalse(iterator.hasNext());
        iterator.close();
    }

    @Test
    void an_iterator_moves_both_ways_and_by_seeks() throws IOException {
        for (String key : List.of("025", "050", "075")) {
            put(key, "v" + key);
        }
        try (DBIterator it = db.iterator()) {
            assertEquals("025", asString(it.peekNext().getKey()));
            assertFalse(it.hasPrev());
            it.seek(bytes("001"));
            assertEquals("v025", asString(it.next().getValue()));
            assertEquals("050", asString(it.peekNext().getKey()));
            assertEquals("025", asString(it.peekPrev().getKey()));
            assertEquals("025", asString(it.prev().getKey()));
            assertFalse(it.hasPrev());
            assertThrows(NoSuchElementException.class, it::prev);
            it.seek(bytes("050"));
            assertEquals("025", asString(it.prev().getKey()));
            it.seek(bytes("100"));
            assertFalse(it.hasNext());
            assertEquals("075", asString(it.prev().getKey()));
            assertEquals("075", asString(it.next().getKey()));
            it.seekToLast();
            assertEquals("075", asString(it.peekNext().getKey()));
            assertEquals("050", asString(it.prev().getKey()));
            assertEquals("025", asString(it.prev().getKey()));
            assertThrows(NoSuchElementException.class, it::peekPrev);
            assertThrows(UnsupportedOperationException.class, it::remove);
        }
    }

    @Test
    void data_is_recovered_from_a_large_log() throws IOException {
        reopen(new Options().writeBufferSize(1 << 20));
        put("big1", "1".repeat(200_000));
        put("big2", "2".repeat(200_000));
        put("small3", "3".repeat(10));
        reopen(new Options().writeBufferSize(100_000));
        assertEquals("1".repeat(200_000), get("big1"));
        assertEquals("2".repeat(200_000), get("big2"));
        assertEquals("3".repeat(10), get("small3"));
    }

    @Test
    void flushes_and_compactions_happen_and_lose_nothing() throws IOException {
        reopen(new Options().writeBufferSize(10_000).compressionType(CompressionType.NONE));
        int entries = 2000;
        for (int i = 0; i < entries; i++) {
            put("key" + i, "key" + i + "v".repeat(1000));
        }
        assertTrue(((TerraceDb) db).stats().get("flush_bytes_written") > 0);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < entries; i++) {
                assertEquals("key" + i + "v".repeat(1000), get("key" + i));
            }
            reopen(new Options());
        }
    }

    @Test
    void repeated_writes_of_one_key_do_not_pile_up() throws IOException {
        reopen(new Options().writeBufferSize(100_000));
        String value = "v".repeat(200_000);
        for (int i = 0; i < 40; i++) {
            put("key", value + i);
        }
        db.compactRange(null, null);
        assertEquals(value + 39, get("key"));
        long files = 0;
        for (int level = 0; level < 7; level++) {
            files += Long.parseLong(db.getProperty("leveldb.num-files-at-level" + level));
        }
        assertTrue(files <= 2, files + " files");
    }

    @Test
    void sizes_of_ranges_grow_with_what_is_in_them() throws IOException {
        reopen(new Options().compressionType(CompressionType.NONE));
        for (int i = 0; i < 80; i++) {
            put(String.format("key%03d", i), "v".repeat(100_000));
        }
        db.compactRange(null, null);
        long[] sizes = db.getApproximateSizes(
                new Range(bytes("key000"), bytes("key040")), new Range(bytes("xyz"), bytes("zzz")));
        assertEquals(2, sizes.length);
        assertTrue(Math.abs(sizes[0] - 4_000_000) < 250_000, sizes[0] + " bytes");
        assertEquals(0, sizes[1]);
        assertEquals(0, db.getApproximateSizes().length);
    }

    @Test
    void properties_have_leveldbs_names() {
        assertTrue(db.getProperty("leveldb.stats").contains("Compactions"));
        assertNotNull(db.getProperty("leveldb.sstables"));
        assertEquals("0", db.getProperty("leveldb.num-files-at-level0"));
        assertNull(db.getProperty("leveldb.nothing"));
    }

    /** An order of strings, or its reverse. */
    private record StringOrder(int sign) implements DBComparator {
        @Override
        public int compare(byte[] left, byte[] right) {
            return sign * asString(left).compareTo(asString(right));
        }

        @Override
        public String name() {
            return "test.StringOrder" + sign;
        }

        @Override
        public byte[] findShortestSeparator(byte[] start, byte[] limit) {
            return start;
        }

        @Override
        public byte[] findShortSuccessor(byte[] key) {
            return key;
        }
    }

    @Test
    void a_comparator_of_java_orders_the_database() throws IOException {
        for (int sign : new int[] {1, -1}) {
            Options options =
                    new Options().comparator(new StringOrder(sign)).writeBufferSize(64 << 10);
            File place = directory.file("order" + sign);
            List<String> expected = new ArrayList<>();
            try (DB ordered = factory.open(place, options)) {
                for (int i = 0; i < 2000; i++) {
                    String key = String.format("%04d", i * 7 % 2000);
                    expected.add(key);
                    ordered.put(bytes(key), bytes("v".repeat(100)));
                }
                ordered.compactRange(null, null);
            }
            Collections.sort(expected);
            if (sign < 0) {
                Collections.reverse(expected);
            }
            try (DB ordered = factory.open(place, options)) {
                assertEquals(expected, keys(ordered.iterator()));
                assertNotNull(ordered.get(bytes("1234")));
            }
            assertThrows(IOException.class, () -> factory.open(place, new Options()));
        }
    }

    @Test
    void a_logger_of_java_hears_of_background_work() throws IOException {
        List<String> messages = Collections.synchronizedList(new ArrayList<>());
        reopen(new Options().writeBufferSize(64 << 10).logger(messages::add));
        for (int i = 0; i < 1000; i++) {
            put("row" + i, "v".repeat(1000));
        }
        db.compactRange(null, null);
        db.close();
        assertFalse(messages.isEmpty());
    }

    @Test
    void compactions_are_suspended_and_resumed() throws Exception {
        db.suspendCompactions();
        long files = path.list().length;
        for (int i = 0; i < 100; i++) {
            put("row" + i, "v".repeat(1000));
        }
        assertEquals(files, path.list().length);
        db.resumeCompactions();
        db.suspendCompactions();
        db.suspendCompactions();
        Thread.currentThread().interrupt();
        try {
            db.suspendCompactions();
        } catch (InterruptedException e) {
            // Only if jobs were running.
        }
        Thread.interrupted();
        // Closing resumes.
        reopen(new Options());
        assertEquals("v".repeat(1000), get("row99"));
    }

    @Test
    void opening_fails_with_an_io_exception_that_says_why() throws IOException {
        File other = directory.file("other");
        assertThrows(IOException.class,
                () -> factory.open(other, new Options().createIfMissing(false)));
        db.close();
        assertThrows(IOException.class,
                () -> factory.open(path, new Options().errorIfExists(true)));
        Files.createFile(other.toPath());
        IOException file =
                assertThrows(IOException.class, () -> factory.open(other, new Options()));
        assertTrue(file.getMessage().contains("other"), file.getMessage());
        File below = directory.file("new/directories/for it");
        factory.open(below, new Options()).close();
        assertTrue(below.isDirectory());
    }

    @Test
    void a_database_is_destroyed_and_repaired() throws IOException {
        put("foo", "bar");
        db.close();
        factory.repair(path, new Options());
        reopen(new Options());
        assertEquals("bar", get("foo"));
        db.close();
        factory.destroy(path, new Options());
        factory.destroy(path, new Options());
        db = factory.open(path, new Options());
        assertNull(get("foo"));
    }

    @Test
    void a_closed_database_throws_db_exception() throws IOException {
        db.close();
        assertThrows(DBException.class, () -> db.iterator());
        assertThrows(DBException.class, () -> get("foo"));
        assertThrows(DBException.class, () -> put("foo", "bar"));
    }
}
