package io.terrace.bench;

/** What a benchmark does with an engine. */
interface Store extends AutoCloseable {
    void put(byte[] key, byte[] value) throws Exception;

    /** Puts entries in one batch. */
    void putAll(byte[][] keys, byte[] value) throws Exception;

    byte[] get(byte[] key) throws Exception;

    /** Reads all entries, keys and values, and returns how many there are. */
    long iterate() throws Exception;

    @Override
    void close() throws Exception;
}
