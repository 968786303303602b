package io.terrace;

import java.util.Arrays;
import org.iq80.leveldb.DBComparator;

/** The reverse of the bytewise order. */
record Backward() implements DBComparator {
    @Override
    public int compare(byte[] left, byte[] right) {
        return Arrays.compareUnsigned(right, left);
    }

    @Override
    public String name() {
        return "test.Backward";
    }

    @Override
    public byte[] findShortestSeparator(byte[] start, byte[] limit) {
        return start;
    }

    @Override
    public byte[] findShortSuccessor(byte[] key) {
        return key;
    }
}
