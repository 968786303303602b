package io.terrace.kafka;

import io.terrace.MemoryBudget;
import io.terrace.TerraceOptions;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The native memory of the stores of a process: one budget for all that name the same number. */
final class Memory {
    /** The setting: bytes of native memory of all stores together. */
    static final String BUDGET = "terrace.memory.bytes";
    /** The setting: bytes of uncommitted writes that one store keeps on the heap. */
    static final String BUFFER = "terrace.buffer.bytes";

    private static final long DEFAULT_BUDGET = 256L << 20;
    private static final long DEFAULT_BUFFER = 8L << 20;
    private static final Map<Long, MemoryBudget> BUDGETS = new ConcurrentHashMap<>();

    private Memory() {}

    static TerraceOptions options(Map<String, Object> configs) {
        long budget = number(configs, BUDGET, DEFAULT_BUDGET);
        return new TerraceOptions()
                .memoryBudget(BUDGETS.computeIfAbsent(budget, MemoryBudget::new));
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
