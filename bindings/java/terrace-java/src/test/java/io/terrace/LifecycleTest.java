package io.terrace;

import static io.terrace.TerraceFactory.asString;
import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.DBComparator;
import org.iq80.leveldb.DBIterator;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.ReadOptions;
import org.iq80.leveldb.WriteBatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Closing in any order and from any thread, and callers that do what they should not. */
class LifecycleTest {
    private TestDirectory directory;
    private TerraceDb db;

    @BeforeEach
    void open() throws IOException {
        directory = new TestDirectory();
        db = factory.open(directory.file("db"), new Options());
        for (int i = 0; i < 1000; i++) {
            db.put(bytes("key" + i), bytes("value" + i));
        }
    }

    @AfterEach
    void close() throws IOException {
        db.close();
        directory.close();
    }

    @Test
    void whatever_is_used_after_the_database_is_closed_throws() throws Exception {
        TerraceIterator fresh = db.iterator();
        TerraceIterator iterator = db.iterator();
        iterator.next();
        TerraceSnapshot snapshot = db.getSnapshot();
        TerraceTransaction transaction = db.transaction();
        transaction.put(bytes("x"), bytes("y"));
        BulkLoad load = db.bulkLoad();
        load.put(bytes("x"), bytes("y"));
        TerraceWriteBatch batch = db.createWriteBatch();
        batch.put(bytes("x"), bytes("y"));
        db.close();
        db.close();
        ReadOptions old = new ReadOptions().snapshot(snapshot);
        List<Executable> uses = List.of(
                iterator::next, iterator::hasPrev, fresh::hasNext, () -> fresh.seek(bytes("a")),
                () -> db.get(bytes("key1")), () -> db.get(bytes("key1"), old),
                () -> db.put(bytes("a"), bytes("b")), () -> db.delete(bytes("a")),
                () -> db.write(batch), () -> db.iterator(), () -> db.getSnapshot(),
                () -> db.transaction(), () -> db.bulkLoad(), () -> db.createWriteBatch(),
                () -> db.multiGet(List.of(bytes("a"))), () -> db.compactRange(null, null),
                () -> db.getProperty("leveldb.stats"), () -> db.getApproximateSizes(),
                () -> db.stats(), () -> db.verify(), () -> db.flush(), () -> db.sync(),
                () -> db.checkpoint(directory.path("copy")), () -> db.suspendCompactions(),
                () -> db.resumeCompactions(), () -> transaction.get(bytes("x")),
                transaction::commit, load::finish);
        for (int i = 0; i < uses.size(); i++) {
            assertThrows(ClosedException.class, uses.get(i), "use " + i);
        }
        try (DB again = factory.open(directory.file("db"), new Options())) {
            assertEquals("value7", asString(again.get(bytes("key7"))));
        }
        for (AutoCloseable one : List.of(load, transaction, snapshot, iterator, fresh, batch)) {
            one.close();
            one.close();
        }
    }

    private TerraceDb abandoned(String name) throws IOException {
        TerraceDb other = factory.open(directory.file(name), new Options());
        other.put(bytes("key"), bytes("value"));
        return other;
    }

    /** Collects what is unreachable and leaves the cleaner time to close it. */
    private static void collect() throws InterruptedException {
        for (int i = 0; i < 10; i++) {
            System.gc();
            Thread.sleep(20);
        }
    }

    @Test
    void a_transaction_keeps_its_database_open() throws Exception {
        TerraceTransaction transaction = abandoned("of transaction").transaction();
        collect();
        assertEquals("value", asString(transaction.get(bytes("key"))));
        transaction.put(bytes("key"), bytes("other"));
        transaction.commit();
    }

    @Test
    void a_bulk_load_keeps_its_database_open() throws Exception {
        BulkLoad load = abandoned("of load").bulkLoad();
        collect();
        load.put(bytes("more"), bytes("value"));
        assertEquals(1, load.finish());
    }

    @Test
    void a_closed_iterator_throws() {
        TerraceIterator iterator = db.iterator();
        iterator.next();
        iterator.close();
        iterator.close();
        assertThrows(ClosedException.class, iterator::next);
        assertThrows(ClosedException.class, iterator::hasNext);
        assertThrows(ClosedException.class, iterator::seekToFirst);
    }

