package io.terrace;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.AbstractMap;
import java.util.Arrays;
import java.util.ConcurrentModificationException;
import java.util.Map;

/**
 * A gap between two entries of an iterator, and entries around it that crossed the border together.
 *
 * <p>The entries lie in the direction in which they were read. {@code index} of them are on the
 * side of the gap from which the reading came.
 *
 * <p>Of one thread at a time. Two threads may see wrong entries or an exception, nothing worse: all
 * memory is of the heap.
 */
final class EntryWindow {
    // The numbers of native/src/iterator.rs.
    private static final int FIRST = 0;
    private static final int AT_OR_AFTER = 1;
    private static final int AFTER = 2;
    private static final int CONTINUE_FORWARD = 3;
    private static final int LAST = 4;
    private static final int BEFORE = 5;
    private static final int CONTINUE_BACKWARD = 6;
    private static final int NONE = -1;

    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int HEADER = 8;
    // Growth from a seek, which may want one entry, to a scan.
    private static final int FIRST_ENTRIES = 4;
    private static final int MOST_ENTRIES = 1024;
    private static final int FIRST_BYTES = 1 << 10;
    private static final int MOST_BYTES = 128 << 10;

    private final long iterator;
    private byte[] data = new byte[FIRST_BYTES];
    private int[] starts = new int[FIRST_ENTRIES];
    private int count;
    private int index;
    private boolean forward = true;
    /** Whether nothing follows the window in its direction. */
    private boolean exhausted;
    /** Whether nothing precedes it. */
    private boolean bounded;
    /** Whether the engine's cursor stands right behind the window. */
    private boolean continues;
    private int entries = FIRST_ENTRIES;
    /** A seek that was asked for and not done yet. */
    private int pending = FIRST;
    private byte[] pendingKey;

    EntryWindow(long iterator) {
        this.iterator = iterator;
    }

    void seekToFirst() {
        seek(FIRST, null);
    }

    /** Puts the gap before the last entry. */
    void seekToLast() {
        seek(LAST, null);
    }

    void seek(byte[] key) {
        seek(AT_OR_AFTER, key.clone());
    }

    /** Puts the gap behind the last entry. */
    void seekToEnd() {
        seek(NONE, null);
        forward = true;
        exhausted = true;
    }

    private void seek(int start, byte[] key) {
        pending = start;
        pendingKey = key;
        count = 0;
        index = 0;
        exhausted = false;
        bounded = false;
        continues = false;
        entries = FIRST_ENTRIES;
    }

    /** Loads the entry behind the gap. Returns whether there is one. */
    boolean hasNext() {
        if (pending != NONE) {
            resolve(true);
        }
        if (forward) {
            return index < count || advance(CONTINUE_FORWARD, AFTER);
        }
        return index > 0 || switchDirection(FIRST, AFTER);
    }

    /** Loads the entry before the gap. Returns whether there is one. */
    boolean hasPrev() {
        if (pending != NONE) {
            resolve(false);
        }
        if (!forward) {
            return index < count || advance(CONTINUE_BACKWARD, BEFORE);
        }
        return index > 0 || switchDirection(LAST, BEFORE);
    }

    /** The entry behind the gap; {@link #hasNext} has returned true. */
    Map.Entry<byte[], byte[]> peekNext() {
        return entry(forward ? index : index - 1);
    }

    /** The entry before the gap; {@link #hasPrev} has returned true. */
    Map.Entry<byte[], byte[]> peekPrev() {
        return entry(forward ? index - 1 : index);
    }

    /** Moves the gap behind the entry that {@link #peekNext} shows. */
    void moveNext() {
        index += forward ? 1 : -1;
    }

    /** Moves the gap before the entry that {@link #peekPrev} shows. */
    void movePrev() {
        index += forward ? -1 : 1;
    }

    private void resolve(boolean next) {
        int start = pending;
        byte[] key = pendingKey;
        pending = NONE;
        pendingKey = null;
        try {
            if (start == LAST) {
                // The gap is before the last entry, if there is one.
                index = fill(LAST, null) ? 1 : 0;
            } else if (next || start == FIRST) {
                fill(start, key);
                bounded = start == FIRST && count > 0;
            } else {
                fill(BEFORE, key);
            }
        } catch (RuntimeException e) {
            pending = start;
            pendingKey = key;
            throw e;
        }
    }

    /** Goes on in the window's direction. */
    private boolean advance(int onward, int beyond) {
        if (exhausted || count == 0) {
            return false;
        }
        if (entries < MOST_ENTRIES) {
            entries *= 8;
        }
        if (data.length < MOST_BYTES && index > 0) {
            data = grown(data);
        }
        boolean more = continues ? fill(onward, null) : fill(beyond, key(count - 1));
        exhausted = !more;
        return more;
    }

    /** A larger array that still holds the window. */
    private static byte[] grown(byte[] data) {
        return Arrays.copyOf(data, Math.min(MOST_BYTES, 8 * data.length));
    }

    /** Goes the other way from the window's first entry, or from an end if it is empty. */
    private boolean switchDirection(int end, int beyond) {
        if (bounded) {
            return false;
        }
        entries = FIRST_ENTRIES;
        boolean more = count == 0 ? fill(end, null) : fill(beyond, key(0));
        bounded = !more;
        return more;
    }

    /** Replaces the window, unless there is nothing; the gap is before what comes first. */
    private boolean fill(int start, byte[] key) {
        byte[] target = data;
        long filled = Native.fill(iterator, start, key, target, entries);
        while (filled < 0) {
            if (-filled > Integer.MAX_VALUE - 16) {
                throw TerraceException.of(TerraceException.Kind.NOT_SUPPORTED,
                        "an entry of " + -filled + " bytes does not fit into a Java array");
            }
            target = new byte[(int) -filled];
            filled = Native.fill(iterator, start, key, target, entries);
        }
        boolean goesForward = start <= CONTINUE_FORWARD;
        if (filled == 0) {
            continues = false;
            if (count == 0) {
                forward = goesForward;
            }
            return false;
        }
        data = target;
        count = (int) filled;
        index = 0;
        forward = goesForward;
        exhausted = false;
        bounded = false;
        continues = true;
        locate();
        return true;
    }

    private void locate() {
        if (starts.length < count) {
            starts = new int[count];
        }
        int at = 0;
        for (int i = 0; i < count; i++) {
            starts[i] = at;
            at += HEADER + (int) INT.get(data, at) + (int) INT.get(data, at + 4);
        }
    }

    private byte[] key(int i) {
        return part(starts[i] + HEADER, (int) INT.get(data, starts[i]));
    }

    private Map.Entry<byte[], byte[]> entry(int i) {
        int start = starts[i];
        int keyLength = (int) INT.get(data, start);
        byte[] key = part(start + HEADER, keyLength);
        byte[] value = part(start + HEADER + keyLength, (int) INT.get(data, start + 4));
        return new AbstractMap.SimpleImmutableEntry<>(key, value);
    }

    private byte[] part(int from, int length) {
        if (from < 0 || length < 0 || length > data.length - from) {
            throw new ConcurrentModificationException("two threads use one iterator");
        }
        return Arrays.copyOfRange(data, from, from + length);
    }
}
