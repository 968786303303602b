package io.terrace;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Databases that go back and forth between Terrace and the other implementations of the API. */
class HandOverTest {
    private static final int STEPS = 4;

    @Test
    void iq80_and_terrace_read_what_the_other_wrote() throws Exception {
        // Without a snappy of its own iq80 reads and writes plain blocks alone. Its compactions
        // into several tables record a size of four bytes too many, which no other LevelDB reads: a
        // write buffer that holds everything keeps it from them.
        histories(Peer.IQ80, ChildJvm.classPath(), "NONE", 4 << 20);
    }

    @Test
    void leveldbjni_and_terrace_read_what_the_other_wrote() throws Exception {
        try (Stream<Path> jars = Files.list(Path.of(System.getProperty("terrace.test.peers")))) {
            Path jar = jars.findFirst().orElseThrow();
            histories(Peer.LEVELDBJNI, ChildJvm.classPathWith(jar), "SNAPPY", 64 << 10);
        }
    }

    private static void histories(
            String other, String otherPath, String compression, int buffer) throws Exception {
        Random random = TestDirectory.random("HandOverTest " + other);
        for (int history = 0; history < TestDirectory.scaled(20); history++) {
            try (TestDirectory directory = new TestDirectory()) {
                String place = directory.file("db").toString();
                TreeMap<String, String> model = new TreeMap<>();
                for (int step = 0; step < STEPS; step++) {
                    boolean terrace = (step + history) % 2 == 0;
                    String seed = Long.toString(random.nextLong());
                    String end = random.nextBoolean() ? "close" : "kill";
                    run(terrace, other, otherPath, place, compression, buffer, end, seed);
                    Peer.change(model, Long.parseLong(seed));
                    String seen =
                            run(!terrace, other, otherPath, place, compression, buffer, "read");
                    assertTrue(seen.contains("digest " + Peer.digest(model)),
                            () -> other + " step " + Peer.digest(model) + ": " + seen);
                }
            }
        }
    }

    private static String run(
            boolean terrace,
            String other,
            String otherPath,
            String place,
            String compression,
            int buffer,
            String... rest)
            throws Exception {
        if (!terrace) {
            nameTablesAsBefore114(Path.of(place));
        }
        String classPath = terrace ? ChildJvm.classPath() : otherPath;
        String[] arguments = new String[rest.length + 4];
        arguments[0] = terrace ? Peer.TERRACE : other;
        arguments[1] = place;
        arguments[2] = compression;
        arguments[3] = Integer.toString(buffer);
        System.arraycopy(rest, 0, arguments, 4, rest.length);
        return ChildJvm.run(classPath, List.of("-XX:+UseSerialGC"), Peer.class, arguments);
    }

    /** The LevelDBs of iq80 and leveldbjni know tables by their ending before LevelDB 1.14. */
    private static void nameTablesAsBefore114(Path database) throws IOException {
        if (!Files.isDirectory(database)) {
            return;
        }
        try (Stream<Path> files = Files.list(database)) {
            for (Path file : files.filter(one -> one.toString().endsWith(".ldb")).toList()) {
                String name = file.getFileName().toString();
                Files.move(file, file.resolveSibling(name.replace(".ldb", ".sst")));
            }
        }
    }
}
