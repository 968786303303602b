package io.terrace;

import static io.terrace.TerraceFactory.asString;
import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.ReadOptions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What {@link TerraceDb} has beyond leveldb-api. */
class TerraceDbTest {
    private TestDirectory directory;
    private TerraceDb db;

    @BeforeEach
    void open() throws IOException {
        directory = new TestDirectory();
        db = factory.open(directory.file("db"), new Options());
    }

    @AfterEach
    void close() throws IOException {
        db.close();
        directory.close();
    }

    private static ByteBuffer direct(String text) {
        byte[] bytes = bytes(text);
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length + 5);
        buffer.position(3);
        buffer.put(bytes).limit(buffer.position()).position(3);
        return buffer;
    }

    @Test
    void direct_buffers_carry_keys_and_values() {
        db.put(direct("key"), direct("a value"));
        assertEquals("a value", asString(db.get(bytes("key"))));
        ByteBuffer value = ByteBuffer.allocateDirect(100).position(10);
        assertEquals(7, db.get(direct("key"), value));
        byte[] found = new byte[value.remaining()];
        value.get(found);
        assertEquals("a value", asString(found));
        ByteBuffer small = ByteBuffer.allocateDirect(3);
        assertEquals(7, db.get(direct("key"), small));
        assertEquals('v', "a value".charAt(2));
        assertEquals((byte) 'v', small.get(2));
        assertEquals(3, small.limit());
        assertEquals(-1, db.get(direct("other"), value));
        db.put(direct(""), direct(""));
        assertEquals(0, db.get(direct(""), ByteBuffer.allocateDirect(0)));
        ByteBuffer heap = ByteBuffer.allocate(10);
        assertThrows(IllegalArgumentException.class, () -> db.get(direct("key"), heap));
        assertThrows(IllegalArgumentException.class, () -> db.put(heap, direct("x")));
        assertThrows(IllegalArgumentException.class,
                () -> db.get(direct("key"), ByteBuffer.allocateDirect(9).asReadOnlyBuffer()));
    }

    @Test
    void many_keys_are_read_at_once() {
        List<byte[]> keys = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            keys.add(bytes("key" + i));
            if (i % 3 != 0) {
                db.put(bytes("key" + i), bytes("v".repeat(i)));
            }
        }
        byte[][] values;
        try (TerraceSnapshot snapshot = db.getSnapshot()) {
            db.delete(bytes("key1"));
            values = db.multiGet(keys, new ReadOptions().snapshot(snapshot));
        }
        assertEquals(1000, values.length);
        for (int i = 0; i < 1000; i++) {
            assertEquals(i % 3 == 0 ? null : "v".repeat(i), asString(values[i]));
        }
        assertNull(db.multiGet(keys)[1]);
        assertEquals(0, db.multiGet(List.of()).length);
    }

    @Test
    void a_range_is_removed_at_once() {
        for (int i = 0; i < 3000; i++) {
            db.put(bytes(String.format("%04d", i)), bytes("v".repeat(100)));
        }
        db.deleteRange(bytes("0100"), bytes("2900"));
        try (TerraceIterator iterator = db.iterator()) {
            assertEquals(200, iterator.nextBatch(3000).size());
        }
        db.flush();
        assertTrue(db.stats().get("table_entries") >= 200, () -> db.stats().toString());
        db.deleteRange(null, null);
        assertFalse(db.iterator().hasNext());
    }

    @Test
    void a_transaction_sees_its_writes_and_conflicts_with_others() {
        db.put(bytes("a"), bytes("1"));
        try (TerraceTransaction transaction = db.transaction()) {
            transaction.put(bytes("b"), bytes("2"));
            transaction.setSavepoint();
            transaction.delete(bytes("a"));
            assertNull(transaction.get(bytes("a")));
            transaction.rollbackToSavepoint();
            assertEquals("1", asString(transaction.getForUpdate(bytes("a"))));
            assertNull(db.get(bytes("b")));
            transaction.commit(true);
            assertThrows(ClosedException.class, () -> transaction.get(bytes("a")));
        }
        assertEquals("2", asString(db.get(bytes("b"))));
        try (TerraceTransaction transaction = db.transaction()) {
            transaction.getForUpdate(bytes("a"));
            transaction.put(bytes("c"), bytes("3"));
            db.put(bytes("a"), bytes("4"));
            assertThrows(ConflictException.class, transaction::commit);
        }
        assertNull(db.get(bytes("c")));
        TerraceTransaction dropped = db.transaction();
        dropped.put(bytes("d"), bytes("5"));
        dropped.close();
        dropped.close();
        assertNull(db.get(bytes("d")));
        assertThrows(ClosedException.class, () -> dropped.get(bytes("a")));
    }

    @Test
    void a_transaction_iterates_over_what_it_sees() {
        for (int i = 0; i < 1000; i++) {
            db.put(bytes(String.format("%04d", i)), bytes("old"));
        }
        try (TerraceTransaction transaction = db.transaction()) {
            for (int i = 0; i < 1000; i += 2) {
                transaction.delete(bytes(String.format("%04d", i)));
            }
            transaction.put(bytes("0500x"), bytes("new"));
            Iterator<Map.Entry<byte[], byte[]>> range = transaction.range(bytes("0100"), null);
            List<String> keys = new ArrayList<>();
            range.forEachRemaining(entry -> keys.add(asString(entry.getKey())));
            assertEquals(451, keys.size());
            assertEquals("0101", keys.get(0));
            assertTrue(keys.contains("0500x"));
        }
    }

    /** What the program does with arrays that it got or gave is nothing to the transaction. */
    @Test
    void a_transactions_entries_do_not_depend_on_arrays_of_the_program() {
        for (int i = 0; i < 1000; i++) {
            db.put(bytes(String.format("%04d", i)), new byte[1000]);
        }
        byte[] from = bytes("0100");
        byte[] to = bytes("0900");
        try (TerraceTransaction transaction = db.transaction()) {
            Iterator<Map.Entry<byte[], byte[]>> range = transaction.range(from, to);
            Arrays.fill(from, (byte) 0xff);
            Arrays.fill(to, (byte) 0);
            List<String> keys = new ArrayList<>();
            range.forEachRemaining(entry -> {
                keys.add(asString(entry.getKey()));
                Arrays.fill(entry.getKey(), (byte) 0xff);
            });
            assertEquals(800, keys.size());
            assertEquals("0899", keys.get(799));
        }
    }

    /** A copy of the files of a suspended database must not change under the copying hand. */
    @Test
    void suspended_compactions_hold_up_those_that_are_asked_for() throws Exception {
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 1000; i++) {
                db.put(bytes("key" + i), new byte[100]);
            }
            db.flush();
        }
        db.waitIdle();
        db.suspendCompactions();
        List<String> before = Arrays.asList(directory.file("db").list());
        List<Thread> threads = new ArrayList<>();
        List<Runnable> changes = List.of(() -> db.compactRange(null, null),
                () -> db.deleteRange(bytes("key1"), bytes("key2")));
        for (Runnable change : changes) {
            Thread thread = new Thread(change);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            // It waits, or would be at its end soon.
            while (thread.getState() == Thread.State.NEW) {
                Thread.onSpinWait();
            }
            thread.join(500);
            assertTrue(thread.isAlive());
        }
        assertEquals(Set.copyOf(before), Set.of(directory.file("db").list()));
        db.resumeCompactions();
        for (Thread thread : threads) {
            thread.join();
        }
        assertNull(db.get(bytes("key1")));
    }

    @Test
    void a_bulk_load_becomes_visible_at_its_end() {
        db.put(bytes("key5"), bytes("before"));
        try (BulkLoad load = db.bulkLoad()) {
            for (int i = 0; i < 50_000; i++) {
                load.put(bytes("key" + i), bytes("loaded" + i));
            }
            assertNull(db.get(bytes("key7")));
            assertEquals(50_000, load.finish());
            assertThrows(ClosedException.class, load::finish);
        }
        assertEquals("loaded5", asString(db.get(bytes("key5"))));
        try (BulkLoad load = db.bulkLoad()) {
            load.put(bytes("given up"), bytes("x"));
        }
        assertNull(db.get(bytes("given up")));
    }

    @Test
    void a_checkpoint_is_a_database_of_its_own() throws IOException {
        db.put(bytes("a"), bytes("1"));
        Path copy = directory.path("copy");
        db.checkpoint(copy);
        db.put(bytes("a"), bytes("2"));
        try (TerraceDb other = TerraceDb.open(copy, new TerraceOptions().readOnly(true))) {
            assertEquals("1", asString(other.get(bytes("a"))));
            TerraceException refused = assertThrows(TerraceException.class,
                    () -> other.put(bytes("a"), bytes("3")));
            assertEquals(TerraceException.Kind.NOT_SUPPORTED, refused.kind());
        }
        TerraceException there =
                assertThrows(TerraceException.class, () -> db.checkpoint(copy));
        assertEquals(TerraceException.Kind.INVALID_ARGUMENT, there.kind());
    }

    @Test
    void large_values_go_to_value_files() throws IOException {
        TerraceOptions options = new TerraceOptions().valueLog(4096);
        Path path = directory.path("values");
        try (TerraceDb values = TerraceDb.open(path, options)) {
            values.put(bytes("large"), new byte[5000]);
            values.put(bytes("small"), bytes("1"));
            values.compactRange(null, null);
            assertEquals(1, values.stats().get("value_files"));
            assertEquals(5000, values.stats().get("value_bytes_used"));
            assertEquals(5000, values.get(bytes("large")).length);
        }
        assertThrows(IOException.class, () -> TerraceDb.open(directory.path("negative"),
                new TerraceOptions().valueLog(-1)));
    }

    @Test
    void a_check_finds_a_flipped_byte_and_reads_name_the_file() throws IOException {
        for (int i = 0; i < 1000; i++) {
            db.put(bytes("key" + i), bytes("value" + i));
        }
        db.flush();
        VerifyReport clean = db.verify();
        assertTrue(clean.isClean(), clean.toString());
        assertTrue(clean.files() > 0 && clean.blocks() > 0 && clean.bytes() > 0);
        assertEquals(1000, clean.entries());
        db.close();
        flip(directory.path("db"), 100);
        db = factory.open(directory.file("db"), new Options());
        VerifyReport damaged = db.verify();
        assertFalse(damaged.isClean());
        assertTrue(damaged.problems().get(0).contains(".ldb"), damaged.toString());
        CorruptionException error = assertThrows(CorruptionException.class, () -> {
            for (int i = 0; i < 1000; i++) {
                db.get(bytes("key" + i));
            }
        });
        assertTrue(error.getMessage().contains(".ldb"), error.getMessage());
    }

    private static void flip(Path database, int offset) throws IOException {
        try (Stream<Path> files = Files.list(database)) {
            Path table = files.filter(file -> file.toString().endsWith(".ldb")).findFirst().get();
            try (RandomAccessFile file = new RandomAccessFile(table.toFile(), "rw")) {
                file.seek(offset);
                int old = file.read();
                file.seek(offset);
                file.write(old ^ 1);
            }
        }
    }

    @Test
    void databases_share_a_cache_and_tell_numbers() throws IOException {
        try (SharedCache cache = new SharedCache(1 << 20)) {
            TerraceOptions options = new TerraceOptions().cache(cache).filterBits(0);
            TerraceDb one = TerraceDb.open(directory.path("one"), options);
            TerraceDb two = TerraceDb.open(directory.path("two"), options);
            cache.close();
            one.put(bytes("a"), bytes("v".repeat(1000)));
            one.flush();
            one.get(bytes("a"));
            Map<String, Long> stats = two.stats();
            assertEquals(1 << 20, stats.get("cache_capacity"));
            assertTrue(one.stats().get("user_bytes_written") > 1000, () -> one.stats().toString());
            one.close();
            two.close();
            assertThrows(IOException.class, () -> TerraceDb.open(directory.path("three"), options));
        }
        assertThrows(TerraceException.class, () -> new SharedCache(-1));
        assertThrows(IOException.class, () -> TerraceDb.open(directory.path("four"),
                new TerraceOptions().filterBits(99)));
    }

    @Test
    void databases_share_a_bound_for_memory() throws IOException {
        TerraceOptions options = new TerraceOptions();
        try (MemoryBudget budget = new MemoryBudget(2 << 20)) {
            options.memoryBudget(budget).createIfMissing(true);
            try (TerraceDb one = TerraceDb.open(directory.path("one"), options);
                    TerraceDb other = TerraceDb.open(directory.path("other"), options)) {
                for (int i = 0; i < 6000; i++) {
                    one.put(bytes("key" + i), new byte[1000]);
                    other.put(bytes("key" + i), new byte[1000]);
                    assertTrue(budget.used() <= budget.bytes(), () -> budget.used() + " bytes");
                }
                assertEquals(1000, one.get(bytes("key0")).length);
                assertEquals(1000, other.get(bytes("key5999")).length);
                assertTrue(budget.used() > 0);
            }
            budget.close();
            assertThrows(ClosedException.class, budget::used);
            assertThrows(IOException.class, () -> TerraceDb.open(directory.path("one"), options));
        }
        assertThrows(TerraceException.class, () -> new MemoryBudget(-1));
    }

    @Test
    void large_keys_and_bytes_that_are_no_text_are_kept() {
        byte[] key = new byte[3 << 20];
        Arrays.fill(key, (byte) 0xff);
        byte[] value = new byte[20 << 20];
        for (int i = 0; i < value.length; i++) {
            value[i] = (byte) (i * 31);
        }
        db.put(key, value);
        assertArrayEquals(value, db.get(key));
        try (TerraceIterator iterator = db.iterator()) {
            Map.Entry<byte[], byte[]> entry = iterator.next();
            assertArrayEquals(key, entry.getKey());
            assertArrayEquals(value, entry.getValue());
        }
        db.sync();
    }
}
