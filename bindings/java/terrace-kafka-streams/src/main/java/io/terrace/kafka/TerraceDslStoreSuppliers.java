package io.terrace.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Puts every store that the DSL makes by itself on Terrace:
 *
 * <pre>{@code
 * dsl.store.suppliers.class=io.terrace.kafka.TerraceDslStoreSuppliers
 * }</pre>
 *
 * <p>Stores that the topology names with {@code Stores.persistent...} stay what they are: take
 * {@link TerraceStores} there.
 */
public class TerraceDslStoreSuppliers implements DslStoreSuppliers {
    /** For Kafka Streams, which makes one by its name. */
    public TerraceDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return switch (params.dslStoreFormat()) {
            case HEADERS -> TerraceStores.timestampedKeyValueStoreWithHeaders(params.name());
            case TIMESTAMPED -> TerraceStores.timestampedKeyValueStore(params.name());
            case PLAIN -> TerraceStores.keyValueStore(params.name());
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        DslStoreFormat format = params.dslStoreFormat();
        if (format == null || format == DslStoreFormat.TIMESTAMPED) {
            return TerraceStores.timestampedWindowStore(params.name(), params.retentionPeriod(),
                    params.windowSize(), params.retainDuplicates());
        }
        return format == DslStoreFormat.HEADERS
                ? TerraceStores.timestampedWindowStoreWithHeaders(params.name(),
                        params.retentionPeriod(), params.windowSize(), params.retainDuplicates())
                : TerraceStores.windowStore(params.name(), params.retentionPeriod(),
                        params.windowSize(), params.retainDuplicates());
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return params.storeFormat() == DslStoreFormat.HEADERS
                ? TerraceStores.sessionStoreWithHeaders(params.name(), params.retentionPeriod())
                : TerraceStores.sessionStore(params.name(), params.retentionPeriod());
    }
}
