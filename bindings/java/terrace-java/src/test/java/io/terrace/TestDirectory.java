package io.terrace;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.stream.Stream;

/** Places for databases, sizes and seeds of tests. */
final class TestDirectory implements AutoCloseable {
    private final Path path;

    TestDirectory() throws IOException {
        path = Files.createTempDirectory("terrace-java");
    }

    File file(String name) {
        return path.resolve(name).toFile();
    }

    Path path(String name) {
        return path.resolve(name);
    }

    /** A number of rounds or entries: {@code full} of them at scale 1, at least one. */
    static int scaled(int full) {
        double scale = Double.parseDouble(System.getProperty("terrace.test.scale", "0.02"));
        return Math.max(1, (int) (full * scale));
    }

    /** A source of random numbers whose seed is printed. TERRACE_SEED repeats one. */
    static Random random(String test) {
        String given = System.getenv("TERRACE_SEED");
        long seed = given == null ? System.nanoTime() : Long.parseLong(given);
        System.out.println(test + ": TERRACE_SEED=" + seed);
        return new Random(seed);
    }

    @Override
    public void close() throws IOException {
        try (Stream<Path> files = Files.walk(path)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
