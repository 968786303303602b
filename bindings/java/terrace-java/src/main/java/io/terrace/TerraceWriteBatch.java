package io.terrace;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.iq80.leveldb.WriteBatch;

/**
 * Puts and deletes that are applied together or not at all. It is in memory of the heap, in
 * LevelDB's form, and crosses to the engine once, when it is written. Of one thread at a time; it
 * may be written any number of times.
 */
public final class TerraceWriteBatch implements WriteBatch {
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int HEADER = 12;
    private static final int COUNT = 8;
    private static final int MAX_VARINT = 5;
    private static final int LARGEST = Integer.MAX_VALUE - 16;
    private static final byte DELETION = 0;
    private static final byte VALUE = 1;

    private byte[] bytes = new byte[256];
    private int length = HEADER;
    private int count;
    private boolean closed;

    /** An empty batch. */
    public TerraceWriteBatch() {}

    @Override
    public TerraceWriteBatch put(byte[] key, byte[] value) {
        begin(VALUE, (long) key.length + value.length);
        append(key);
        append(value);
        return this;
    }

    @Override
    public TerraceWriteBatch delete(byte[] key) {
        begin(DELETION, key.length);
        append(key);
        return this;
    }

    /**
     * Returns the number of operations.
     *
     * @return the number
     */
    public int size() {
        return count;
    }

    /**
     * Returns the bytes that the batch takes in the log.
     *
     * @return bytes
     */
    public int approximateSize() {
        return length;
    }

    /** Removes every operation and keeps the memory. */
    public void clear() {
        length = HEADER;
        count = 0;
    }

    @Override
    public void close() {
        closed = true;
        bytes = new byte[0];
        clear();
    }

    byte[] bytes() {
        checkOpen();
        INT.set(bytes, COUNT, count);
        return bytes;
    }

    private void checkOpen() {
        if (closed) {
            throw new ClosedException("the batch is closed");
        }
    }

    private void begin(byte kind, long size) {
        checkOpen();
        long needed = length + 1L + 2 * MAX_VARINT + size;
        if (needed > LARGEST) {
            throw TerraceException.of(TerraceException.Kind.INVALID_ARGUMENT,
                    "a batch of " + needed + " bytes does not fit into a Java array");
        }
        if (needed > bytes.length) {
            long capacity = Math.min(LARGEST, Math.max(needed, 2L * bytes.length));
            bytes = Arrays.copyOf(bytes, (int) capacity);
        }
        bytes[length++] = kind;
        count++;
    }

    private void append(byte[] part) {
        int rest = part.length;
        while (rest >= 0x80) {
            bytes[length++] = (byte) (rest | 0x80);
            rest >>>= 7;
        }
        bytes[length++] = (byte) rest;
        System.arraycopy(part, 0, bytes, length, part.length);
        length += part.length;
    }
}
