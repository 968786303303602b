package io.terrace.kafka.cluster;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;

/**
 * The application under test, a program: "BROKERS DIRECTORY SUPPLIERS BUFFER". It counts records by
 * key and joins two topics within a window, exactly once, until it is killed or its standard input
 * ends.
 */
public final class Application {
    private static final Duration WINDOW = Duration.ofSeconds(10);

    private Application() {}

    /**
     * Runs the program.
     *
     * @param arguments brokers, a state directory, the class of suppliers, bytes of buffers
     * @throws Exception if it cannot start
     */
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, arguments[2]);
        settings.put("terrace.buffer.bytes", arguments[3]);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, "1");
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, "3");
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "500");
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        // A killed instance is missed soon.
        settings.put("session.timeout.ms", "10000");
        settings.put("auto.offset.reset", "earliest");
        KafkaStreams streams = new KafkaStreams(topology(settings), settings);
        CountDownLatch ended = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                    .StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        Thread input = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Only its end matters.
                }
            } catch (java.io.IOException e) {
                // An end as well.
            }
            ended.countDown();
        });
        input.setDaemon(true);
        input.start();
        ended.await();
        streams.close(Duration.ofSeconds(30));
    }

    private static Topology topology(Properties settings) {
        StreamsBuilder builder =
                new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
        KStream<String, String> left = builder.stream("left");
        KStream<String, String> right = builder.stream("right");
        left.groupByKey().count().toStream().mapValues(String::valueOf).to("counts");
        left.join(right, (one, other) -> one + "+" + other,
                JoinWindows.ofTimeDifferenceAndGrace(WINDOW, WINDOW)).to("joined");
        return builder.build(settings);
    }
}
