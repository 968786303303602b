package io.terrace.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;

/** Suppliers of Terrace's stores. */
final class Suppliers {
    private static final String SCOPE = "terrace";

    private Suppliers() {}

    /** Key-value stores of one kind. */
    static class KeyValues implements KeyValueBytesStoreSupplier {
        private final String name;
        private final Supplier<KeyValueStore<Bytes, byte[]>> maker;

        KeyValues(String name, Supplier<KeyValueStore<Bytes, byte[]>> maker) {
            this.name = name;
            this.maker = maker;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return maker.get();
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    /** Key-value stores with headers. */
    static final class KeyValuesWithHeaders extends KeyValues implements HeadersBytesStoreSupplier {
        KeyValuesWithHeaders(String name) {
            super(name, () -> new TerraceKeyValueStore.WithHeaders(name));
        }
    }

    /** Versioned stores. */
    static final class Versioned extends KeyValues implements VersionedBytesStoreSupplier {
        private final long history;

        Versioned(String name, long history) {
            super(name, () -> new VersionedKeyValueToBytesStoreAdapter(
                    new TerraceVersionedStore(name, history)));
            this.history = history;
        }

        @Override
        public long historyRetentionMs() {
            return history;
        }
    }

    /** What the values of a store begin with. */
    enum Format { PLAIN, TIMESTAMPED, HEADERS }

    /** Window stores. */
    static class Windows implements WindowBytesStoreSupplier {
        private final String name;
        private final long retention;
        private final long windowSize;
        private final boolean duplicates;
        private final Format format;

        Windows(String name, long retention, long windowSize, boolean duplicates, Format format) {
            this.name = name;
            this.retention = retention;
            this.windowSize = windowSize;
            this.duplicates = duplicates;
            this.format = format;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            long interval = segmentIntervalMs();
            return switch (format) {
                case PLAIN -> new TerraceWindowStore(
                        name, retention, interval, windowSize, duplicates);
                case TIMESTAMPED -> new TerraceWindowStore.Timestamped(
                        name, retention, interval, windowSize, duplicates);
                case HEADERS -> new TerraceWindowStore.WithHeaders(
                        name, retention, interval, windowSize, duplicates);
            };
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return segmentInterval(retention);
        }

        @Override
        public long windowSize() {
            return windowSize;
        }

        @Override
        public boolean retainDuplicates() {
            return duplicates;
        }

        @Override
        public long retentionPeriod() {
            return retention;
        }
    }

    /** Window stores with headers. */
    static final class WindowsWithHeaders extends Windows implements HeadersBytesStoreSupplier {
        WindowsWithHeaders(String name, long retention, long windowSize, boolean duplicates) {
            super(name, retention, windowSize, duplicates, Format.HEADERS);
        }
    }

    /** Session stores. */
    static class Sessions implements SessionBytesStoreSupplier {
        private final String name;
        private final long retention;

        Sessions(String name, long retention) {
            this.name = name;
            this.retention = retention;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return new TerraceSessionStore(name, retention, segmentIntervalMs());
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return segmentInterval(retention);
        }

        @Override
        public long retentionPeriod() {
            return retention;
        }
    }

    /** Session stores with headers. */
    static final class SessionsWithHeaders extends Sessions implements HeadersBytesStoreSupplier {
        SessionsWithHeaders(String name, long retention) {
            super(name, retention);
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return new TerraceSessionStore.WithHeaders(
                    name(), retentionPeriod(), segmentIntervalMs());
        }
    }

    /** Half of the retention, a minute at least, as Kafka's own stores have it. */
    private static long segmentInterval(long retention) {
        return Math.max(retention / 2, 60_000);
    }
}
