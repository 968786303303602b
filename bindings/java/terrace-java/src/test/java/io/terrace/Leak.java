package io.terrace;

import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.iq80.leveldb.Options;

/** A program: makes many iterators, snapshots and databases and prints how memory grew, in KiB. */
final class Leak {
    private Leak() {}

    public static void main(String[] arguments) throws Exception {
        int iterators = Integer.parseInt(arguments[0]);
        try (TestDirectory directory = new TestDirectory();
                TerraceDb db = factory.open(directory.file("db"), new Options())) {
            for (int i = 0; i < 1000; i++) {
                db.put(bytes("key" + i), bytes("value"));
            }
            iterate(db, Math.max(20_000, iterators / 10));
            openAndClose(directory, 100);
            long before = settled();
            iterate(db, iterators);
            openAndClose(directory, Math.max(500, iterators / 1000));
            System.out.println("grown " + (settled() - before));
        }
    }

    private static void iterate(TerraceDb db, int count) {
        for (int i = 0; i < count; i++) {
            TerraceIterator iterator = db.iterator();
            iterator.seek(bytes("key5"));
            iterator.next();
            TerraceSnapshot snapshot = db.getSnapshot();
            // One in ten is left to the cleaner.
            if (i % 10 != 0) {
                iterator.close();
                snapshot.close();
            }
        }
    }

    private static void openAndClose(TestDirectory directory, int count) throws IOException {
        for (int i = 0; i < count; i++) {
            TerraceDb db = factory.open(directory.file("other"), new Options());
            db.put(bytes("key"), bytes("value"));
            db.iterator().next();
            db.close();
        }
    }

    /** The resident memory once the cleaner has nothing more to do. */
    private static long settled() throws Exception {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(100);
            least = Math.min(least, resident());
        }
        return least;
    }

    private static long resident() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new IOException("no VmRSS in /proc/self/status");
    }
}
