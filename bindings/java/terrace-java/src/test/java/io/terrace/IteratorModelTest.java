package io.terrace;

import static io.terrace.TerraceFactory.bytes;
import static io.terrace.TerraceFactory.factory;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import org.iq80.leveldb.Options;
import org.junit.jupiter.api.Test;

/** Iterators beside a list of the entries, and a gap in it. */
class IteratorModelTest {
    @Test
    void an_iterator_moves_as_a_list_iterator_does() throws Exception {
        Random random = TestDirectory.random("IteratorModelTest");
        for (int round = 0; round < TestDirectory.scaled(500); round++) {
            try (TestDirectory directory = new TestDirectory();
                    TerraceDb db = factory.open(directory.file("db"), new Options())) {
                TreeMap<String, String> model = fill(db, random);
                for (int i = 0; i < 20; i++) {
                    compare(db, model, random);
                }
            }
        }
    }

    private static TreeMap<String, String> fill(TerraceDb db, Random random) {
        TreeMap<String, String> model = new TreeMap<>();
        int entries = random.nextInt(4) == 0 ? random.nextInt(3) : random.nextInt(3000);
        int longest = random.nextInt(8) == 0 ? 300_000 : 60;
        for (int i = 0; i < entries; i++) {
            String key = Integer.toString(random.nextInt(5000));
            String value = key + "v".repeat(random.nextInt(longest) / (longest > 60 ? 10 : 1));
            model.put(key, value);
            db.put(bytes(key), bytes(value));
            if (longest > 60 && i > 50) {
                break;
            }
        }
        return model;
    }

    private static void compare(TerraceDb db, TreeMap<String, String> model, Random random) {
        String from = random.nextInt(3) == 0 ? Integer.toString(random.nextInt(5000)) : null;
        String to = random.nextInt(3) == 0 ? Integer.toString(random.nextInt(5000)) : null;
        List<Map.Entry<String, String>> list = new ArrayList<>();
        model.forEach((key, value) -> {
            if ((from == null || key.compareTo(from) >= 0)
                    && (to == null || key.compareTo(to) < 0)) {
                list.add(Map.entry(key, value));
            }
        });
        try (TerraceIterator iterator = db.range(bytes(from), bytes(to))) {
            int gap = 0;
            for (int step = 0; step < 60; step++) {
                gap = move(iterator, list, gap, random);
            }
        }
    }

    /** Does one random thing with both; returns the model's gap. */
    private static int move(
            TerraceIterator iterator,
            List<Map.Entry<String, String>> list,
            int gap,
            Random random) {
        switch (random.nextInt(9)) {
            case 0 -> {
                String key = Integer.toString(random.nextInt(5000));
                iterator.seek(bytes(key));
                int at = 0;
                while (at < list.size() && list.get(at).getKey().compareTo(key) < 0) {
                    at++;
                }
                return at;
            }
            case 1 -> {
                iterator.seekToFirst();
                return 0;
            }
            case 2 -> {
                iterator.seekToLast();
                return Math.max(0, list.size() - 1);
            }
            case 3 -> {
                iterator.seekToEnd();
                return list.size();
            }
            case 4 -> {
                int many = random.nextInt(200);
                List<Map.Entry<byte[], byte[]>> batch = iterator.nextBatch(many);
                assertEquals(Math.min(many, list.size() - gap), batch.size());
                for (int i = 0; i < batch.size(); i++) {
                    assertSame(list.get(gap + i), batch.get(i));
                }
                return gap + batch.size();
            }
            default -> {
                return scan(iterator, list, gap, random);
            }
        }
    }

    private static int scan(
            TerraceIterator iterator,
            List<Map.Entry<String, String>> list,
            int start,
            Random random) {
        int gap = start;
        boolean forward = random.nextBoolean();
        for (int steps = random.nextInt(80); steps > 0; steps--) {
            assertEquals(gap < list.size(), iterator.hasNext());
            assertEquals(gap > 0, iterator.hasPrev());
            if (forward && gap < list.size()) {
                assertSame(list.get(gap), iterator.peekNext());
                assertSame(list.get(gap++), iterator.next());
            } else if (!forward && gap > 0) {
                assertSame(list.get(gap - 1), iterator.peekPrev());
                assertSame(list.get(--gap), iterator.prev());
            } else {
                assertThrows(NoSuchElementException.class,
                        forward ? iterator::next : iterator::prev);
            }
        }
        return gap;
    }

    private static void assertSame(
            Map.Entry<String, String> expected, Map.Entry<byte[], byte[]> actual) {
        assertArrayEquals(bytes(expected.getKey()), actual.getKey());
        assertArrayEquals(bytes(expected.getValue()), actual.getValue());
    }
}
