package io.terrace.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is there after a process has died between two commits. */
class CommitTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final Map<String, String> EXACTLY_ONCE = Map.of(
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            Memory.BUFFER, "100000");
    private static final Map<String, String> AT_LEAST_ONCE = Map.of(Memory.BUFFER, "100000");

    private File directory;

    @BeforeEach
    void makeDirectory() throws Exception {
        directory = Contexts.directory();
    }

    private KeyValueStore<Bytes, byte[]> open(Map<String, String> settings) {
        KeyValueStore<Bytes, byte[]> store = TerraceStores.keyValueStore("store").get();
        store.init(Contexts.context(directory, settings), store);
        return store;
    }

    private static Bytes key(int number) {
        return Bytes.wrap(("key" + number).getBytes());
    }

    private static byte[] value(int number) {
        return ("value" + number).getBytes();
    }

    @Test
    void writes_offsets_and_position_take_effect_together() {
        KeyValueStore<Bytes, byte[]> store = open(EXACTLY_ONCE);
        assertNull(store.committedOffset(CHANGELOG));
        store.put(key(1), value(1));
        ((TerraceKeyValueStore) store).getPosition().withComponent("topic", 0, 7);
        store.commit(Map.of(CHANGELOG, 100L));
        store.put(key(1), value(2));
        store.put(key(2), value(2));
        ((TerraceKeyValueStore) store).getPosition().withComponent("topic", 0, 8);
        assertArrayEquals(value(2), store.get(key(1)));
        // Without a commit this is what a killed process leaves.
        store.close();
        store = open(EXACTLY_ONCE);
        assertArrayEquals(value(1), store.get(key(1)));
        assertNull(store.get(key(2)));
        assertEquals(100, store.committedOffset(CHANGELOG));
        assertEquals(
                Position.emptyPosition().withComponent("topic", 0, 7), store.getPosition());
        store.close();
    }

    @Test
    void a_program_may_write_into_its_arrays() {
        KeyValueStore<Bytes, byte[]> store = open(AT_LEAST_ONCE);
        byte[] name = {1};
        byte[] value = {1};
        store.put(Bytes.wrap(name), value);
        name[0] = 9;
        value[0] = 9;
        Bytes key = Bytes.wrap(new byte[] {1});
        store.get(key)[0] = 9;
        try (KeyValueIterator<Bytes, byte[]> entries = store.all()) {
            KeyValue<Bytes, byte[]> entry = entries.next();
            assertEquals(key, entry.key);
            entry.key.get()[0] = 9;
            entry.value[0] = 9;
        }
        assertArrayEquals(new byte[] {1}, store.get(key));
        store.commit(Map.of());
        assertArrayEquals(new byte[] {1}, store.get(key));
        store.close();
    }

    @Test
    void offsets_are_removed_by_null_and_by_an_empty_map() {
        KeyValueStore<Bytes, byte[]> store = open(AT_LEAST_ONCE);
        TopicPartition other = new TopicPartition("changelog", 4);
        store.put(key(1), value(1));
        store.commit(Map.of(CHANGELOG, 1L, other, 2L));
        Map<TopicPartition, Long> one = new HashMap<>();
        one.put(CHANGELOG, null);
        store.commit(one);
        assertNull(store.committedOffset(CHANGELOG));
        assertEquals(2, store.committedOffset(other));
        store.commit(Map.of());
        assertNull(store.committedOffset(other));
        store.close();
    }

    @Test
    void aborted_writes_that_outgrew_memory_cost_the_offsets_under_exactly_once() {
        KeyValueStore<Bytes, byte[]> store = open(EXACTLY_ONCE);
        store.committedOffset(CHANGELOG);
        store.commit(Map.of(CHANGELOG, 5L));
        for (int i = 0; i < 5000; i++) {
            store.put(key(i), value(i));
        }
        store.close();
        store = open(EXACTLY_ONCE);
        // Kafka Streams wipes and restores a store that is not empty and has no offset.
        assertNull(store.committedOffset(CHANGELOG));
        store.commit(Map.of(CHANGELOG, 6L));
        assertEquals(6, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void at_least_once_keeps_the_offset_whatever_memory_holds() {
        KeyValueStore<Bytes, byte[]> store = open(AT_LEAST_ONCE);
        store.committedOffset(CHANGELOG);
        store.commit(Map.of(CHANGELOG, 5L));
        for (int i = 0; i < 5000; i++) {
            store.put(key(i), value(i));
        }
        store.close();
        store = open(AT_LEAST_ONCE);
        assertEquals(5, store.committedOffset(CHANGELOG));
        assertArrayEquals(value(0), store.get(key(0)));
        store.close();
    }

    @Test
    void a_checkpoint_of_another_store_beside_an_empty_one_is_not_believed() {
        KeyValueStore<Bytes, byte[]> store = open(AT_LEAST_ONCE);
        // Kafka Streams migrates a checkpoint file before it asks for offsets.
        store.commit(Map.of(CHANGELOG, 1_000_000L));
        assertNull(store.committedOffset(CHANGELOG));
        store.put(key(1), value(1));
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        store = open(AT_LEAST_ONCE);
        store.commit(Map.of(CHANGELOG, 2L));
        assertEquals(2, store.committedOffset(CHANGELOG));
        store.close();
    }
}