    @Test
    void null_and_strangers_are_refused() throws IOException {
        assertThrows(NullPointerException.class, () -> db.put(null, bytes("a")));
        assertThrows(NullPointerException.class, () -> db.put(bytes("a"), (byte[]) null));
        assertThrows(NullPointerException.class, () -> db.get((byte[]) null));
        assertThrows(NullPointerException.class, () -> db.delete(null));
        assertThrows(NullPointerException.class, () -> db.write(null));
        try (TerraceIterator iterator = db.iterator();
                TerraceDb other = factory.open(directory.file("other"), new Options());
                TerraceSnapshot foreign = other.getSnapshot()) {
            assertThrows(NullPointerException.class, () -> iterator.seek(null));
            ReadOptions read = new ReadOptions().snapshot(foreign);
            TerraceException refused =
                    assertThrows(TerraceException.class, () -> db.get(bytes("a"), read));
            assertEquals(TerraceException.Kind.INVALID_ARGUMENT, refused.kind());
        }
        WriteBatch stranger = new WriteBatch() {
            @Override
            public WriteBatch put(byte[] key, byte[] value) {
                return this;
            }

            @Override
            public WriteBatch delete(byte[] key) {
                return this;
            }

            @Override
            public void close() {}
        };
        assertThrows(IllegalArgumentException.class, () -> db.write(stranger));
    }

    @Test
    void a_database_is_open_once() {
        IOException busy = assertThrows(IOException.class,
                () -> factory.open(directory.file("db"), new Options()));
        assertEquals(TerraceException.Kind.BUSY, ((TerraceException) busy.getCause()).kind());
    }

    @Test
    void closing_while_others_read_write_and_iterate_gives_them_exceptions() throws Exception {
        for (int round = 0; round < TestDirectory.scaled(1000); round++) {
            DB shared = factory.open(directory.file("shared"), new Options());
            for (int i = 0; i < 200; i++) {
                shared.put(bytes("key" + i), bytes("value" + i));
            }
            AtomicLong done = new AtomicLong();
            List<Throwable> wrong = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            for (int kind = 0; kind < 4; kind++) {
                threads.add(worker(shared, kind, done, wrong));
            }
            while (done.get() < 50) {
                Thread.onSpinWait();
            }
            shared.close();
            for (Thread thread : threads) {
                thread.join();
            }
            assertTrue(wrong.isEmpty(), wrong::toString);
        }
    }

    /** Works until the database is closed. */
    private static Thread worker(DB db, int kind, AtomicLong done, List<Throwable> wrong) {
        Thread thread = new Thread(() -> {
            try {
                for (int i = 0; ; i++) {
                    switch (kind) {
                        case 0 -> db.put(bytes("key" + i % 200), bytes("value"));
                        case 1 -> db.get(bytes("key" + i % 200));
                        default -> {
                            DBIterator iterator = db.iterator();
                            while (iterator.hasNext()) {
                                iterator.next();
                            }
                            // Every other one is left to the cleaner.
                            if (i % 2 == 0) {
                                iterator.close();
                            }
                        }
                    }
                    done.incrementAndGet();
                }
            } catch (ClosedException e) {
                // As it should be.
            } catch (Throwable e) {
                synchronized (wrong) {
                    wrong.add(e);
                }
            }
        });
        thread.start();
        return thread;
    }

    @Test
    void closing_an_iterator_that_another_thread_uses_gives_it_an_exception() throws Exception {
        for (int round = 0; round < TestDirectory.scaled(5000); round++) {
            TerraceIterator iterator = db.iterator();
            List<Throwable> seen = new ArrayList<>();
            Thread reader = new Thread(() -> {
                try {
                    while (true) {
                        iterator.seekToFirst();
                        while (iterator.hasNext()) {
                            iterator.next();
                        }
                    }
                } catch (Throwable e) {
                    seen.add(e);
                }
            });
            reader.start();
            for (int spin = 0; spin < round * 37 % 5000; spin++) {
                Thread.onSpinWait();
            }
            iterator.close();
            reader.join();
            assertEquals(ClosedException.class, seen.get(0).getClass(), () -> seen.toString());
        }
    }

    private static final String COMPARATOR_FAILED =
            "the comparator failed; close the database and open it again: ";

    /** Throws once it is told to. */
    private static final class Failing implements DBComparator {
        private final RuntimeException thrown;
        private volatile boolean fail;

        Failing(RuntimeException thrown) {
            this.thrown = thrown;
        }

        @Override
        public int compare(byte[] left, byte[] right) {
            if (fail) {
                throw thrown;
            }
            return asString(right).compareTo(asString(left));
        }

        @Override
        public String name() {
            return "test.Failing";
        }

        @Override
        public byte[] findShortestSeparator(byte[] start, byte[] limit) {
            return null;
        }

        @Override
        public byte[] findShortSuccessor(byte[] key) {
            return new byte[0];
        }
    }

