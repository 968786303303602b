package io.terrace.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An application that is moved by its configuration alone computes what it did before. */
class DslTest {
    /** The driver commits after each of them. */
    private static final int RECORDS = 1000;
    private static final String MEMORY =
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers";
    private static final Duration MINUTE = Duration.ofMinutes(1);
    private static final Duration GRACE = Duration.ofSeconds(20);

    private static Topology topology(Properties settings) {
        StreamsBuilder builder = new StreamsBuilder(new org.apache.kafka.streams.TopologyConfig(
                new StreamsConfig(settings)));
        KStream<String, String> input = builder.stream("input");
        input.groupByKey().count().toStream().mapValues(String::valueOf).to("counts");
        input.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(MINUTE, GRACE)).count()
                .toStream((window, count) -> window.toString()).mapValues(String::valueOf)
                .to("windows");
        input.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(MINUTE, GRACE))
                .emitStrategy(EmitStrategy.onWindowClose()).count()
                .toStream((window, count) -> window.toString()).mapValues(String::valueOf)
                .to("closed");
        input.groupByKey().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(MINUTE, GRACE))
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("sliding");
        input.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(GRACE, GRACE))
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("sessions");
        input.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(GRACE, GRACE))
                .emitStrategy(EmitStrategy.onWindowClose()).count()
                .toStream((window, count) -> window.toString()).mapValues(String::valueOf)
                .to("closed-sessions");
        KStream<String, String> other = builder.stream("other");
        input.leftJoin(other, (left, right) -> left + "+" + right,
                JoinWindows.ofTimeDifferenceAndGrace(MINUTE, GRACE)).to("joined");
        input.join(builder.table("table"), (left, right) -> left + "*" + right).to("looked-up");
        return builder.build(settings);
    }

    private static List<String> outputs(String suppliers, String format, long seed, File state)
            throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        List<String> outputs = new ArrayList<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(settings), settings)) {
            List<TestInputTopic<String, String>> inputs = Stream.of("input", "other", "table")
                    .map(topic -> driver.createInputTopic(
                            topic, new StringSerializer(), new StringSerializer()))
                    .toList();
            Random random = new Random(seed);
            long now = 0;
            for (int i = 0; i < RECORDS; i++) {
                now += random.nextInt(6000);
                driver.advanceWallClockTime(Duration.ofSeconds(1));
                inputs.get(random.nextInt(3)).pipeInput("key" + random.nextInt(7), "v" + i,
                        Math.max(0, now - random.nextInt(30_000)));
            }
            for (String topic : List.of("counts", "windows", "closed", "sliding", "sessions",
                    "closed-sessions", "joined", "looked-up")) {
                List<String> of = new ArrayList<>();
                driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer())
                        .readRecordsToList()
                        .forEach(one -> of.add(topic + " " + one.key() + "=" + one.value()
                                + "@" + one.timestamp()));
                // Windows that close at one moment come in the order of the store.
                outputs.addAll(topic.startsWith("closed") || topic.equals("joined")
                        ? of.stream().sorted().toList() : of);
            }
            try (Stream<Path> files = Files.walk(state.toPath())) {
                boolean terrace = files.anyMatch(file -> file.endsWith("terrace"));
                assertEquals(!suppliers.equals(MEMORY), terrace);
            }
        }
        return outputs;
    }

    @ParameterizedTest
    @ValueSource(strings = {"default", "headers"})
    void outputs_are_those_of_the_stores_in_memory(String format) throws Exception {
        long seed = Contexts.random("DslTest " + format).nextLong();
        List<String> expected = outputs(MEMORY, format, seed, Contexts.directory());
        List<String> actual = outputs(
                TerraceDslStoreSuppliers.class.getName(), format, seed, Contexts.directory());
        assertEquals(expected.size(), actual.size());
        for (int i = 0; i < expected.size(); i++) {
            assertEquals(expected.get(i), actual.get(i));
        }
        assertTrue(expected.size() > 2 * RECORDS, () -> expected.size() + " outputs");
    }
}
