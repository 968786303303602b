package io.terrace.kafka.cluster;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A program: "DIRECTORY RECORDS SUPPLIERS BUFFER". Three brokers, two instances of {@link
 * Application} with a standby; instances are killed three times and a broker once while records
 * arrive. In the end every count and every joined pair must be there exactly once.
 */
public final class Campaign {
    private static final int BROKERS = 3;
    private static final int KEYS = 500;
    private static final int PARTITIONS = 4;
    private static final long MOST_MILLIS = 20 * 60_000;

    private final Path directory;
    private final int records;
    private final String suppliers;
    private final String buffer;
    /** Brokers remove records of long ago. */
    private final long start = System.currentTimeMillis();
    private final Map<String, Integer> expected = new HashMap<>();

    private Campaign(String[] arguments) {
        directory = Path.of(arguments[0]);
        records = Integer.parseInt(arguments[1]);
        suppliers = arguments[2];
        buffer = arguments[3];
    }

    /**
     * Runs the program.
     *
     * @param arguments a directory, a number of records, the class of suppliers, bytes of buffers
     * @throws Exception if something is lost, doubled or does not come
     */
    public static void main(String[] arguments) throws Exception {
        new Campaign(arguments).run();
    }

    private Process instance(Cluster cluster, int number) throws Exception {
        return cluster.java("instance-" + number, "400m", Application.class.getName(),
                Cluster.addresses(BROKERS), directory.resolve("state-" + number).toString(),
                suppliers, buffer);
    }

    private void run() throws Exception {
        Files.createDirectories(directory);
        long begun = System.nanoTime();
        try (Cluster cluster = new Cluster(directory, BROKERS)) {
            Cluster.createTopics(
                    BROKERS, PARTITIONS, List.of("left", "right", "counts", "joined"));
            Process[] instances = {instance(cluster, 0), instance(cluster, 1)};
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(producer())) {
                for (int quarter = 0; quarter < 4; quarter++) {
                    produce(producer, quarter);
                    producer.flush();
                    System.out.println("records so far: " + (quarter + 1) * (records / 4));
                    if (quarter < 3) {
                        int one = quarter % 2;
                        instances[one].destroyForcibly().waitFor();
                        System.out.println("instance " + one + " was killed");
                        instances[one] = instance(cluster, one);
                    }
                    if (quarter == 1) {
                        cluster.kill(2);
                        System.out.println("a broker was killed");
                        cluster.start(2);
                    }
                }
            }
            check();
        }
        System.out.printf("every output exactly once after %.0f s%n",
                (System.nanoTime() - begun) / 1e9);
    }

    private static Properties producer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", Cluster.addresses(BROKERS));
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("delivery.timeout.ms", "600000");
        settings.put("linger.ms", "20");
        return settings;
    }

    /** Every left record is one count; every tenth has a partner in its window. */
    private void produce(KafkaProducer<String, String> producer, int quarter) {
        Random random = new Random(quarter);
        TreeMap<String, Integer> counts = new TreeMap<>();
        expected.forEach((output, times) -> {
            if (output.startsWith("counts ")) {
                counts.merge(output.split("[ =]")[1], 1, Integer::sum);
            }
        });
        for (int i = 0; i < records / 4; i++) {
            long number = (long) quarter * (records / 4) + i;
            String key = "key" + random.nextInt(KEYS);
            long time = start + number;
            producer.send(new ProducerRecord<>("left", null, time, key, "l" + number));
            int count = counts.merge(key, 1, Integer::sum);
            expected.put("counts " + key + "=" + count, 1);
            if (i % 10 == 0) {
                // A key of its own, so that there is one pair.
                String pair = "pair" + number;
                producer.send(new ProducerRecord<>("left", null, time, pair, "l" + number));
                producer.send(new ProducerRecord<>("right", null, time, pair, "r" + number));
                expected.put("counts " + pair + "=1", 1);
                expected.put("joined " + pair + "=l" + number + "+r" + number, 1);
            }
        }
    }

    private void check() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", Cluster.addresses(BROKERS));
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        Map<String, Integer> seen = new HashMap<>();
        long end = System.currentTimeMillis() + MOST_MILLIS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : List.of("counts", "joined")) {
                for (int i = 0; i < PARTITIONS; i++) {
                    partitions.add(new TopicPartition(topic, i));
                }
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            int total = 0;
            // A little longer than needed, for what should not come.
            int idle = 0;
            while (total < expected.size() || idle < 20) {
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException(
                            total + " outputs came of " + expected.size());
                }
                int before = total;
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofSeconds(1))) {
                    seen.merge(one.topic() + " " + one.key() + "=" + one.value(), 1, Integer::sum);
                    total++;
                }
                idle = total == before ? idle + 1 : 0;
            }
        }
        compare(seen);
    }

    private void compare(Map<String, Integer> seen) {
        List<String> wrong = new ArrayList<>();
        expected.keySet().stream().filter(one -> !seen.containsKey(one))
                .forEach(one -> wrong.add("lost: " + one));
        seen.forEach((one, times) -> {
            if (times > 1 || !expected.containsKey(one)) {
                wrong.add(times + " times: " + one);
            }
        });
        if (!wrong.isEmpty()) {
            throw new IllegalStateException(wrong.size() + " outputs are wrong: "
                    + wrong.subList(0, Math.min(20, wrong.size())));
        }
        System.out.println(seen.size() + " outputs, nothing lost, nothing doubled");
    }
}
