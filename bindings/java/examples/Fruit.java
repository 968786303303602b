import static io.terrace.TerraceFactory.asString;
import static io.terrace.TerraceFactory.bytes;

import io.terrace.ConflictException;
import io.terrace.TerraceDb;
import io.terrace.TerraceIterator;
import io.terrace.TerraceOptions;
import io.terrace.TerraceTransaction;
import io.terrace.TerraceWriteBatch;
import java.nio.file.Path;
import org.iq80.leveldb.WriteOptions;

/** A tour: {@code java -cp terrace-java.jar:leveldb-api.jar Fruit.java DIRECTORY}. */
public class Fruit {
    public static void main(String[] arguments) throws Exception {
        Path place = Path.of(arguments[0]);
        try (TerraceDb db = TerraceDb.open(place.resolve("fruit.db"), new TerraceOptions())) {
            db.put(bytes("apple"), bytes("red"));

            // Both or neither, and on the disk.
            try (TerraceWriteBatch batch = db.createWriteBatch()) {
                batch.put(bytes("banana"), bytes("yellow")).put(bytes("cherry"), bytes("red"));
                db.write(batch, new WriteOptions().sync(true));
            }

            // Reads and writes that belong together.
            try (TerraceTransaction transaction = db.transaction()) {
                if ("red".equals(asString(transaction.getForUpdate(bytes("apple"))))) {
                    transaction.put(bytes("apple"), bytes("green"));
                }
                transaction.commit();
            } catch (ConflictException e) {
                System.out.println("somebody else painted the apple");
            }

            try (TerraceIterator fruit = db.range(bytes("a"), bytes("c"))) {
                fruit.forEachRemaining(entry -> System.out.println(
                        asString(entry.getKey()) + " = " + asString(entry.getValue())));
            }

            db.checkpoint(place.resolve("copy.db"));
            System.out.println("clean: " + db.verify().isClean());
        }
    }
}
