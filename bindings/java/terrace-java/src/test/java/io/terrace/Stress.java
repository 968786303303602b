package io.terrace;

import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.iq80.leveldb.Options;

/** A program: "ROUNDS" rounds of everything at once, databases closed in the middle. */
final class Stress {
    private static final int THREADS = 4;
    private static final int OPERATIONS = 2000;

    private Stress() {}

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(Long.parseLong(arguments[1]));
        for (int round = 0; round < Integer.parseInt(arguments[0]); round++) {
            try (TestDirectory directory = new TestDirectory()) {
                round(directory, random.nextLong());
            }
        }
        System.out.println("stress ends well");
    }

    private static void round(TestDirectory directory, long seed) throws Exception {
        Options options = new Options().writeBufferSize(64 << 10).logger(message -> {});
        if (seed % 2 == 0) {
            options.comparator(new Backward());
        }
        AtomicReference<TerraceDb> db = new AtomicReference<>(open(directory, options));
        AtomicReference<Throwable> wrong = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            long own = seed + i;
            Thread thread = new Thread(() -> {
                try {
                    work(db, new Random(own));
                } catch (Throwable e) {
                    wrong.set(e);
                }
            });
            thread.start();
            threads.add(thread);
        }
        while (threads.stream().anyMatch(Thread::isAlive)) {
            Thread.sleep(5);
            db.get().close();
            db.set(open(directory, options));
        }
        db.get().close();
        if (wrong.get() != null) {
            throw new IllegalStateException("a worker failed", wrong.get());
        }
    }

    private static TerraceDb open(TestDirectory directory, Options options) throws Exception {
        return factory.open(directory.file("db"), options);
    }

    private static void work(AtomicReference<TerraceDb> dbs, Random random) throws Exception {
        for (int i = 0; i < OPERATIONS; i++) {
            try {
                operate(dbs.get(), random);
            } catch (ClosedException e) {
                // It was closed under this thread.
            }
        }
    }

    private static void operate(TerraceDb db, Random random) throws Exception {
        byte[] key = bytes("key" + random.nextInt(1000));
        switch (random.nextInt(9)) {
            case 0 -> db.put(key, new byte[random.nextInt(500)]);
            case 1 -> db.delete(key);
            case 2 -> db.get(key);
            case 3 -> {
                ByteBuffer buffer = ByteBuffer.allocateDirect(600);
                buffer.put(key).flip();
                db.put(buffer, buffer);
                db.get(buffer, ByteBuffer.allocateDirect(10));
            }
            case 4 -> {
                TerraceWriteBatch batch = db.createWriteBatch();
                for (int i = 0; i < 20; i++) {
                    batch.put(key, bytes("value" + i)).delete(bytes("key" + i));
                }
                db.write(batch);
            }
            case 5 -> {
                TerraceIterator iterator = db.range(key, null);
                iterator.nextBatch(random.nextInt(300));
                iterator.hasPrev();
                if (random.nextBoolean()) {
                    iterator.close();
                }
            }
            case 6 -> db.multiGet(List.of(key, bytes("key7"), bytes("none")));
            case 7 -> {
                TerraceTransaction transaction = db.transaction();
                transaction.getForUpdate(key);
                transaction.put(key, bytes("transacted"));
                try {
                    transaction.commit();
                } catch (ConflictException e) {
                    transaction.close();
                }
            }
            default -> {
                TerraceSnapshot snapshot = db.getSnapshot();
                db.get(key, new org.iq80.leveldb.ReadOptions().snapshot(snapshot));
                db.stats();
                snapshot.close();
            }
        }
    }
}
