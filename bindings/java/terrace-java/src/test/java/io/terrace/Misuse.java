package io.terrace;

import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.ConcurrentModificationException;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.iq80.leveldb.CompressionType;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.Range;
import org.iq80.leveldb.ReadOptions;
import org.iq80.leveldb.Snapshot;
import org.iq80.leveldb.WriteBatch;
import org.iq80.leveldb.WriteOptions;

/**
 * A program: "SECONDS SEED DIRECTORY" has threads call any public method of any object, closed ones
 * too, with right and wrong arguments. Nothing but documented exceptions may come of it. If the
 * directory has a file system of its own that is small, it is also full most of the time.
 */
final class Misuse {
    private static final int THREADS = 4;
    private static final int MOST_OBJECTS = 40;
    private static final List<String> NAMES = List.of("a", "b", "backward", "copy-0", "copy-1");
    /** What documented errors are. */
    private static final List<Class<? extends Throwable>> EXPECTED = List.of(
            TerraceException.class, IOException.class, NullPointerException.class,
            IllegalArgumentException.class, NoSuchElementException.class,
            UnsupportedOperationException.class, IndexOutOfBoundsException.class,
            ConcurrentModificationException.class,
            // Everything of a database at once, for several threads.
            OutOfMemoryError.class);
    /** Methods that would stop all others. */
    private static final List<String> LEFT_OUT = List.of("suspendCompactions", "forEachRemaining");

    private final Path directory;
    private final List<Object> objects = new ArrayList<>();
    private final Map<String, LongAdder> calls = new ConcurrentHashMap<>();
    private final Map<String, LongAdder> raised = new ConcurrentHashMap<>();
    private final AtomicReference<Throwable> wrong = new AtomicReference<>();

    private Misuse(Path directory) {
        this.directory = directory;
    }

    public static void main(String[] arguments) throws Exception {
        long seed = Long.parseLong(arguments[1]);
        new Misuse(Path.of(arguments[2])).run(Double.parseDouble(arguments[0]), seed);
    }

