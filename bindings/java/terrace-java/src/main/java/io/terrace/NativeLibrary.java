package io.terrace;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Finds and loads the native library.
 *
 * <p>The system property {@code terrace.library} names a file to load. Otherwise the library in
 * the jar is copied to a temporary file that only this user can read, loaded, and removed at once:
 * nothing is left in the file system.
 */
final class NativeLibrary {
    private NativeLibrary() {}

    /**
     * Loads the library.
     *
     * @throws UnsatisfiedLinkError if there is none for this system, or it cannot be loaded
     */
    static void load() {
        String file = System.getProperty("terrace.library");
        if (file != null) {
            System.load(Path.of(file).toAbsolutePath().toString());
            return;
        }
        String resource = "/io/terrace/native/" + platform() + "/"
                + System.mapLibraryName("terrace_java");
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("this jar of Terrace has no library for "
                        + platform() + "; -Dterrace.library=FILE names one");
            }
            loadCopy(library);
        } catch (IOException e) {
            throw (Error) new UnsatisfiedLinkError("the library of Terrace cannot be copied to "
                    + System.getProperty("java.io.tmpdir")).initCause(e);
        }
    }

    private static void loadCopy(InputStream library) throws IOException {
        Path copy = Files.createTempFile("terrace", ".library");
        try {
            Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
            System.load(copy.toAbsolutePath().toString());
        } finally {
            try {
                Files.deleteIfExists(copy);
            } catch (IOException e) {
                // Where a loaded file cannot be removed.
                copy.toFile().deleteOnExit();
            }
        }
    }

    /** The system and the processor, as the jar's directories are named. */
    static String platform() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String system = os.startsWith("mac") ? "macos" : os.split(" ")[0];
        String processor = switch (arch) {
            case "amd64", "x86_64" -> "x86_64";
            case "arm64" -> "aarch64";
            default -> arch;
        };
        return system + "-" + processor;
    }
}
