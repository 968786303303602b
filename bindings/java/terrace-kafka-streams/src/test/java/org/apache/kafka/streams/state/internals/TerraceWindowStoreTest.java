package org.apache.kafka.streams.state.internals;

import io.terrace.kafka.TerraceStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's own tests of window stores. */
class TerraceWindowStoreTest extends AbstractWindowBytesStoreTest {
    private int made;

    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retentionPeriod,
            long windowSize,
            boolean retainDuplicates,
            Serde<K> keySerde,
            Serde<V> valueSerde) {
        // Some tests have two in one directory.
        String name = "terrace" + made++;
        return Stores.windowStoreBuilder(
                        TerraceStores.windowStore(name, Duration.ofMillis(retentionPeriod),
                                Duration.ofMillis(windowSize), retainDuplicates),
                        keySerde,
                        valueSerde)
                .build();
    }
}
