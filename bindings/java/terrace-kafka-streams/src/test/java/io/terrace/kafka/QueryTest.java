package io.terrace.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.junit.jupiter.api.Test;

/** Interactive queries of other threads than the stream thread. */
class QueryTest {
    private static final Bytes KEY = Bytes.wrap("key".getBytes());
    private static final byte[] VALUE = "value".getBytes();

    private static <T extends StateStore> T opened(T store) throws Exception {
        store.init(Contexts.context(Contexts.directory(), Map.of()), store);
        return store;
    }

    /** Reads while a writer is blocked by the position, which a query holds in Kafka Streams. */
    private static void readBeside(StateStore store, Runnable write, Runnable read)
            throws Exception {
        Thread writer = new Thread(write, "writer");
        writer.setDaemon(true);
        CountDownLatch done = new CountDownLatch(1);
        Thread query = new Thread(() -> {
            synchronized (store.getPosition()) {
                writer.start();
                while (writer.getState() != Thread.State.BLOCKED) {
                    Thread.onSpinWait();
                }
                read.run();
            }
            done.countDown();
        }, "query");
        query.setDaemon(true);
        query.start();
        assertTrue(done.await(20, TimeUnit.SECONDS), "the query and the writer are deadlocked");
        writer.join();
        store.close();
    }

    @Test
    void a_query_reads_while_a_commit_waits_for_the_position() throws Exception {
        TerraceKeyValueStore store = opened(new TerraceKeyValueStore("store"));
        store.put(KEY, VALUE);
        readBeside(store, () -> store.commit(Map.of()), () -> {
            assertArrayEquals(VALUE, store.get(KEY));
            store.range(null, null).close();
        });
    }

    @Test
    void a_query_of_versions_reads_while_a_put_waits_for_the_position() throws Exception {
        TerraceVersionedStore store = opened(new TerraceVersionedStore("store", 1000));
        store.put(KEY, VALUE, 1);
        readBeside(store, () -> store.put(KEY, VALUE, 5),
                () -> assertEquals(1, store.get(KEY, 2).timestamp()));
    }

    private static List<String> versions(
            StateStore store, Bytes key, long from, long to, boolean ascending) {
        MultiVersionedKeyQuery<Bytes, byte[]> query =
                MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key)
                        .fromTime(Instant.ofEpochMilli(from))
                        .toTime(Instant.ofEpochMilli(to));
        query = ascending ? query.withAscendingTimestamps() : query.withDescendingTimestamps();
        QueryResult<VersionedRecordIterator<byte[]>> result =
                store.query(query, PositionBound.unbounded(), new QueryConfig(false));
        assertTrue(result.isSuccess(), () -> result.getFailureMessage());
        List<String> versions = new ArrayList<>();
        try (VersionedRecordIterator<byte[]> records = result.getResult()) {
            while (records.hasNext()) {
                VersionedRecord<byte[]> record = records.next();
                versions.add(new String(record.value())
                        + "@" + record.timestamp() + "-" + record.validTo());
            }
        }
        return versions;
    }

    @Test
    void versions_of_a_time_range_are_those_of_kafkas_own_store() throws Exception {
        Random random = Contexts.random("QueryTest versions");
        Duration history = Duration.ofDays(1);
        VersionedBytesStore store = opened((VersionedBytesStore)
                TerraceStores.versionedKeyValueStore("store", history).get());
        VersionedBytesStore other = opened((VersionedBytesStore)
                Stores.persistentVersionedKeyValueStore("other", history).get());
        for (int step = 0; step < 1000; step++) {
            Bytes key = Bytes.wrap(("key" + random.nextInt(5)).getBytes());
            long time = random.nextInt(500);
            if (random.nextBoolean()) {
                byte[] value = random.nextInt(4) == 0 ? null : ("v" + step).getBytes();
                store.put(key, value, time);
                other.put(key, value, time);
            }
            long to = time + random.nextInt(200);
            boolean ascending = random.nextBoolean();
            assertEquals(versions(other, key, time, to, ascending),
                    versions(store, key, time, to, ascending));
            assertEquals(versions(other, key, Long.MIN_VALUE, Long.MAX_VALUE, ascending),
                    versions(store, key, Long.MIN_VALUE, Long.MAX_VALUE, ascending));
        }
        store.close();
        other.close();
    }

    @Test
    void history_that_is_not_kept_is_not_among_the_versions() throws Exception {
        TerraceVersionedStore store = opened(new TerraceVersionedStore("store", 100));
        store.put(KEY, VALUE, 0);
        store.put(KEY, VALUE, 10);
        store.put(KEY, VALUE, 20);
        store.put(Bytes.wrap(new byte[1]), VALUE, 115);
        assertEquals(List.of("value@10-Optional[20]", "value@20-Optional.empty"),
                versions(store, KEY, 0, 200, true));
        assertEquals(List.of(), versions(store, KEY, 0, 12, true));
        store.close();
    }

    @Test
    void a_query_of_versions_heeds_its_position_bound() throws Exception {
        TerraceVersionedStore store = opened(new TerraceVersionedStore("store", 100));
        store.put(KEY, VALUE, 0);
        MultiVersionedKeyQuery<Bytes, byte[]> query =
                MultiVersionedKeyQuery.<Bytes, byte[]>withKey(KEY)
                        .fromTime(Instant.EPOCH).toTime(Instant.ofEpochMilli(1));
        PositionBound bound =
                PositionBound.at(Position.emptyPosition().withComponent("topic", 0, 1_000_000));
        QueryResult<VersionedRecordIterator<byte[]>> result =
                store.query(query, bound, new QueryConfig(true));
        assertEquals(FailureReason.NOT_UP_TO_BOUND, result.getFailureReason());
        store.close();
    }

    @Test
    void a_read_that_races_a_close_says_that_the_store_is_closed() throws Exception {
        TerraceKeyValueStore store = opened(new TerraceKeyValueStore("store"));
        StoreFile file = store.file();
        StoreIterator iterator = file.range(null, null, true);
        store.close();
        assertThrows(InvalidStateStoreException.class, () -> file.get(KEY));
        assertThrows(InvalidStateStoreException.class, () -> file.range(null, null, true));
        assertThrows(InvalidStateStoreException.class, iterator::hasNext);
    }
}
