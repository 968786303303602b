package io.terrace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** File systems in memory, where the tests may mount one. */
final class Mounts {
    private Mounts() {}

    private static boolean run(String... command) throws IOException, InterruptedException {
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start()
                .waitFor() == 0;
    }

    /** Mounts one, or mounts it again with other options. Returns whether that was possible. */
    static boolean mount(Path directory, String options) throws IOException, InterruptedException {
        Files.createDirectories(directory);
        return run("mount", "-t", "tmpfs", "-o", options, "tmpfs", directory.toString());
    }

    static void unmount(Path directory) throws IOException, InterruptedException {
        run("umount", "-l", directory.toString());
    }
}
