package io.terrace.kafka;

import java.io.File;
import java.nio.file.Files;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.internals.MockStreamsMetrics;
import org.apache.kafka.streams.state.internals.ThreadCache;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.StreamsTestUtils;

/** What stores are opened in, and seeds. */
final class Contexts {
    private Contexts() {}

    static File directory() throws Exception {
        File directory = Files.createTempDirectory("terrace-kafka").toFile();
        directory.deleteOnExit();
        return directory;
    }

    /** A context of a task in a directory, with settings on top of the usual ones. */
    static InternalMockProcessorContext<?, ?> context(File directory, Map<String, String> more) {
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.String(), Serdes.String());
        settings.putAll(more);
        MockStreamsMetrics metrics = new MockStreamsMetrics(new Metrics());
        InternalMockProcessorContext<?, ?> context = new InternalMockProcessorContext<>(
                directory,
                Serdes.String(),
                Serdes.String(),
                metrics,
                new StreamsConfig(settings),
                MockRecordCollector::new,
                new ThreadCache(new LogContext("test"), 0, metrics),
                org.apache.kafka.common.utils.Time.SYSTEM);
        context.setTime(1);
        return context;
    }

    static Random random(String test) {
        String given = System.getenv("TERRACE_SEED");
        long seed = given == null ? System.nanoTime() : Long.parseLong(given);
        System.out.println(test + ": TERRACE_SEED=" + seed);
        return new Random(seed);
    }
}
