package io.terrace.bench;

import java.io.File;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/** RocksDB, with its default options. */
final class RocksStore implements Store {
    private final Options options = new Options().setCreateIfMissing(true);
    private final WriteOptions write = new WriteOptions();
    private final RocksDB db;

    RocksStore(File directory) throws Exception {
        db = RocksDB.open(options, directory.toString());
    }

    @Override
    public void put(byte[] key, byte[] value) throws Exception {
        db.put(write, key, value);
    }

    @Override
    public void putAll(byte[][] keys, byte[] value) throws Exception {
        try (WriteBatch batch = new WriteBatch()) {
            for (byte[] key : keys) {
                batch.put(key, value);
            }
            db.write(write, batch);
        }
    }

    @Override
    public byte[] get(byte[] key) throws Exception {
        return db.get(key);
    }

    @Override
    public long iterate() {
        long count = 0;
        long bytes = 0;
        try (RocksIterator iterator = db.newIterator()) {
            for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
                bytes += iterator.key().length + iterator.value().length;
                count++;
            }
        }
        return bytes > 0 ? count : 0;
    }

    @Override
    public void close() {
        db.close();
        write.close();
        options.close();
    }
}
