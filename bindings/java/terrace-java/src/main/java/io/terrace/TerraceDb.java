package io.terrace;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.Range;
import org.iq80.leveldb.ReadOptions;
import org.iq80.leveldb.Snapshot;
import org.iq80.leveldb.WriteBatch;
import org.iq80.leveldb.WriteOptions;

/**
 * An open database. Any number of threads may use it at once; readers never wait for writers.
 *
 * <p>A write that has returned survives the death of the process; one with {@code sync}, and every
 * write before it, survives the loss of power. After a crash the database is a prefix of its
 * history of writes, batches whole.
 *
 * <p>Methods throw {@link TerraceException}: {@link ClosedException} after {@link #close}, {@link
 * CorruptionException} naming file and offset where bytes are damaged.
 *
 * <pre>{@code
 * try (TerraceDb db = TerraceDb.open(Path.of("fruit.db"), new TerraceOptions())) {
 *     db.put(bytes("apple"), bytes("red"));
 *     try (TerraceIterator fruit = db.range(bytes("a"), bytes("b"))) {
 *         fruit.forEachRemaining(entry -> System.out.println(asString(entry.getKey())));
 *     }
 * }
 * }</pre>
 */
public final class TerraceDb implements DB {
    private static final int SKIP_CACHE = 1;
    private static final ReadOptions READ = new ReadOptions();
    private static final long SUSPEND_STEP_MILLIS = 20;

    private final long number;
    private final Path path;
    private final Cleaner.Cleanable cleanable;
    private volatile boolean closed;

    TerraceDb(long number, Path path) {
        this.number = number;
        this.path = path;
        cleanable = Cleaning.register(this, () -> closeQuietly(number));
    }

    private static void closeQuietly(long number) {
        try {
            Native.closeDatabase(number);
        } catch (TerraceException e) {
            // Errors are reported by close.
        }
    }

    /**
     * Opens the database in a directory, creating it unless the options say otherwise.
     *
     * @param path the directory
     * @param options how
     * @return the database
     * @throws IOException if it cannot be opened; the cause is a {@link TerraceException}
     */
    public static TerraceDb open(Path path, TerraceOptions options) throws IOException {
        return TerraceFactory.factory.open(path.toFile(), options);
    }

    /**
     * Returns the directory of the database, as it was opened.
     *
     * @return the path
     */
    public Path path() {
        return path;
    }

    /**
     * Returns the result of a native call. An object that nobody uses after the call may be
     * collected while it runs. Here it is used, so the cleaner does not close it under the call.
     */
    private <T> T reachable(T result) {
        Reference.reachabilityFence(this);
        return result;
    }

    void checkOpen() {
        if (closed) {
            throw new ClosedException("the database is closed");
        }
    }

    private long snapshotOf(ReadOptions options) {
        Snapshot snapshot = options.snapshot();
        if (snapshot == null) {
            return 0;
        }
        if (!(snapshot instanceof TerraceSnapshot own) || own.db() != this) {
            throw TerraceException.of(TerraceException.Kind.INVALID_ARGUMENT,
                    "the snapshot is not one of this database");
        }
        return own.number();
    }

    private static int flags(ReadOptions options) {
        return options.fillCache() ? 0 : SKIP_CACHE;
    }

    @Override
    public byte[] get(byte[] key) {
        return get(key, READ);
    }

    @Override
    public byte[] get(byte[] key, ReadOptions options) {
        byte[] value = Native.get(number, snapshotOf(options), flags(options),
                Objects.requireNonNull(key, "key"));
        Reference.reachabilityFence(options);
        return reachable(value);
    }

    /**
     * Copies the value of a key into a direct buffer, without an object for either.
     *
     * <p>The key is what remains of its buffer, whose position does not move. As much of the value
     * as fits is written behind the position of the other buffer, whose limit is set to its end.
     * No other thread may close the arena of a buffer's memory segment during the call.
     *
     * @param key a direct buffer
     * @param value a direct buffer
     * @return the length of the value, which may be more than fitted; -1 if the key has none
     * @throws IllegalArgumentException if a buffer is not direct, or cannot be written to
     */
    public int get(ByteBuffer key, ByteBuffer value) {
        requireDirect(key);
        requireDirect(value);
        if (value.isReadOnly()) {
            throw new IllegalArgumentException("the buffer for the value is read-only");
        }
        int length = Native.getDirect(number, 0, 0, key, key.position(), key.remaining(),
                value, value.position(), value.remaining());
        Reference.reachabilityFence(this);
        if (length >= 0) {
            value.limit(value.position() + Math.min(length, value.remaining()));
        }
        return length;
    }

