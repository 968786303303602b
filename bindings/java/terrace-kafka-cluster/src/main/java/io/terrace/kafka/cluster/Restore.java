package io.terrace.kafka.cluster;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;

/**
 * A program: "DIRECTORY RECORDS SUPPLIERS". One broker and one instance of an application that
 * keeps the last value of every key: how many records a second it processes, and, with its local
 * state removed, restores from the changelog. Keys are drawn from as many as there are records.
 */
public final class Restore {
    private static final int PARTITIONS = 2;
    private static final int VALUE_SIZE = 100;

    private final Path directory;
    private final int records;
    private final String suppliers;
    private volatile CountDownLatch processed;

    private Restore(String[] arguments) {
        directory = Path.of(arguments[0]);
        records = Integer.parseInt(arguments[1]);
        suppliers = arguments[2];
        processed = new CountDownLatch(records);
    }

    /**
     * Runs the program.
     *
     * @param arguments a directory, a number of records, the class of suppliers
     * @throws Exception if something does not start
     */
    public static void main(String[] arguments) throws Exception {
        new Restore(arguments).run();
    }

    private void run() throws Exception {
        Files.createDirectories(directory);
        try (Cluster cluster = new Cluster(directory, 1)) {
            Cluster.createTopics(1, PARTITIONS, List.of("input"));
            produce();
            long before = Memory.kibibytes("VmRSS");
            try (KafkaStreams streams = start()) {
                long begun = System.nanoTime();
                processed.await();
                tell("process", begun);
                System.out.println("memory " + (Memory.kibibytes("VmRSS") - before));
            }
            remove(directory.resolve("state"));
            long begun = System.nanoTime();
            try (KafkaStreams streams = start()) {
                // A store is restored before its task runs.
                while (streams.state() != KafkaStreams.State.RUNNING
                        || streams.allLocalStorePartitionLags().values().stream()
                                .flatMap(lags -> lags.values().stream())
                                .anyMatch(lag -> lag.offsetLag() > 0)) {
                    Thread.sleep(10);
                }
                tell("restore", begun);
            }
        }
    }

    private void tell(String what, long begun) {
        System.out.printf("%s %.0f%n", what, records / ((System.nanoTime() - begun) / 1e9));
    }

    private void produce() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", Cluster.addresses(1));
        settings.put("linger.ms", "20");
        settings.put("batch.size", "200000");
        SplittableRandom random = new SplittableRandom(1);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < records; i++) {
                byte[] key = ByteBuffer.allocate(16).putLong(8, random.nextInt(records)).array();
                byte[] value = new byte[VALUE_SIZE];
                random.nextBytes(value);
                producer.send(new ProducerRecord<>("input", key, value));
            }
        }
    }

    private KafkaStreams start() throws InterruptedException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, Cluster.addresses(1));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.resolve("state").toString());
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put("auto.offset.reset", "earliest");
        StreamsBuilder builder =
                new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
        builder.<byte[], byte[]>stream("input").groupByKey().aggregate(() -> null,
                (key, value, last) -> {
                    processed.countDown();
                    return value;
                });
        Topology topology = builder.build(settings);
        KafkaStreams streams = new KafkaStreams(topology, settings);
        streams.start();
        return streams;
    }

    private static void remove(Path path) throws IOException {
        try (Stream<Path> files = Files.walk(path)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
