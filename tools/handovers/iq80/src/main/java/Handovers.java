import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.DBIterator;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.WriteOptions;
import org.iq80.leveldb.impl.Iq80DBFactory;

/**
 * One side of a hand-over, on iq80's LevelDB: "read DIR" prints the digest of all entries; "write DIR SEED close|kill" changes
 * the database, prints the digest of what it then holds, and ends that way. tools/handovers/run compares.
 */
public final class Handovers {
  private static long state;

  private static long random() {
    state ^= state << 13;
    state ^= state >>> 7;
    state ^= state << 17;
    return state;
  }

  private static String digest(Map<String, byte[]> entries) {
    long hash = 0xcbf29ce484222325L;
    for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
      for (byte[] bytes : new byte[][] {entry.getKey().getBytes(StandardCharsets.US_ASCII), entry.getValue()}) {
        for (byte b : bytes) hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
      }
    }
    return String.format("%d %016x", entries.size(), hash);
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Options options = new Options().createIfMissing(true).writeBufferSize(1 << 20);
    DB db = Iq80DBFactory.factory.open(new File(arguments[1]), options);
    TreeMap<String, byte[]> entries = new TreeMap<>();
    try (DBIterator iterator = db.iterator()) {
      for (iterator.seekToFirst(); iterator.hasNext(); ) {
        Map.Entry<byte[], byte[]> entry = iterator.next();
        entries.put(new String(entry.getKey(), StandardCharsets.US_ASCII), entry.getValue());
      }
    }
    boolean writes = arguments[0].equals("write");
    if (writes) {
      long seed = Long.parseLong(arguments[2]);
      state = seed * 7919 + 13;
      long largest = new long[] {60, 300, 3000, 20000, 90000}[(int) (seed % 5)];
      long operations = 200 + Long.remainderUnsigned(random(), 400);
      for (long number = 0; number < operations; number++) {
        String key = String.format("%06d", Long.remainderUnsigned(random(), 500));
        byte[] bytes = key.getBytes(StandardCharsets.US_ASCII);
        if (Long.remainderUnsigned(random(), 6) == 0) {
          db.delete(bytes);
          entries.remove(key);
        }
        byte[] value = new byte[(int) Long.remainderUnsigned(random(), largest) + 1];
        Arrays.fill(value, (byte) random());
        boolean sync = number + 1 == operations || Long.remainderUnsigned(random(), 50) == 0;
        db.put(bytes, value, new WriteOptions().sync(sync));
        entries.put(key, value);
      }
    }
    System.out.println(digest(entries));
    System.out.flush();
    if (writes && arguments[3].equals("kill")) {
      new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid())).start();
      Thread.sleep(60_000);
    }
    db.close();
  }
}
