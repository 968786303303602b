package io.terrace;

import static io.terrace.TerraceFactory.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Disks that are full or may not be written, and callers who do anything at all. */
class MisuseTest {
    private static final TerraceOptions SMALL = new TerraceOptions();

    static {
        SMALL.createIfMissing(true).writeBufferSize(256 << 10);
    }

    /** Mounts a file system in memory, or leaves the test out. */
    private static void mount(TestDirectory directory, String options) throws Exception {
        boolean mounted = Mounts.mount(directory.path("disk"), options);
        if (!mounted) {
            System.out.println("SKIPPED: MisuseTest: no mount: there is no right to mount");
            String skippable = " " + System.getenv("TERRACE_MAY_SKIP") + " ";
            assertTrue(System.getenv("CI") == null || skippable.contains(" mount "));
        }
        Assumptions.assumeTrue(mounted);
    }

    private static byte[] value(int number) {
        byte[] value = new byte[2000];
        new Random(number).nextBytes(value);
        return value;
    }

    @Test
    void a_full_disk_is_an_error_and_nothing_acknowledged_is_lost() throws Exception {
        try (TestDirectory directory = new TestDirectory()) {
            mount(directory, "size=2m");
            try {
                TerraceDb db = TerraceDb.open(directory.path("disk").resolve("db"), SMALL);
                int written = 0;
                TerraceException error = null;
                while (error == null) {
                    try {
                        db.put(bytes("key" + written), value(written));
                        written++;
                    } catch (TerraceException e) {
                        error = e;
                    }
                }
                assertEquals(TerraceException.Kind.IO, error.kind());
                assertTrue(error.getMessage().contains("disk/db"), error.getMessage());
                assertArrayEquals(value(0), db.get(bytes("key0")));
                close(db);
                assertTrue(Mounts.mount(directory.path("disk"), "remount,size=64m"));
                try (TerraceDb again =
                        TerraceDb.open(directory.path("disk").resolve("db"), SMALL)) {
                    for (int i = 0; i < written; i++) {
                        assertArrayEquals(value(i), again.get(bytes("key" + i)));
                    }
                    again.put(bytes("later"), bytes("on"));
                }
            } finally {
                Mounts.unmount(directory.path("disk"));
            }
        }
    }

    private static void close(TerraceDb db) {
        try {
            db.close();
        } catch (IOException e) {
            assertTrue(e.getCause() instanceof TerraceException, e.toString());
        }
    }

    @Test
    void a_directory_that_may_not_be_written_is_read_only() throws Exception {
        try (TestDirectory directory = new TestDirectory()) {
            mount(directory, "size=8m");
            try {
                TerraceDb.open(directory.path("disk").resolve("db"), SMALL).close();
                assertTrue(Mounts.mount(directory.path("disk"), "remount,ro"));
                IOException refused = assertThrows(IOException.class,
                        () -> TerraceDb.open(directory.path("disk").resolve("db"), SMALL));
                assertTrue(refused.getMessage().contains("disk/db"), refused.getMessage());
                TerraceOptions readOnly = new TerraceOptions().readOnly(true);
                try (TerraceDb db =
                        TerraceDb.open(directory.path("disk").resolve("db"), readOnly)) {
                    assertFalse(db.iterator().hasNext());
                    TerraceException error = assertThrows(TerraceException.class,
                            () -> db.put(bytes("key"), bytes("value")));
                    assertEquals(TerraceException.Kind.NOT_SUPPORTED, error.kind());
                }
            } finally {
                Mounts.unmount(directory.path("disk"));
            }
        }
    }

    @Test
    void any_call_at_any_time_ends_in_a_result_or_a_documented_exception() throws Exception {
        Random random = TestDirectory.random("MisuseTest");
        try (TestDirectory directory = new TestDirectory()) {
            // Full most of the time.
            boolean small = Mounts.mount(directory.path("disk"), "size=64m");
            try {
                String output = ChildJvm.run(ChildJvm.classPath(),
                        List.of("-Xcheck:jni", "-Xmx512m"), Misuse.class,
                        Integer.toString(TestDirectory.scaled(600)),
                        Long.toString(random.nextLong()),
                        directory.path(small ? "disk" : "db").toString());
                System.out.println("MisuseTest: " + output.strip());
                assertTrue(output.contains("misuse ends well"), output);
                assertFalse(output.contains("WARNING"), output);
                assertFalse(output.contains("FATAL"), output);
            } finally {
                if (small) {
                    Mounts.unmount(directory.path("disk"));
                }
            }
        }
    }
}
