package org.apache.kafka.streams.state.internals;

import io.terrace.kafka.TerraceStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's own tests of session stores. */
class TerraceSessionStoreTest extends AbstractSessionBytesStoreTest {
    private int made;

    @Override
    StoreType storeType() {
        // The kind that expires by the millisecond and finds sessions by their ends.
        return StoreType.InMemoryStore;
    }

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(
            long retentionPeriod, Serde<K> keySerde, Serde<V> valueSerde) {
        // Some tests have two in one directory.
        String name = "terrace" + made++;
        return Stores.sessionStoreBuilder(
                        TerraceStores.sessionStore(name, Duration.ofMillis(retentionPeriod)),
                        keySerde,
                        valueSerde)
                .build();
    }
}
