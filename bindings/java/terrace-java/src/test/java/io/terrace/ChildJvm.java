package io.terrace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Programs in virtual machines of their own. */
final class ChildJvm {
    private ChildJvm() {}

    /** The class path of this test. */
    static String classPath() {
        return System.getProperty(
                "surefire.test.class.path", System.getProperty("java.class.path"));
    }

    /** The test's own classes and the jars of another implementation. */
    static String classPathWith(Path jar) {
        URL classes = ChildJvm.class.getProtectionDomain().getCodeSource().getLocation();
        return Path.of(classes.getPath()) + File.pathSeparator + jar;
    }

    /** Runs a class to its end, which must be a good one, and returns what it printed. */
    static String run(String classPath, List<String> flags, Class<?> main, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-XX:TieredStopAtLevel=1");
        command.addAll(flags);
        command.addAll(List.of("-cp", classPath, main.getName()));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), () -> String.join(" ", command) + "\n" + output);
        return output;
    }
}
