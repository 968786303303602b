package io.terrace.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;

/** Stores beside models and beside Kafka's own stores, under random calls. */
class StoreModelTest {
    private static Bytes bytes(String text) {
        return text == null ? null : Bytes.wrap(text.getBytes());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes);
    }

    private static List<String> drain(KeyValueIterator<?, byte[]> iterator) {
        List<String> entries = new ArrayList<>();
        try (iterator) {
            while (iterator.hasNext()) {
                Object peeked = iterator.peekNextKey();
                KeyValue<?, byte[]> entry = iterator.next();
                assertEquals(peeked, entry.key);
                String key = entry.key instanceof Bytes key1
                        ? text(key1.get())
                        : entry.key.toString();
                entries.add(key + "=" + text(entry.value));
            }
        }
        return entries;
    }

    private static List<String> entries(Map<String, String> model) {
        return model.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).toList();
    }

    @Test
    void a_key_value_store_is_a_sorted_map_between_commits_and_after_them() throws Exception {
        Random random = Contexts.random("StoreModelTest keys");
        File directory = Contexts.directory();
        KeyValueStore<Bytes, byte[]> store = TerraceStores.keyValueStore("store").get();
        store.init(Contexts.context(directory, Map.of(Memory.BUFFER, "3000")), store);
        TreeMap<String, String> model = new TreeMap<>();
        for (int step = 0; step < 3000; step++) {
            String key = Integer.toString(random.nextInt(300));
            String from = random.nextInt(4) == 0 ? null : Integer.toString(random.nextInt(300));
            String to = random.nextInt(4) == 0 ? null : Integer.toString(random.nextInt(300));
            switch (random.nextInt(10)) {
                case 0, 1, 2 -> {
                    String value = random.nextInt(9) == 0 ? "" : "v" + step;
                    store.put(bytes(key), value.getBytes());
                    model.put(key, value);
                }
                case 3 -> assertEquals(model.remove(key), text(store.delete(bytes(key))));
                case 4 -> store.commit(Map.of());
                case 5 -> assertEquals(
                        model.putIfAbsent(key, "n" + step),
                        text(store.putIfAbsent(bytes(key), ("n" + step).getBytes())));
                case 6 -> {
                    NavigableMap<String, String> range = range(model, from, to);
                    assertEquals(entries(range), drain(store.range(bytes(from), bytes(to))));
                    assertEquals(entries(range.descendingMap()),
                            drain(store.reverseRange(bytes(from), bytes(to))));
                }
                case 7 -> {
                    String prefix = key.substring(0, 1);
                    TreeMap<String, String> begins = new TreeMap<>(model);
                    begins.keySet().removeIf(one -> !one.startsWith(prefix));
                    assertEquals(entries(begins),
                            drain(store.prefixScan(prefix, new StringSerializer())));
                }
                case 8 -> {
                    if (random.nextInt(20) == 0) {
                        store.commit(Map.of());
                        store.close();
                        store = TerraceStores.keyValueStore("store").get();
                        store.init(Contexts.context(directory, Map.of()), store);
                    }
                }
                default -> assertEquals(model.get(key), text(store.get(bytes(key))));
            }
        }
        assertEquals(entries(model), drain(store.all()));
        assertEquals(entries(model.descendingMap()), drain(store.reverseAll()));
        store.close();
    }

    private static NavigableMap<String, String> range(
            TreeMap<String, String> model, String from, String to) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            return new TreeMap<>();
        }
        NavigableMap<String, String> range = from == null ? model : model.tailMap(from, true);
        return to == null ? range : range.headMap(to, true);
    }

    @Test
    void a_window_store_returns_what_kafkas_store_in_memory_does() throws Exception {
        Random random = Contexts.random("StoreModelTest windows");
        Duration retention = Duration.ofMinutes(5);
        WindowStore<Bytes, byte[]> store = TerraceStores.windowStore(
                "store", retention, Duration.ofSeconds(10), false).get();
        WindowStore<Bytes, byte[]> other = Stores.inMemoryWindowStore(
                "other", retention, Duration.ofSeconds(10), false).get();
        store.init(Contexts.context(Contexts.directory(), Map.of(Memory.BUFFER, "3000")), store);
        other.init(Contexts.context(Contexts.directory(), Map.of()), other);
        long now = 0;
        for (int step = 0; step < 2000; step++) {
            now += random.nextInt(2000);
            long time = Math.max(0, now - random.nextInt(400_000));
            // Keys of which one begins with another, and with zeros.
            Bytes key = Bytes.wrap(new byte[random.nextInt(4)]);
            key = random.nextBoolean() ? key : bytes("a".repeat(random.nextInt(3)));
            switch (random.nextInt(6)) {
                case 0, 1 -> {
                    byte[] value = random.nextInt(5) == 0 ? null : ("v" + step).getBytes();
                    store.put(key, value, time);
                    other.put(key, value, time);
                }
                case 2 -> assertEquals(
                        text(other.fetch(key, time)), text(store.fetch(key, time)));
                case 3 -> {
                    assertEquals(drainTimes(other.fetch(key, time, now)),
                            drainTimes(store.fetch(key, time, now)));
                    assertEquals(drainTimes(other.backwardFetch(key, time, now)),
                            drainTimes(store.backwardFetch(key, time, now)));
                }
                case 4 -> assertEquals(sorted(drain(other.fetchAll(time, now))),
                        sorted(drain(store.fetchAll(time, now))));
                default -> {
                    assertEquals(sorted(drain(other.all())), sorted(drain(store.all())));
                    store.commit(Map.of());
                }
            }
        }
        store.close();
    }

    private static List<String> drainTimes(
            org.apache.kafka.streams.state.WindowStoreIterator<byte[]> iterator) {
        List<String> entries = new ArrayList<>();
        try (iterator) {
            iterator.forEachRemaining(entry -> entries.add(entry.key + "=" + text(entry.value)));
        }
        return entries;
    }

    private static List<String> sorted(List<String> list) {
        return list.stream().sorted().toList();
    }

    @Test
    void a_versioned_store_returns_what_kafkas_own_one_does() throws Exception {
        Random random = Contexts.random("StoreModelTest versions");
        Duration history = Duration.ofSeconds(100);
        VersionedBytesStore store = (VersionedBytesStore)
                TerraceStores.versionedKeyValueStore("store", history).get();
        VersionedBytesStore other = (VersionedBytesStore)
                Stores.persistentVersionedKeyValueStore("other", history).get();
        store.init(Contexts.context(Contexts.directory(), Map.of(Memory.BUFFER, "3000")), store);
        other.init(Contexts.context(Contexts.directory(), Map.of()), other);
        long now = 0;
        for (int step = 0; step < 3000; step++) {
            // Now and then everything but the latest versions is history.
            now += random.nextInt(100) == 0 ? 200_000 : random.nextInt(1000);
            long time = Math.max(0, now - random.nextInt(150_000));
            // Often a version of just that time is there.
            time = random.nextBoolean() ? time : time - time % 4000;
            Bytes key = bytes("key" + random.nextInt(random.nextBoolean() ? 5 : 100));
            switch (random.nextInt(4)) {
                case 0 -> {
                    byte[] value = random.nextInt(4) == 0 ? null : ("v" + step).getBytes();
                    assertEquals(other.put(key, value, time), store.put(key, value, time));
                }
                case 1 -> assertEquals(text(other.get(key)), text(store.get(key)));
                case 2 -> assertEquals(text(other.get(key, time)), text(store.get(key, time)));
                default -> store.commit(Map.of());
            }
        }
        store.close();
        other.close();
    }
}
