package io.terrace;

import java.util.List;

/**
 * What a check of a database found.
 *
 * @param files files that were read
 * @param blocks blocks of tables whose checksums are right
 * @param entries entries in tables: versions and tombstones
 * @param bytes bytes of the files that were read
 * @param problems what is wrong, each with its file
 */
public record VerifyReport(
        long files, long blocks, long entries, long bytes, List<String> problems) {
    static VerifyReport parse(String text) {
        List<String> lines = text.lines().toList();
        String[] numbers = lines.get(0).split(" ");
        return new VerifyReport(
                Long.parseLong(numbers[0]),
                Long.parseLong(numbers[1]),
                Long.parseLong(numbers[2]),
                Long.parseLong(numbers[3]),
                lines.subList(1, lines.size()));
    }

    /**
     * Returns whether nothing is wrong.
     *
     * @return true if so
     */
    public boolean isClean() {
        return problems.isEmpty();
    }
}
