package io.terrace.kafka.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The memory of this process. */
final class Memory {
    private Memory() {}

    /**
     * Returns a line of the process's status in KiB: VmRSS is what is resident, and RssAnon that
     * without pages of files.
     */
    static long kibibytes(String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith(name + ":")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new IOException("no " + name + " in /proc/self/status");
    }
}
