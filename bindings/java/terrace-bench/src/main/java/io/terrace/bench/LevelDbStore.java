package io.terrace.bench;

import java.io.File;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.DBFactory;
import org.iq80.leveldb.DBIterator;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.WriteBatch;

/** An implementation of leveldb-api, with its default options. */
final class LevelDbStore implements Store {
    private final DB db;

    LevelDbStore(String factory, File directory) throws Exception {
        DBFactory opener = (DBFactory) Class.forName(factory).getField("factory").get(null);
        db = opener.open(directory, new Options().createIfMissing(true));
    }

    @Override
    public void put(byte[] key, byte[] value) {
        db.put(key, value);
    }

    @Override
    public void putAll(byte[][] keys, byte[] value) throws Exception {
        try (WriteBatch batch = db.createWriteBatch()) {
            for (byte[] key : keys) {
                batch.put(key, value);
            }
            db.write(batch);
        }
    }

    @Override
    public byte[] get(byte[] key) {
        return db.get(key);
    }

    @Override
    public long iterate() throws Exception {
        long count = 0;
        try (DBIterator iterator = db.iterator()) {
            for (iterator.seekToFirst(); iterator.hasNext(); count++) {
                iterator.next();
            }
        }
        return count;
    }

    @Override
    public void close() throws Exception {
        db.close();
    }
}