    @Test
    void a_comparator_that_throws_stops_the_database_and_damages_nothing() throws IOException {
        Failing order = new Failing(new IllegalStateException("no order today"));
        Options options = new Options().comparator(order).writeBufferSize(64 << 10);
        TerraceDb ordered = factory.open(directory.file("ordered"), options);
        for (int i = 0; i < 2000; i++) {
            ordered.put(bytes(String.format("%05d", i)), bytes("v".repeat(100)));
        }
        order.fail = true;
        TerraceException error =
                assertThrows(TerraceException.class, () -> ordered.get(bytes("00100")));
        assertEquals(TerraceException.Kind.IO, error.kind());
        assertEquals(COMPARATOR_FAILED + "java.lang.IllegalStateException: no order today",
                error.getMessage());
        assertSame(order.thrown, error.getCause());
        assertThrows(TerraceException.class, () -> ordered.put(bytes("x"), bytes("y")));
        assertThrows(TerraceException.class, () -> ordered.iterator());
        try {
            ordered.close();
        } catch (IOException e) {
            // What was in memory stays in the log.
        }
        order.fail = false;
        try (TerraceDb again = factory.open(directory.file("ordered"), options)) {
            assertTrue(again.verify().isClean(), () -> again.verify().toString());
            for (int i = 0; i < 2000; i++) {
                assertEquals("v".repeat(100), asString(again.get(bytes(String.format("%05d", i)))));
            }
            try (TerraceIterator iterator = again.iterator()) {
                assertEquals("01999", asString(iterator.next().getKey()));
            }
        }
    }

    private static TerraceException terraceException(Executable use) {
        try {
            use.execute();
        } catch (IOException e) {
            return assertInstanceOf(TerraceException.class, e.getCause());
        } catch (TerraceException e) {
            return e;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
        throw new AssertionError("nothing was thrown");
    }

    @Test
    void what_a_comparator_threw_is_the_cause_of_what_every_operation_throws() throws Exception {
        Failing order = new Failing(new IllegalStateException("first line\nsecond line"));
        Options options = new Options().comparator(order).writeBufferSize(64 << 10);
        TerraceDb ordered = factory.open(directory.file("cause"), options);
        for (int i = 0; i < 2000; i++) {
            ordered.put(bytes(String.format("%05d", i)), bytes("v".repeat(100)));
        }
        TerraceIterator iterator = ordered.iterator();
        TerraceTransaction transaction = ordered.transaction();
        transaction.put(bytes("x"), bytes("y"));
        order.fail = true;
        // The first of them calls the comparator, perhaps on a thread of the engine.
        List<Executable> uses = List.of(() -> ordered.compactRange(null, null),
                () -> ordered.put(bytes("x"), bytes("y")), () -> ordered.get(bytes("x")),
                () -> ordered.multiGet(List.of(bytes("x"))), iterator::next, transaction::commit,
                ordered::getSnapshot, ordered::iterator, ordered::flush, ordered::sync,
                ordered::verify, ordered::stats, () -> ordered.getProperty("leveldb.stats"),
                ordered::transaction, ordered::bulkLoad,
                () -> ordered.checkpoint(directory.path("cause copy")));
        for (int i = 0; i < uses.size(); i++) {
            String use = "use " + i;
            TerraceException error = terraceException(uses.get(i));
            assertEquals(TerraceException.Kind.IO, error.kind(), use);
            assertEquals(COMPARATOR_FAILED + "java.lang.IllegalStateException: first line",
                    error.getMessage(), use);
            assertSame(order.thrown, error.getCause(), use);
        }
        try {
            ordered.close();
        } catch (IOException e) {
            assertSame(order.thrown, e.getCause().getCause());
        }
        // Opening replays the log, which calls the comparator.
        assertSame(order.thrown,
                terraceException(() -> factory.open(directory.file("cause"), options)).getCause());
    }

    @Test
    void a_comparator_that_throws_without_a_message_is_named_by_its_exception() throws IOException {
        Failing order = new Failing(new UnsupportedOperationException());
        Options options = new Options().comparator(order);
        try (TerraceDb ordered = factory.open(directory.file("ordered"), options)) {
            ordered.put(bytes("a"), bytes("1"));
            order.fail = true;
            TerraceException error =
                    assertThrows(TerraceException.class, () -> ordered.get(bytes("a")));
            assertEquals(COMPARATOR_FAILED + "java.lang.UnsupportedOperationException",
                    error.getMessage());
            assertSame(order.thrown, error.getCause());
        }
    }
}
