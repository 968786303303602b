package io.terrace;

import java.util.Objects;
import org.iq80.leveldb.CompressionType;
import org.iq80.leveldb.Options;

/**
 * How a database is opened: what {@link Options} has, and what only Terrace has.
 *
 * <p>The setters of {@link Options} return an {@code Options}; call those of this class first, or
 * one after the other:
 *
 * <pre>{@code
 * TerraceOptions options = new TerraceOptions().readOnly(true);
 * options.createIfMissing(false);
 * }</pre>
 */
public class TerraceOptions extends Options {
    private static final int FIELDS = 18;

    private boolean readOnly;
    private boolean reuseLogs;
    private int filterBits = 10;
    private int maxFileSize = 2 << 20;
    private long compactionRateLimit;
    private int backgroundThreads;
    private SharedCache cache;
    private MemoryBudget memoryBudget;
    private int valueLog;

    /** LevelDB's defaults. */
    public TerraceOptions() {}

    /**
     * Returns whether the database is opened without changing a byte of its directory.
     *
     * @return true if so
     */
    public boolean readOnly() {
        return readOnly;
    }

    /**
     * Opens without changing a byte of the directory. Writes fail, and other readers may have the
     * database open at the same time. Default: false.
     *
     * @param readOnly whether to do so
     * @return this
     */
    public TerraceOptions readOnly(boolean readOnly) {
        this.readOnly = readOnly;
        return this;
    }

    /**
     * Continues with the newest log at the next open instead of writing a table. Default: false.
     *
     * @param reuseLogs whether to do so
     * @return this
     */
    public TerraceOptions reuseLogs(boolean reuseLogs) {
        this.reuseLogs = reuseLogs;
        return this;
    }

    /**
     * Bits for each key in a filter that spares reads of tables without it. Default: 10.
     *
     * @param filterBits 0 (no filter) to 32
     * @return this
     */
    public TerraceOptions filterBits(int filterBits) {
        this.filterBits = filterBits;
        return this;
    }

    /**
     * Bytes of a table before the next one begins. Default: 2 MiB.
     *
     * @param maxFileSize clipped to 1 MiB to 1 GiB
     * @return this
     */
    public TerraceOptions maxFileSize(int maxFileSize) {
        this.maxFileSize = maxFileSize;
        return this;
    }

    /**
     * Bytes a second that compactions may write. Default: 0, no limit.
     *
     * @param compactionRateLimit 0, or 1 MiB to 1 TiB
     * @return this
     */
    public TerraceOptions compactionRateLimit(long compactionRateLimit) {
        this.compactionRateLimit = compactionRateLimit;
        return this;
    }

    /**
     * Threads that flush and compact, for all databases of the process. Default: 2.
     *
     * @param backgroundThreads 1 to 64; 0 for the default
     * @return this
     */
    public TerraceOptions backgroundThreads(int backgroundThreads) {
        this.backgroundThreads = backgroundThreads;
        return this;
    }

    /**
     * Shares a cache of blocks with other databases. Default: one of {@link #cacheSize} bytes of
     * its own, 8 MiB if that is 0.
     *
     * @param cache the cache
     * @return this
     */
    public TerraceOptions cache(SharedCache cache) {
        this.cache = Objects.requireNonNull(cache, "cache");
        return this;
    }

    /**
     * Has the database share a bound for memory with others. Without a {@link #cache} it then
     * shares one within the bound, in place of {@link #cacheSize}, and the write buffer has an
     * eighth of the bound at most. Default: no bound.
     *
     * @param memoryBudget the bound
     * @return this
     */
    public TerraceOptions memoryBudget(MemoryBudget memoryBudget) {
        this.memoryBudget = Objects.requireNonNull(memoryBudget, "memoryBudget");
        return this;
    }

    /**
     * Keeps values of at least this many bytes in value files instead of tables, so that
     * compactions do not copy them again and again. LevelDB refuses a database with value files,
     * until {@code terrace convert --to plain} has brought the values back. Default: 0, values stay
     * in tables.
     *
     * @param valueLog bytes of a value; 0 for none
     * @return this
     */
    public TerraceOptions valueLog(int valueLog) {
        this.valueLog = valueLog;
        return this;
    }

    /** The settings by their places: see {@code native/src/options.rs}. */
    static long[] settings(Options options) {
        long[] fields = new long[FIELDS];
        fields[0] = flag(options.createIfMissing());
        fields[1] = flag(options.errorIfExists());
        fields[2] = flag(options.paranoidChecks());
        fields[5] = options.writeBufferSize();
        fields[6] = options.maxOpenFiles();
        fields[7] = options.blockRestartInterval();
        fields[8] = options.blockSize();
        fields[9] = flag(options.compressionType() == CompressionType.SNAPPY);
        fields[10] = options.cacheSize();
        TerraceOptions own =
                options instanceof TerraceOptions more ? more : new TerraceOptions();
        fields[3] = flag(own.readOnly);
        fields[4] = flag(own.reuseLogs);
        fields[11] = own.filterBits;
        fields[12] = own.maxFileSize;
        fields[13] = own.compactionRateLimit;
        fields[14] = own.backgroundThreads;
        fields[15] = own.cache == null ? 0 : own.cache.number();
        fields[16] = own.memoryBudget == null ? 0 : own.memoryBudget.number();
        fields[17] = own.valueLog;
        return fields;
    }

    private static long flag(boolean set) {
        return set ? 1 : 0;
    }
}
