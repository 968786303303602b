package io.terrace.kafka.cluster;

import io.terrace.kafka.TerraceStores;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.SplittableRandom;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A program: "DIRECTORY STORES RECORDS terrace|rocksdb BUDGET". A topology with many key-value
 * stores, which are written and read all over: prints how much native memory came on top of a heap
 * that is resident from the start.
 */
public final class ManyStores {
    private static final int VALUE_SIZE = 200;

    private ManyStores() {}

    /**
     * Runs the program.
     *
     * @param arguments a directory, numbers of stores and records, an engine, bytes of memory
     * @throws Exception if something fails
     */
    public static void main(String[] arguments) throws Exception {
        int stores = Integer.parseInt(arguments[1]);
        long records = Long.parseLong(arguments[2]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(arguments[0]).toString());
        settings.put("terrace.memory.bytes", arguments[4]);
        long before = Memory.kibibytes("VmRSS");
        long begun = System.nanoTime();
        try (TopologyTestDriver driver =
                new TopologyTestDriver(topology(stores, arguments[3]), settings)) {
            TestInputTopic<Long, byte[]> input =
                    driver.createInputTopic("input", new LongSerializer(), new ByteArraySerializer());
            SplittableRandom random = new SplittableRandom(1);
            byte[] value = new byte[VALUE_SIZE];
            long most = 0;
            for (long i = 0; i < records; i++) {
                random.nextBytes(value);
                input.pipeInput(random.nextLong(records), value.clone());
                if (i % 10_000 == 0) {
                    most = Math.max(most, Memory.kibibytes("VmRSS") - before);
                    driver.advanceWallClockTime(Duration.ofSeconds(1));
                }
            }
            System.out.printf("native memory: %d MiB at most, %d MiB at the end; %.0f records/s%n",
                    most >> 10, (Memory.kibibytes("VmRSS") - before) >> 10,
                    records / ((System.nanoTime() - begun) / 1e9));
        }
    }

    private static String name(int number) {
        return "store-" + number;
    }

    private static Topology topology(int stores, String engine) {
        Topology topology = new Topology();
        topology.addSource("source", Serdes.Long().deserializer(),
                Serdes.ByteArray().deserializer(), "input");
        topology.addProcessor("writer", () -> new Writer(stores), "source");
        for (int i = 0; i < stores; i++) {
            KeyValueBytesStoreSupplier supplier = engine.equals("terrace")
                    ? TerraceStores.keyValueStore(name(i))
                    : Stores.persistentKeyValueStore(name(i));
            topology.addStateStore(
                    Stores.keyValueStoreBuilder(supplier, Serdes.Long(), Serdes.ByteArray())
                            .withLoggingDisabled(),
                    "writer");
        }
        return topology;
    }

    /** Writes every record to one of the stores and reads another key there. */
    private static final class Writer implements Processor<Long, byte[], Void, Void> {
        private final int count;
        private final List<KeyValueStore<Long, byte[]>> stores = new ArrayList<>();

        Writer(int count) {
            this.count = count;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            for (int i = 0; i < count; i++) {
                stores.add(context.getStateStore(name(i)));
            }
        }

        @Override
        public void process(Record<Long, byte[]> record) {
            KeyValueStore<Long, byte[]> store = stores.get((int) (record.key() % count));
            store.put(record.key(), record.value());
            store.get(record.key() / 2 / count * count + record.key() % count);
        }
    }
}
