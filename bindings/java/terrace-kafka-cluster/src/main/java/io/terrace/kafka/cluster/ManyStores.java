package io.terrace.kafka.cluster;

import io.terrace.kafka.TerraceStores;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.SplittableRandom;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.LongSerializer;
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
 * A program: "DIRECTORY STORES PUTS terrace|rocksdb|heap BUDGET". A topology with many key-value
 * stores, which are written and read all over: prints how much native memory came on top of a heap
 * that is resident from the start. Stores on the heap tell how much of it is the virtual machine's.
 */
public final class ManyStores {
    private static final int VALUE_SIZE = 200;
    /** Puts for each record that comes in: the driver commits every store after it. */
    private static final int PUTS = 10_000;

    private ManyStores() {}

    /**
     * Runs the program.
     *
     * @param arguments a directory, numbers of stores and puts, an engine, bytes of memory
     * @throws Exception if something fails
     */
    public static void main(String[] arguments) throws Exception {
        int stores = Integer.parseInt(arguments[1]);
        long puts = Long.parseLong(arguments[2]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(arguments[0]).toString());
        settings.put("terrace.memory.bytes", arguments[4]);
        long before = Memory.kibibytes("RssAnon");
        long begun = System.nanoTime();
        try (TopologyTestDriver driver =
                new TopologyTestDriver(topology(stores, arguments[3]), settings)) {
            TestInputTopic<Long, byte[]> input = driver.createInputTopic(
                    "input", new LongSerializer(), new ByteArraySerializer());
            long most = 0;
            for (long i = 0; i < puts / PUTS; i++) {
                input.pipeInput(puts, new byte[0]);
                most = Math.max(most, Memory.kibibytes("RssAnon") - before);
            }
            System.out.printf(
                    "native memory: %d MiB at most, %d MiB at the end; %.0f puts and gets/s%n",
                    most >> 10, (Memory.kibibytes("RssAnon") - before) >> 10,
                    puts / ((System.nanoTime() - begun) / 1e9));
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
            KeyValueBytesStoreSupplier supplier = switch (engine) {
                case "terrace" -> TerraceStores.keyValueStore(name(i));
                case "rocksdb" -> Stores.persistentKeyValueStore(name(i));
                default -> Stores.inMemoryKeyValueStore(name(i));
            };
            topology.addStateStore(
                    Stores.keyValueStoreBuilder(supplier, Serdes.Long(), Serdes.ByteArray())
                            .withLoggingDisabled(),
                    "writer");
        }
        return topology;
    }

    /** For every record writes keys up to its own all over the stores, and reads others. */
    private static final class Writer implements Processor<Long, byte[], Void, Void> {
        private final int count;
        private final List<KeyValueStore<Long, byte[]>> stores = new ArrayList<>();
        private final SplittableRandom random = new SplittableRandom(1);

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
            for (int i = 0; i < PUTS; i++) {
                byte[] value = new byte[VALUE_SIZE];
                random.nextBytes(value);
                long key = random.nextLong(record.key());
                KeyValueStore<Long, byte[]> store = stores.get((int) (key % count));
                store.put(key, value);
                store.get(key / 2 / count * count + key % count);
            }
        }
    }
}
