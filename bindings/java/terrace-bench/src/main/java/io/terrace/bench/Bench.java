package io.terrace.bench;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.stream.Stream;

/**
 * A program: "FACTORY|rocksdb ENTRIES" prints operations a second of each kind, with keys of 16
 * bytes and values of 100 that half compress.
 */
public final class Bench {
    private static final int BATCH = 100;

    private final int entries;
    private final byte[] value = new byte[100];

    private Bench(int entries) {
        this.entries = entries;
        new Random(1).nextBytes(value);
        // The second half repeats.
        System.arraycopy(new byte[50], 0, value, 50, 50);
    }

    /**
     * Runs the program.
     *
     * @param arguments a factory's class or "rocksdb", and a number of entries
     * @throws Exception if an engine fails
     */
    public static void main(String[] arguments) throws Exception {
        Bench bench = new Bench(Integer.parseInt(arguments[1]));
        // Compiles what is measured below.
        bench.run(arguments[0], false);
        bench.run(arguments[0], true);
    }

    private static Store open(String engine, File directory) throws Exception {
        return engine.equals("rocksdb")
                ? new RocksStore(directory)
                : new LevelDbStore(engine, directory);
    }

    private static byte[] key(long number) {
        return ByteBuffer.allocate(16).putLong(number).putLong(number * 31).array();
    }

    private interface Work {
        void run(int i) throws Exception;
    }

    private void time(String name, boolean tell, int operations, int each, Work work)
            throws Exception {
        long start = System.nanoTime();
        for (int i = 0; i < operations; i++) {
            work.run(i);
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        if (tell) {
            System.out.printf("%s %.0f%n", name, operations * (double) each / seconds);
        }
    }

    private void run(String engine, boolean tell) throws Exception {
        Path scratch = Files.createTempDirectory("terrace-bench");
        try {
            try (Store store = open(engine, scratch.resolve("sequential").toFile())) {
                time("put-sequential", tell, entries, 1, i -> store.put(key(i), value));
            }
            try (Store store = open(engine, scratch.resolve("random").toFile())) {
                Random random = new Random(2);
                time("put-random", tell, entries, 1,
                        i -> store.put(key(random.nextInt(entries)), value));
                byte[][] keys = new byte[BATCH][];
                time("batch-of-100", tell, entries / BATCH, BATCH, i -> {
                    for (int k = 0; k < BATCH; k++) {
                        keys[k] = key(random.nextInt(entries));
                    }
                    store.putAll(keys, value);
                });
                time("get-random", tell, entries, 1, i -> store.get(key(random.nextInt(entries))));
                long[] count = new long[1];
                long start = System.nanoTime();
                count[0] = store.iterate();
                double seconds = (System.nanoTime() - start) / 1e9;
                if (tell) {
                    System.out.printf("iterate %.0f%n", count[0] / seconds);
                }
            }
        } finally {
            try (Stream<Path> files = Files.walk(scratch)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }
}
