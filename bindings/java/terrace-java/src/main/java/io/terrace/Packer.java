package io.terrace;

import java.util.Arrays;

/** Packs pieces into one array: of each its length, greatest byte first, and its bytes. */
final class Packer {
    private static final int LARGEST = Integer.MAX_VALUE - 16;

    private byte[] bytes;
    private int length;

    Packer(int capacity) {
        bytes = new byte[capacity];
    }

    void add(byte[] piece) {
        long needed = length + 4L + piece.length;
        if (needed > LARGEST) {
            throw TerraceException.of(TerraceException.Kind.INVALID_ARGUMENT,
                    needed + " bytes do not fit into a Java array");
        }
        if (needed > bytes.length) {
            long capacity = Math.min(LARGEST, Math.max(needed, 2L * bytes.length));
            bytes = Arrays.copyOf(bytes, (int) capacity);
        }
        for (int shift = 24; shift >= 0; shift -= 8) {
            bytes[length++] = (byte) (piece.length >>> shift);
        }
        System.arraycopy(piece, 0, bytes, length, piece.length);
        length += piece.length;
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    /** Forgets what was added since the length was {@code length}. */
    void truncate(int length) {
        this.length = length;
    }

    void clear() {
        length = 0;
    }
}
