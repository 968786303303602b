package io.terrace;

import java.io.File;
import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.iq80.leveldb.DBComparator;
import org.iq80.leveldb.DBFactory;
import org.iq80.leveldb.Options;

/**
 * Opens databases for programs on {@code org.iq80.leveldb}: what {@code JniDBFactory} and {@code
 * Iq80DBFactory} are there.
 *
 * <pre>{@code
 * import static io.terrace.TerraceFactory.*;
 *
 * DB db = factory.open(new File("example"), new Options().createIfMissing(true));
 * }</pre>
 */
public final class TerraceFactory implements DBFactory {
    /** The factory. */
    public static final TerraceFactory factory = new TerraceFactory();

    private TerraceFactory() {}

    /**
     * Returns the bytes of text in UTF-8.
     *
     * @param text the text; null gives null
     * @return its bytes
     */
    public static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Returns the text of bytes in UTF-8.
     *
     * @param bytes the bytes; null gives null
     * @return their text
     */
    public static String asString(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /**
     * Opens a database.
     *
     * <p>A comparator must not throw, and must order the same keys the same way for as long as the
     * database exists. It is called from threads of the engine, too. If it throws, every later call
     * of the database fails with a {@link TerraceException} whose cause is what it threw first, and
     * nothing that the failure led to becomes part of the database.
     *
     * @throws IOException if it cannot be opened; the cause is a {@link TerraceException}
     */
    @Override
    public TerraceDb open(File path, Options options) throws IOException {
        Path directory = path.toPath();
        if (options.createIfMissing() && directory.toAbsolutePath().getParent() != null) {
            Files.createDirectories(directory.toAbsolutePath().getParent());
        }
        try {
            long number = Native.open(bytes(path.getPath()), TerraceOptions.settings(options),
                    options.comparator(), name(options.comparator()), options.logger());
            // A cache or a budget that only the options hold is open until here.
            Reference.reachabilityFence(options);
            return new TerraceDb(number, directory);
        } catch (TerraceException e) {
            throw failure(e);
        }
    }

    private static byte[] name(DBComparator comparator) {
        return comparator == null ? null : bytes(comparator.name());
    }

    private static IOException failure(TerraceException e) {
        return new IOException(e.getMessage(), e);
    }

    /** Removes a database. A directory without one is left alone. */
    @Override
    public void destroy(File path, Options options) throws IOException {
        try {
            Native.destroy(bytes(path.getPath()));
        } catch (TerraceException e) {
            throw failure(e);
        }
    }

    /** Saves what can be saved of a damaged database. */
    @Override
    public void repair(File path, Options options) throws IOException {
        try {
            Native.repair(bytes(path.getPath()), TerraceOptions.settings(options),
                    options.comparator(), name(options.comparator()), options.logger());
            Reference.reachabilityFence(options);
        } catch (TerraceException e) {
            throw failure(e);
        }
    }

    @Override
    public String toString() {
        return "terrace";
    }
}
