package io.terrace.kafka;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * Keys of stores in which entries expire: a segment of time, a record's key, and two numbers (a
 * window's start and a sequence number, or a session's end and start).
 *
 * <p>A record's key is escaped and terminated, so that the entries of one key are neighbours and
 * keys keep their order: 00 becomes 00 01, and 00 00 ends it.
 */
final class Keys {
    private static final int END = 2;

    private Keys() {}

    /** An entry's key, taken apart. */
    record Parts(Bytes key, long first, long second) {}

    /** The first key of a segment. */
    static Bytes segment(long segment) {
        return Bytes.wrap(ByteBuffer.allocate(Long.BYTES).putLong(segment).array());
    }

    static long segmentOf(byte[] entryKey) {
        return ByteBuffer.wrap(entryKey).getLong();
    }

    static Bytes of(long segment, Bytes key, long first, long second) {
        byte[] escaped = escape(key);
        return Bytes.wrap(ByteBuffer.allocate(escaped.length + END + 3 * Long.BYTES)
                .putLong(segment)
                .put(escaped)
                .putShort((short) 0)
                .putLong(first)
                .putLong(second)
                .array());
    }

    /** A key that is not behind any entry of this record's key whose first number is as great. */
    static Bytes lower(long segment, Bytes key, long first) {
        byte[] escaped = escape(key);
        return Bytes.wrap(ByteBuffer.allocate(escaped.length + END + 2 * Long.BYTES)
                .putLong(segment)
                .put(escaped)
                .putShort((short) 0)
                .putLong(first)
                .array());
    }

    /** A key behind all entries of this record's key, and of lesser ones. */
    static Bytes after(long segment, Bytes key) {
        byte[] escaped = escape(key);
        return Bytes.wrap(ByteBuffer.allocate(escaped.length + END + Long.BYTES)
                .putLong(segment)
                .put(escaped)
                .putShort((short) 1)
                .array());
    }

    static Parts parse(byte[] entryKey) {
        ByteArrayOutputStream key = new ByteArrayOutputStream(entryKey.length);
        int at = Long.BYTES;
        while (entryKey[at] != 0 || entryKey[at + 1] != 0) {
            key.write(entryKey[at]);
            at += entryKey[at] == 0 ? 2 : 1;
        }
        ByteBuffer numbers = ByteBuffer.wrap(entryKey, at + END, 2 * Long.BYTES);
        return new Parts(Bytes.wrap(key.toByteArray()), numbers.getLong(), numbers.getLong());
    }

    static byte[] escape(Bytes key) {
        byte[] bytes = key.get();
        int zeros = 0;
        for (byte one : bytes) {
            zeros += one == 0 ? 1 : 0;
        }
        if (zeros == 0) {
            return bytes;
        }
        byte[] escaped = new byte[bytes.length + zeros];
        int at = 0;
        for (byte one : bytes) {
            escaped[at++] = one;
            if (one == 0) {
                escaped[at++] = 1;
            }
        }
        return escaped;
    }

    /** The first key behind all that begin with a prefix; null if there is none. */
    static Bytes afterPrefix(byte[] prefix) {
        int last = prefix.length - 1;
        while (last >= 0 && prefix[last] == (byte) 0xff) {
            last--;
        }
        if (last < 0) {
            return null;
        }
        byte[] after = Arrays.copyOf(prefix, last + 1);
        after[last]++;
        return Bytes.wrap(after);
    }

    /** The first key behind this one. */
    static Bytes successor(Bytes key) {
        return Bytes.wrap(Arrays.copyOf(key.get(), key.get().length + 1));
    }
}