    /**
     * Returns the values of many keys as of one moment, in their order, null for a key without one.
     *
     * @param keys the keys
     * @return as many values
     */
    public byte[][] multiGet(List<byte[]> keys) {
        return multiGet(keys, READ);
    }

    /**
     * Does what {@link #multiGet(List)} does, reading as {@code options} say.
     *
     * @param keys the keys
     * @param options the snapshot to read, and whether to fill the cache
     * @return as many values
     */
    public byte[][] multiGet(List<byte[]> keys, ReadOptions options) {
        Packer packer = new Packer(32 * keys.size());
        keys.forEach(packer::add);
        byte[][] values = Native.multiGet(
                number, snapshotOf(options), flags(options), packer.bytes(), packer.length());
        Reference.reachabilityFence(options);
        return reachable(values);
    }

    @Override
    public TerraceIterator iterator() {
        return iterator(READ);
    }

    @Override
    public TerraceIterator iterator(ReadOptions options) {
        return range(null, null, options);
    }

    /**
     * Returns the entries whose keys are in a range.
     *
     * @param from the first key; null for none
     * @param to the key before which the range ends; null for none
     * @return an iterator that stands before the first of them
     */
    public TerraceIterator range(byte[] from, byte[] to) {
        return range(from, to, READ);
    }

    /**
     * Does what {@link #range(byte[], byte[])} does, reading as {@code options} say.
     *
     * @param from the first key; null for none
     * @param to the key before which the range ends; null for none
     * @param options the snapshot to read, and whether to fill the cache
     * @return an iterator that stands before the first of them
     */
    public TerraceIterator range(byte[] from, byte[] to, ReadOptions options) {
        checkOpen();
        long iterator = Native.iterator(number, snapshotOf(options), flags(options), from, to);
        Reference.reachabilityFence(options);
        return new TerraceIterator(this, iterator);
    }

    @Override
    public void put(byte[] key, byte[] value) {
        Native.put(number, Objects.requireNonNull(key, "key"),
                Objects.requireNonNull(value, "value"), false);
        Reference.reachabilityFence(this);
    }

    /**
     * Sets what remains of one direct buffer to what remains of another. Positions do not move.
     * No other thread may close the arena of a buffer's memory segment during the call.
     *
     * @param key a direct buffer
     * @param value a direct buffer
     * @throws IllegalArgumentException if a buffer is not direct
     */
    public void put(ByteBuffer key, ByteBuffer value) {
        requireDirect(key);
        requireDirect(value);
        Native.putDirect(number, key, key.position(), key.remaining(),
                value, value.position(), value.remaining(), false);
        Reference.reachabilityFence(this);
    }

    private static void requireDirect(ByteBuffer buffer) {
        if (!buffer.isDirect()) {
            throw new IllegalArgumentException("the buffer is not direct");
        }
        if (buffer.hasRemaining()) {
            // Fails if its memory segment was closed, or is another thread's.
            buffer.get(buffer.position());
        }
    }

    @Override
    public void delete(byte[] key) {
        Native.put(number, Objects.requireNonNull(key, "key"), null, false);
        Reference.reachabilityFence(this);
    }

    /**
     * Removes every key of a range as one step: a reader sees all of them or none. Many keys go by
     * removing their tables.
     *
     * @param from the first key; null for none
     * @param to the key before which the range ends; null for none
     */
    public void deleteRange(byte[] from, byte[] to) {
        Native.deleteRange(number, from, to);
        Reference.reachabilityFence(this);
    }

    @Override
    public void write(WriteBatch updates) {
        apply(updates, false);
    }

    private void apply(WriteBatch updates, boolean sync) {
        if (!(Objects.requireNonNull(updates, "updates") instanceof TerraceWriteBatch own)) {
            throw new IllegalArgumentException("the batch is not one of Terrace's");
        }
        byte[] bytes = own.bytes();
        Native.write(number, bytes, own.approximateSize(), sync);
        Reference.reachabilityFence(this);
    }

    @Override
    public TerraceWriteBatch createWriteBatch() {
        checkOpen();
        return new TerraceWriteBatch();
    }

    @Override
    public Snapshot put(byte[] key, byte[] value, WriteOptions options) {
        Native.put(number, Objects.requireNonNull(key, "key"),
                Objects.requireNonNull(value, "value"), options.sync());
        Reference.reachabilityFence(this);
        return snapshotAfter(options);
    }

