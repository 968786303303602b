package io.terrace.kafka;

import io.terrace.SharedCache;
import io.terrace.TerraceOptions;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The native memory of the stores of a process: one cache for all that name the same budget, and
 * write buffers that are a fraction of it.
 */
final class Memory {
    /** The setting: bytes for the caches and write buffers of all stores. */
    static final String BUDGET = "terrace.memory.bytes";
    /** The setting: bytes of uncommitted writes that one store keeps on the heap. */
    static final String BUFFER = "terrace.buffer.bytes";

    private static final long DEFAULT_BUDGET = 256L << 20;
    private static final long DEFAULT_BUFFER = 8L << 20;
    private static final int STORES = 256;
    private static final int MOST_WRITE_BUFFER = 4 << 20;
    private static final int LEAST_WRITE_BUFFER = 64 << 10;
    private static final Map<Long, SharedCache> CACHES = new ConcurrentHashMap<>();

    private Memory() {}

    static TerraceOptions options(Map<String, Object> configs) {
        long budget = number(configs, BUDGET, DEFAULT_BUDGET);
        TerraceOptions options = new TerraceOptions();
        options.cache(CACHES.computeIfAbsent(budget, bytes -> new SharedCache(bytes / 2)));
        options.writeBufferSize((int) Math.max(
                LEAST_WRITE_BUFFER, Math.min(MOST_WRITE_BUFFER, budget / STORES)));
        return options;
    }

    static long buffer(Map<String, Object> configs) {
        return number(configs, BUFFER, DEFAULT_BUFFER);
    }

    private static long number(Map<String, Object> configs, String name, long absent) {
        Object value = configs.get(name);
        if (value == null) {
            return absent;
        }
        try {
            long number = Long.parseLong(value.toString().trim());
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Said below.
        }
        throw new IllegalArgumentException(name + " is " + value + ", must be a number of bytes");
    }
}
