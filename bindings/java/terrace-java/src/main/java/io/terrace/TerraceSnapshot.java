package io.terrace;

import java.lang.ref.Cleaner;
import org.iq80.leveldb.Snapshot;

/**
 * A database as it was at one moment. Any thread may use it. It keeps old versions of changed keys
 * on disk until it is closed.
 */
public final class TerraceSnapshot implements Snapshot {
    private final TerraceDb db;
    private final long number;
    private final Cleaner.Cleanable cleanable;

    TerraceSnapshot(TerraceDb db, long number) {
        this.db = db;
        this.number = number;
        cleanable = Cleaning.register(this, () -> Native.closeSnapshot(number));
    }

    TerraceDb db() {
        return db;
    }

    long number() {
        return number;
    }

    @Override
    public void close() {
        cleanable.clean();
    }
}