    @Override
    public Snapshot delete(byte[] key, WriteOptions options) {
        Native.put(number, Objects.requireNonNull(key, "key"), null, options.sync());
        Reference.reachabilityFence(this);
        return snapshotAfter(options);
    }

    @Override
    public Snapshot write(WriteBatch updates, WriteOptions options) {
        apply(updates, options.sync());
        return snapshotAfter(options);
    }

    /** A snapshot that sees the write, and may see later ones. */
    private Snapshot snapshotAfter(WriteOptions options) {
        return options.snapshot() ? getSnapshot() : null;
    }

    @Override
    public TerraceSnapshot getSnapshot() {
        return new TerraceSnapshot(this, Native.snapshot(number));
    }

    /**
     * Begins a transaction. Others neither wait for it nor see its writes before it is committed.
     *
     * @return the transaction
     */
    public TerraceTransaction transaction() {
        return new TerraceTransaction(this, Native.transaction(number));
    }

    /**
     * Begins a load of many entries: faster than writes, and visible at one moment.
     *
     * @return the load
     */
    public BulkLoad bulkLoad() {
        return new BulkLoad(this, Native.bulkLoad(number));
    }

    @Override
    public long[] getApproximateSizes(Range... ranges) {
        Packer packer = new Packer(64);
        for (Range range : ranges) {
            packer.add(range.start());
            packer.add(range.limit());
        }
        return reachable(
                Native.approximateSizes(number, Arrays.copyOf(packer.bytes(), packer.length())));
    }

    @Override
    public String getProperty(String name) {
        return reachable(Native.property(number, Objects.requireNonNull(name, "name")));
    }

    /**
     * Returns numbers about the database and its work since it was opened, by name.
     *
     * @return the numbers, in the order of {@code terrace stats}
     */
    public Map<String, Long> stats() {
        Map<String, Long> stats = new LinkedHashMap<>();
        reachable(Native.stats(number)).lines().forEach(line -> {
            int space = line.indexOf(' ');
            stats.put(line.substring(0, space), Long.parseUnsignedLong(line.substring(space + 1)));
        });
        return stats;
    }

    /**
     * Checks every file of the database while it is in use.
     *
     * @return what was read, and what is damaged
     */
    public VerifyReport verify() {
        return VerifyReport.parse(reachable(Native.verify(number)));
    }

    /**
     * Makes a copy of the database in another directory while it is in use. It holds every write
     * acknowledged before the call, and is durable when this returns. Tables are hard links where
     * the file system allows it.
     *
     * @param directory an absent or empty directory
     */
    public void checkpoint(Path directory) {
        Native.checkpoint(number, TerraceFactory.bytes(directory.toString()));
        Reference.reachabilityFence(this);
    }

    /** Makes every earlier write survive the loss of power. */
    public void sync() {
        Native.sync(number);
        Reference.reachabilityFence(this);
    }

    /** Writes what is in memory to tables and waits for it. */
    public void flush() {
        Native.flush(number);
        Reference.reachabilityFence(this);
    }

    /** Waits until no flush or compaction is due or running. */
    public void waitIdle() {
        Native.waitIdle(number);
        Reference.reachabilityFence(this);
    }

    /**
     * Suspends flushes and compactions, and waits for those that are running, {@link #compactRange},
     * {@link #deleteRange} and {@link BulkLoad#finish} included. Such calls then wait until
     * {@link #resumeCompactions}: the thread that is to make that call must not make them before.
     * Writers wait once their memory is full; {@link #checkpoint} is the better way to a backup.
     */
    @Override
    public void suspendCompactions() throws InterruptedException {
        while (!Native.suspend(number, SUSPEND_STEP_MILLIS)) {
            if (Thread.interrupted()) {
                Native.resume(number);
                throw new InterruptedException();
            }
        }
        Reference.reachabilityFence(this);
    }

    @Override
    public void resumeCompactions() {
        Native.resume(number);
        Reference.reachabilityFence(this);
    }

    @Override
    public void compactRange(byte[] begin, byte[] end) {
        Native.compactRange(number, begin, end);
        Reference.reachabilityFence(this);
    }

    /**
     * Stops background work, closes every file and releases the lock. Iterators, snapshots and
     * transactions fail from then on; they may be closed later. A second call does nothing.
     *
     * @throws IOException if something could not be written or closed
     */
    @Override
    public void close() throws IOException {
        closed = true;
        try {
            Native.closeDatabase(number);
        } catch (TerraceException e) {
            throw new IOException(e.getMessage(), e);
        } finally {
            cleanable.clean();
        }
    }
}