    private void run(double seconds, long seed) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Random random = new Random(seed + i);
            Thread thread = new Thread(() -> work(random, end));
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join((long) (seconds * 1000) + 120_000);
            if (thread.isAlive()) {
                throw new IllegalStateException("a thread hangs in "
                        + Arrays.toString(thread.getStackTrace()));
            }
        }
        if (wrong.get() != null) {
            throw new IllegalStateException("not a documented error", wrong.get());
        }
        check();
        System.out.println(calls.values().stream().mapToLong(LongAdder::sum).sum() + " calls of "
                + calls.size() + " methods; raised: " + new TreeMap<>(raised));
        System.out.println("misuse ends well");
    }

    /** No database is damaged. */
    private void check() throws IOException {
        for (Object object : objects) {
            if (object instanceof TerraceDb db) {
                try {
                    db.close();
                } catch (IOException e) {
                    // The disk is full.
                }
            }
        }
        for (String name : NAMES) {
            TerraceOptions options = options(name);
            options.createIfMissing(false);
            options.readOnly(true);
            try (TerraceDb db = TerraceDb.open(directory.resolve(name), options)) {
                VerifyReport report = db.verify();
                if (!report.isClean()) {
                    throw new IllegalStateException(name + ": " + report);
                }
            } catch (IOException e) {
                if (e.getCause() instanceof CorruptionException) {
                    throw new IllegalStateException(name, e);
                }
            }
        }
    }

    private void work(Random random, long end) {
        while (System.nanoTime() < end && wrong.get() == null) {
            try {
                step(random);
            } catch (InvocationTargetException e) {
                judge(e.getCause());
            } catch (Throwable e) {
                judge(e);
            }
        }
    }

    private void judge(Throwable error) {
        boolean panicked = String.valueOf(error.getMessage()).contains("panicked");
        if (panicked || EXPECTED.stream().noneMatch(one -> one.isInstance(error))) {
            wrong.set(error);
        }
        raised.computeIfAbsent(error.getClass().getSimpleName(), name -> new LongAdder())
                .increment();
    }

    private void step(Random random) throws Exception {
        Object object = pick(random);
        String name = NAMES.get(random.nextInt(NAMES.size()));
        if (object == null || random.nextInt(50) == 0) {
            TerraceOptions options = options(name);
            options.readOnly(random.nextInt(10) == 0).reuseLogs(random.nextBoolean());
            options.writeBufferSize(random.nextBoolean() ? 64 << 10 : random.nextInt())
                    .errorIfExists(random.nextInt(10) == 0)
                    .compressionType(CompressionType.values()[random.nextInt(2)]);
            keep(random, TerraceDb.open(directory.resolve(name), options));
        } else if (random.nextInt(500) == 0) {
            factory.destroy(directory.resolve(name).toFile(), new Options());
        } else if (random.nextInt(1000) == 0) {
            factory.repair(directory.resolve(name).toFile(), options(name));
        } else {
            call(random, object);
        }
    }

    private static TerraceOptions options(String name) {
        TerraceOptions options = new TerraceOptions();
        options.createIfMissing(true);
        if (name.equals("backward")) {
            options.comparator(new Backward());
        }
        return options;
    }

    private void call(Random random, Object object) throws Exception {
        // An iterator of a transaction is of a class of its own.
        Class<?> type = object.getClass().getName().contains("$")
                ? Iterator.class
                : object.getClass();
        Method[] methods = type.getMethods();
        Method method = methods[random.nextInt(methods.length)];
        boolean rare = object instanceof TerraceDb && method.getName().equals("close");
        if (method.getDeclaringClass() == Object.class
                || LEFT_OUT.contains(method.getName())
                || (rare && random.nextInt(5) > 0)) {
            return;
        }
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            arguments[i] = argument(random, types[i]);
        }
        calls.computeIfAbsent(type.getSimpleName() + "." + method.getName(),
                name -> new LongAdder()).increment();
        keep(random, method.invoke(object, arguments));
    }

    private Object pick(Random random) {
        synchronized (objects) {
            return objects.isEmpty() ? null : objects.get(random.nextInt(objects.size()));
        }
    }

    private void keep(Random random, Object object) {
        if (object instanceof AutoCloseable || object instanceof Iterator) {
            synchronized (objects) {
                objects.add(object);
                if (objects.size() > MOST_OBJECTS) {
                    objects.remove(random.nextInt(MOST_OBJECTS));
                }
            }
        }
    }

    private <T> T pick(Random random, Class<T> type) {
        Object object = pick(random);
        return type.isInstance(object) ? type.cast(object) : null;
    }

    private Object argument(Random random, Class<?> type) {
        if (type == int.class) {
            return new int[] {-1, 0, 1, 10, 1000, Integer.MAX_VALUE}[random.nextInt(6)];
        } else if (type == boolean.class) {
            return random.nextBoolean();
        } else if (random.nextInt(20) == 0) {
            return null;
        } else if (type == byte[].class) {
            return key(random);
        } else if (type == ByteBuffer.class) {
            return buffer(random);
        } else if (type == String.class) {
            return List.of("leveldb.stats", "x", "\0", "\ud800", "").get(random.nextInt(5));
        } else if (type == Path.class) {
            return directory.resolve("copy-" + random.nextInt(2));
        } else if (type == List.class) {
            return Arrays.asList(key(random), key(random), random.nextInt(9) > 0 ? key(random)
                    : null);
        } else if (type == Range[].class) {
            return new Range[] {new Range(key(random), key(random)),
                random.nextBoolean() ? new Range(key(random), key(random)) : null};
        } else if (type == Snapshot.class) {
            return pick(random, Snapshot.class);
        } else if (type == ReadOptions.class) {
            ReadOptions options = new ReadOptions().fillCache(random.nextBoolean());
            return options.snapshot(pick(random, Snapshot.class));
        } else if (type == WriteOptions.class) {
            return new WriteOptions().sync(random.nextInt(9) == 0).snapshot(random.nextBoolean());
        } else if (type == WriteBatch.class) {
            return pick(random, WriteBatch.class);
        } else if (type == Object.class) {
            return new SimpleEntry<>("key", "value");
        }
        return null;
    }

    private static byte[] key(Random random) {
        return switch (random.nextInt(12)) {
            case 0 -> new byte[0];
            case 1 -> new byte[] {(byte) 0xff, (byte) 0xc0, 0, (byte) 0x80};
            case 2 -> new byte[random.nextInt(200_000)];
            case 3 -> random.nextInt(20) == 0 ? new byte[9 << 20] : bytes("x");
            default -> bytes("key" + random.nextInt(300));
        };
    }

    private static ByteBuffer buffer(Random random) {
        byte[] key = key(random);
        ByteBuffer direct = ByteBuffer.allocateDirect(key.length + random.nextInt(300));
        direct.put(key).flip();
        return switch (random.nextInt(5)) {
            case 0 -> ByteBuffer.wrap(key);
            case 1 -> direct.asReadOnlyBuffer();
            case 2 -> direct.position(direct.limit() / 2).slice();
            case 3 -> direct.limit(direct.capacity());
            default -> direct;
        };
    }
}
