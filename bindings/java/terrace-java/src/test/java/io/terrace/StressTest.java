package io.terrace;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Programs that run beside the virtual machine's own checks, or long enough to leak. */
class StressTest {
    @Test
    void the_virtual_machine_finds_nothing_wrong_with_native_calls() throws Exception {
        Random random = TestDirectory.random("StressTest");
        String output = ChildJvm.run(ChildJvm.classPath(), List.of("-Xcheck:jni"), Stress.class,
                Integer.toString(TestDirectory.scaled(100)), Long.toString(random.nextLong()));
        assertTrue(output.contains("stress ends well"), output);
        assertFalse(output.contains("WARNING"), output);
        assertFalse(output.contains("FATAL"), output);
    }

    @Test
    void a_million_iterators_leave_nothing_behind() throws Exception {
        // A heap that is fully resident from the start, so that it cannot grow.
        List<String> flags =
                List.of("-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC");
        String output = ChildJvm.run(ChildJvm.classPath(), flags, Leak.class,
                Integer.toString(TestDirectory.scaled(1_000_000)));
        long grown = Long.parseLong(output.strip().replaceAll("(?s).*grown ", ""));
        System.out.println("StressTest: resident memory grew by " + grown + " KiB");
        assertTrue(grown < 16 << 10, output);
    }
}
