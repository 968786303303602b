package io.terrace.kafka;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Suppliers of stores on Terrace, for the builders of {@code Stores} and for {@code Materialized}:
 * what {@code Stores.persistent...} is for RocksDB.
 *
 * <pre>{@code
 * Stores.keyValueStoreBuilder(
 *         TerraceStores.keyValueStore("counts"), Serdes.String(), Serdes.Long());
 * }</pre>
 */
public final class TerraceStores {
    private TerraceStores() {}

    /**
     * A key-value store of plain values.
     *
     * @param name the store's name
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        Objects.requireNonNull(name, "name");
        return new Suppliers.KeyValues(name, () -> new TerraceKeyValueStore(name));
    }

    /**
     * A key-value store whose values have a timestamp.
     *
     * @param name the store's name
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        Objects.requireNonNull(name, "name");
        return new Suppliers.KeyValues(name, () -> new TerraceKeyValueStore.Timestamped(name));
    }

    /**
     * A key-value store whose values have headers and a timestamp.
     *
     * @param name the store's name
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStoreWithHeaders(String name) {
        return new Suppliers.KeyValuesWithHeaders(Objects.requireNonNull(name, "name"));
    }

    /**
     * A versioned key-value store.
     *
     * @param name the store's name
     * @param historyRetention how long versions are kept
     * @return its supplier
     */
    public static VersionedBytesStoreSupplier versionedKeyValueStore(
            String name, Duration historyRetention) {
        Objects.requireNonNull(name, "name");
        return new Suppliers.Versioned(name, notNegative(historyRetention, "historyRetention"));
    }

    private static long notNegative(Duration duration, String what) {
        long millis = duration.toMillis();
        if (millis < 0) {
            throw new IllegalArgumentException(what + " cannot be negative");
        }
        return millis;
    }

    private static WindowBytesStoreSupplier windows(
            String name,
            Duration retention,
            Duration windowSize,
            boolean duplicates,
            Suppliers.Format format) {
        Objects.requireNonNull(name, "name");
        long kept = notNegative(retention, "retentionPeriod");
        long size = notNegative(windowSize, "windowSize");
        if (size > kept) {
            throw new IllegalArgumentException("The retention period of the window store " + name
                    + " must be no smaller than its window size. Got size=[" + size
                    + "], retention=[" + kept + "]");
        }
        return format == Suppliers.Format.HEADERS
                ? new Suppliers.WindowsWithHeaders(name, kept, size, duplicates)
                : new Suppliers.Windows(name, kept, size, duplicates, format);
    }

    /**
     * A window store of plain values.
     *
     * @param name the store's name
     * @param retentionPeriod how long windows are kept, at least a window's size
     * @param windowSize a window's size
     * @param retainDuplicates whether a window may have several values of a key
     * @return its supplier
     */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return windows(
                name, retentionPeriod, windowSize, retainDuplicates, Suppliers.Format.PLAIN);
    }

    /**
     * A window store whose values have a timestamp.
     *
     * @param name the store's name
     * @param retentionPeriod how long windows are kept, at least a window's size
     * @param windowSize a window's size
     * @param retainDuplicates whether a window may have several values of a key
     * @return its supplier
     */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return windows(
                name, retentionPeriod, windowSize, retainDuplicates, Suppliers.Format.TIMESTAMPED);
    }

    /**
     * A window store whose values have headers and a timestamp.
     *
     * @param name the store's name
     * @param retentionPeriod how long windows are kept, at least a window's size
     * @param windowSize a window's size
     * @param retainDuplicates whether a window may have several values of a key
     * @return its supplier
     */
    public static WindowBytesStoreSupplier timestampedWindowStoreWithHeaders(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return windows(
                name, retentionPeriod, windowSize, retainDuplicates, Suppliers.Format.HEADERS);
    }

    /**
     * A session store.
     *
     * @param name the store's name
     * @param retentionPeriod how long sessions are kept
     * @return its supplier
     */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retentionPeriod) {
        Objects.requireNonNull(name, "name");
        return new Suppliers.Sessions(name, notNegative(retentionPeriod, "retentionPeriod"));
    }

    /**
     * A session store whose values have headers.
     *
     * @param name the store's name
     * @param retentionPeriod how long sessions are kept
     * @return its supplier
     */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(
            String name, Duration retentionPeriod) {
        Objects.requireNonNull(name, "name");
        return new Suppliers.SessionsWithHeaders(
                name, notNegative(retentionPeriod, "retentionPeriod"));
    }
}
