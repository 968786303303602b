package io.terrace;

import java.io.File;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.iq80.leveldb.CompressionType;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.DBFactory;
import org.iq80.leveldb.DBIterator;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.WriteBatch;

/**
 * One side of a hand-over, in a virtual machine of its own: "FACTORY DIR COMPRESSION BUFFER read"
 * prints a digest of all entries, "FACTORY DIR COMPRESSION BUFFER close|kill SEED" changes them.
 *
 * <p>It uses nothing that the old leveldb-api lacks which leveldbjni bundles.
 */
final class Peer {
    static final String TERRACE = "io.terrace.TerraceFactory";
    static final String IQ80 = "org.iq80.leveldb.impl.Iq80DBFactory";
    static final String LEVELDBJNI = "org.fusesource.leveldbjni.JniDBFactory";

    private static final int OPERATIONS = 3000;

    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        Field factory = Class.forName(arguments[0]).getField("factory");
        Options options = new Options()
                .createIfMissing(true)
                .writeBufferSize(Integer.parseInt(arguments[3]))
                .compressionType(CompressionType.valueOf(arguments[2]));
        DB db = ((DBFactory) factory.get(null)).open(new File(arguments[1]), options);
        if (arguments[4].equals("read")) {
            System.out.println("digest " + digest(db));
            db.close();
            return;
        }
        change(db, Long.parseLong(arguments[5]));
        if (arguments[4].equals("kill")) {
            Runtime.getRuntime().halt(0);
        }
        db.close();
    }

    private static String digest(DB db) throws Exception {
        long count = 0;
        long sum = 0;
        try (DBIterator iterator = db.iterator()) {
            for (iterator.seekToFirst(); iterator.hasNext(); count++) {
                Map.Entry<byte[], byte[]> entry = iterator.next();
                sum = sum(sum, entry.getKey(), entry.getValue());
            }
        }
        return count + " " + sum;
    }

    private static long sum(long sum, byte[] key, byte[] value) {
        return (sum * 31 + Arrays.hashCode(key)) * 31 + Arrays.hashCode(value);
    }

    static String digest(TreeMap<String, String> model) {
        long sum = 0;
        for (Map.Entry<String, String> entry : model.entrySet()) {
            sum = sum(sum, entry.getKey().getBytes(), entry.getValue().getBytes());
        }
        return model.size() + " " + sum;
    }

    /** What happens to a database, or to a model of it. */
    private interface Target {
        void put(String key, String value);

        void delete(String key);
    }

    private static void change(DB db, long seed) throws Exception {
        WriteBatch batch = db.createWriteBatch();
        change(new Target() {
            @Override
            public void put(String key, String value) {
                batch.put(key.getBytes(), value.getBytes());
                if (value.length() % 2 == 0) {
                    db.put(key.getBytes(), value.getBytes());
                }
            }

            @Override
            public void delete(String key) {
                batch.delete(key.getBytes());
                db.delete(key.getBytes());
            }
        }, seed);
        db.write(batch);
        batch.close();
    }

    static void change(TreeMap<String, String> model, long seed) {
        change(new Target() {
            @Override
            public void put(String key, String value) {
                model.put(key, value);
            }

            @Override
            public void delete(String key) {
                model.remove(key);
            }
        }, seed);
    }

    private static void change(Target target, long seed) {
        Random random = new Random(seed);
        for (int i = 0; i < OPERATIONS; i++) {
            String key = Integer.toString(random.nextInt(2000));
            if (random.nextInt(3) == 0) {
                target.delete(key);
            } else {
                target.put(key, key + "v".repeat(random.nextInt(200)));
            }
        }
    }
}
