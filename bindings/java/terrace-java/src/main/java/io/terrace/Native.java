package io.terrace;

import java.nio.ByteBuffer;

/**
 * The native methods, which {@code bindings/java/native} implements.
 *
 * <p>Objects are numbers that are never used twice. A number of a closed object is an error.
 */
final class Native {
    static {
        NativeLibrary.load();
        initialize();
    }

    private Native() {}

    private static native void initialize();

    static native long open(
            byte[] path,
            long[] settings,
            Object comparator,
            byte[] comparatorName,
            Object logger);

    static native boolean closeDatabase(long database);

    static native byte[] get(long database, long snapshot, int flags, byte[] key);

    static native int getDirect(
            long database,
            long snapshot,
            int flags,
            ByteBuffer key,
            int keyOffset,
            int keyLength,
            ByteBuffer value,
            int valueOffset,
            int valueLength);

    static native byte[][] multiGet(
            long database, long snapshot, int flags, byte[] keys, int length);

    /** Removes the key if the value is null. */
    static native void put(long database, byte[] key, byte[] value, boolean sync);

    /** Removes the key if the value is null. */
    static native void putDirect(
            long database,
            ByteBuffer key,
            int keyOffset,
            int keyLength,
            ByteBuffer value,
            int valueOffset,
            int valueLength,
            boolean sync);

    static native void write(long database, byte[] batch, int length, boolean sync);

    static native long snapshot(long database);

    static native boolean closeSnapshot(long snapshot);

    static native long iterator(
            long database, long snapshot, int flags, byte[] lower, byte[] upper);

    static native boolean closeIterator(long iterator);

    static native long fill(long iterator, int start, byte[] key, byte[] array, int entries);

    static native long transaction(long database);

    static native boolean closeTransaction(long transaction);

    static native byte[] transactionGet(long transaction, byte[] key, boolean forUpdate);

    static native void transactionPut(long transaction, byte[] key, byte[] value);

    static native byte[][] transactionRange(
            long transaction, byte[] from, boolean after, byte[] to, int bytes);

    static native void transactionSavepoint(long transaction, boolean back);

    static native void commit(long transaction, boolean sync);

    static native long bulkLoad(long database);

    static native void bulkLoadPut(long load, byte[] entries, int length);

    static native long finishBulkLoad(long load);

    static native boolean closeBulkLoad(long load);

    static native long cache(long bytes);

    static native boolean closeCache(long cache);

    static native long memoryBudget(long bytes);

    static native long memoryBudgetUsed(long budget);

    static native boolean closeMemoryBudget(long budget);

    static native void flush(long database);

    static native void sync(long database);

    static native void waitIdle(long database);

    static native void compactRange(long database, byte[] from, byte[] to);

    static native void deleteRange(long database, byte[] from, byte[] to);

    static native boolean suspend(long database, long millis);

    static native void resume(long database);

    static native long[] approximateSizes(long database, byte[] ranges);

    static native void checkpoint(long database, byte[] path);

    static native void destroy(byte[] path);

    static native void repair(
            byte[] path,
            long[] settings,
            Object comparator,
            byte[] comparatorName,
            Object logger);

    static native String property(long database, String name);

    static native String stats(long database);

    static native String verify(long database);
}
