package io.terrace.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.internals.InMemoryKeyValueStore;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;

/**
 * What all stores have in common: opening, restoring, committing, queries and closing.
 *
 * <p>Kafka Streams runs a query with the position locked, and writers lock the position while they
 * hold the store's monitor. So nothing that a query calls locks the store.
 *
 * <p>The directory is {@code terrace/NAME} in the task's directory. It uses internal classes of
 * Kafka Streams for metrics, positions and interactive queries, so a version of this module belongs
 * to one version of Kafka Streams.
 */
abstract class TerraceStateStore implements StateStore {
    private static final String DIRECTORY = "terrace";

    private final String name;
    private final Set<StoreIterator> iterators = ConcurrentHashMap.newKeySet();
    private StateStoreContext context;
    private Sensor dropped;
    private boolean consistency;
    private volatile StoreFile file;
    private volatile Position position = Position.emptyPosition();

    TerraceStateStore(String name) {
        this.name = Objects.requireNonNull(name, "name");
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void init(StateStoreContext stateStoreContext, StateStore root) {
        context = stateStoreContext;
        dropped = TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(),
                context.taskId().toString(),
                ProcessorContextUtils.metricsImpl(context));
        consistency = StreamsConfig.InternalConfig.getBoolean(
                context.appConfigs(),
                StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED,
                false);
        open();
        try {
            context.register(root, (RecordBatchingStateRestoreCallback) this::restore, () -> {});
        } catch (RuntimeException e) {
            // A store whose init failed is not closed by Kafka Streams, and the lock would stay.
            close();
            throw e;
        }
    }

    private void open() {
        Map<String, Object> configs = context.appConfigs();
        boolean exactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(
                configs.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG));
        File directory = new File(new File(context.stateDir(), DIRECTORY), name);
        try {
            Files.createDirectories(directory.toPath());
        } catch (IOException e) {
            throw new ProcessorStateException("Error creating " + directory, e);
        }
        StoreFile opening =
                new StoreFile(directory, name, format(), changelog(), configs, exactlyOnce);
        try {
            position = opening.position();
            opened(opening);
        } catch (RuntimeException e) {
            // As in init.
            opening.close();
            throw e;
        }
        file = opening;
    }

    /**
     * The topic that the store is restored from: its changelog, or the source topic of a global
     * store or of an optimized table. Null if there is none. {@code
     * ProcessorContextUtils.changelogFor} makes up a name then.
     */
    private String changelog() {
        return context instanceof InternalProcessorContext<?, ?> internal
                ? internal.changelogFor(name)
                : null;
    }

    /** What determines how entries are encoded in the file. */
    private String format() {
        String values = this instanceof HeadersBytesStore
                ? "headers"
                : this instanceof TimestampedBytesStore ? "timestamps" : "plain";
        return kind() + ", " + values;
    }

    /** What determines the keys in the file: two kinds of stores cannot read each other's file. */
    abstract String kind();

    /** Called when the file was opened, before anything is restored. */
    void opened(StoreFile opened) {}

    /** What a record of the changelog is in the file; null to leave it out. */
    abstract KeyValue<Bytes, byte[]> restored(ConsumerRecord<byte[], byte[]> record);

    /** Called when entries that {@link #restored} returned are in the file. */
    void afterRestore(List<KeyValue<Bytes, byte[]>> entries) {}

    /** A store that was closed is opened again, as Kafka's own segments are. */
    synchronized void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (file == null) {
            open();
        }
        synchronized (position) {
            for (ConsumerRecord<byte[], byte[]> record : records) {
                ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(
                        record, consistency, position);
            }
        }
        List<KeyValue<Bytes, byte[]>> entries =
                records.stream().map(this::restored).filter(Objects::nonNull).toList();
        file().restore(entries);
        afterRestore(entries);
    }

    /** The open file. */
    StoreFile file() {
        StoreFile opened = file;
        if (opened == null) {
            throw new InvalidStateStoreException("Store " + name + " is currently closed");
        }
        return opened;
    }

    StateStoreContext context() {
        return context;
    }

    /** An iterator that closes with the store. */
    StoreIterator iterator(Bytes from, Bytes to, boolean forward) {
        StoreIterator iterator = file().range(from, to, forward);
        iterators.add(iterator);
        return iterator.whenClosed(() -> iterators.remove(iterator));
    }

    /**
     * Returns whether a range's first key is behind its last one. If so, Kafka's own store says
     * so, in the words that its users know.
     */
    boolean warnOfInvertedRange(Bytes from, Bytes to) {
        boolean inverted = from != null && to != null && from.compareTo(to) > 0;
        if (inverted) {
            new InMemoryKeyValueStore(name).range(from, to).close();
        }
        return inverted;
    }

    /** Takes note of the record that is being processed. */
    void updatePosition() {
        synchronized (position) {
            StoreQueryUtils.updatePosition(position, context);
        }
    }

    /** Counts a record that came too late. */
    void drop() {
        dropped.record(
                1, ProcessorContextUtils.asInternalProcessorContext(context).currentSystemTimeMs());
    }

    @Override
    public void commit(Map<TopicPartition, Long> changelogOffsets) {
        StoreFile opened = file;
        if (opened != null) {
            opened.commit(changelogOffsets, position);
        }
    }

    @Override
    public Long committedOffset(TopicPartition partition) {
        return file().committedOffset(partition);
    }

    @Override
    @Deprecated
    public boolean managesOffsets() {
        return true;
    }

    @Override
    public void close() {
        StoreFile opened = file;
        file = null;
        if (opened == null) {
            return;
        }
        iterators.forEach(StoreIterator::close);
        opened.close();
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return file != null;
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, this, position, context);
    }
}
