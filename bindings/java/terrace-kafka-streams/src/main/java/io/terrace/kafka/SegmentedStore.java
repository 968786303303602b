package io.terrace.kafka;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.LongFunction;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;

/**
 * A store whose entries expire: segments of time, one behind the other in one database. A segment
 * that has expired goes as one deleted range.
 *
 * <p>An entry expires when stream time is the retention period past its time. It stays stored until
 * the next commit, so no read may begin before {@link #liveFrom}.
 */
abstract class SegmentedStore extends TerraceStateStore {
    private static final long NONE = -1;
    /** Up to this many segments are read one by one. Among more, seeks find those with entries. */
    private static final int FEW = 8;

    private final long retention;
    private final long interval;
    /** The latest time that was seen. */
    private volatile long streamTime = NONE;
    /** The segments that may have entries; none if the first is greater. */
    private volatile long firstSegment;
    private volatile long lastSegment = NONE;

    SegmentedStore(String name, long retention, long interval) {
        super(name);
        this.retention = retention;
        this.interval = Math.max(1, interval);
    }

    @Override
    void opened(StoreFile opened) {
        streamTime = NONE;
        firstSegment = 0;
        lastSegment = NONE;
        try (StoreIterator first = opened.range(null, null, true);
                StoreIterator last = opened.range(null, null, false)) {
            if (first.hasNext()) {
                firstSegment = Keys.segmentOf(first.next().key.get());
                lastSegment = Keys.segmentOf(last.next().key.get());
            }
        }
    }

    /** What the keys in the file depend on. */
    final String segments() {
        return "segments of " + interval + " ms";
    }

    long segment(long time) {
        return Math.floorDiv(time, interval);
    }

    /** The first time that has not expired. */
    final long liveFrom() {
        return streamTime - retention + 1;
    }

    /** Lets stream time go on. Returns whether an entry of this time is still wanted. */
    final boolean observe(long time) {
        if (time > streamTime) {
            streamTime = time;
            long live = segment(liveFrom());
            if (firstSegment < live && firstSegment <= lastSegment) {
                file().expire(Keys.segment(firstSegment), Keys.segment(live));
                firstSegment = live;
            }
        }
        return time >= liveFrom();
    }

    /** Takes note of an entry of this time. */
    final void extend(long time) {
        long segment = segment(time);
        if (lastSegment < firstSegment) {
            firstSegment = segment;
            lastSegment = segment;
        } else {
            firstSegment = Math.min(firstSegment, segment);
            lastSegment = Math.max(lastSegment, segment);
        }
    }

    /** Whether an entry is wanted. */
    interface Filter {
        boolean accepts(Keys.Parts parts);
    }

    @Override
    public void close() {
        super.close();
        // A closed store has no segments, so that reads find nothing, as in Kafka's own ones.
        firstSegment = 0;
        lastSegment = NONE;
    }

    /**
     * The entries of a range of keys, null for no bound, in the segments from one time to another,
     * in order of segments and then of keys.
     */
    final SegmentIterator entries(
            Bytes from, Bytes to, long firstTime, long lastTime, boolean forward, Filter filter) {
        long first = Math.max(firstSegment, segment(Math.max(0, firstTime)));
        long last = Math.min(lastSegment, segment(Math.max(NONE, lastTime)));
        return iterate(first, last, forward, filter, segment -> KeyValue.pair(
                from == null ? Keys.segment(segment) : Keys.lower(segment, from, 0),
                to == null ? Keys.segment(segment + 1) : Keys.after(segment, to)));
    }

    /** The entries of one key whose first number is in a range. */
    final SegmentIterator entriesOf(
            Bytes key, long firstTime, long lastTime, boolean forward, Filter filter) {
        long first = Math.max(firstSegment, segment(Math.max(0, firstTime)));
        long last = Math.min(lastSegment, segment(Math.max(NONE, lastTime)));
        return iterate(first, last, forward, filter, segment -> KeyValue.pair(
                Keys.lower(segment, key, Math.max(0, firstTime)),
                lastTime == Long.MAX_VALUE
                        ? Keys.after(segment, key)
                        : Keys.lower(segment, key, lastTime + 1)));
    }

    private SegmentIterator iterate(
            long first,
            long last,
            boolean forward,
            Filter filter,
            LongFunction<KeyValue<Bytes, Bytes>> range) {
        return new SegmentIterator(
                new Segments(first, last, forward),
                segment -> {
                    KeyValue<Bytes, Bytes> bounds = range.apply(segment);
                    return iterator(bounds.key, bounds.value, forward);
                },
                filter);
    }

    /**
     * The numbers of the segments from one to another, found one at a time: where one entry has a
     * far-off time, a list of them would have millions.
     */
    private final class Segments implements Iterator<Long> {
        private final boolean forward;
        private long first;
        private long last;
        private boolean found;

        Segments(long first, long last, boolean forward) {
            this.first = first;
            this.last = last;
            this.forward = forward;
        }

        @Override
        public boolean hasNext() {
            if (!found && last - first >= FEW) {
                seek();
            }
            found = true;
            return first <= last;
        }

        private void seek() {
            try (StoreIterator entries =
                    iterator(Keys.segment(first), Keys.segment(last + 1), forward)) {
                if (!entries.hasNext()) {
                    first = last + 1;
                } else if (forward) {
                    first = Keys.segmentOf(entries.next().key.get());
                } else {
                    last = Keys.segmentOf(entries.next().key.get());
                }
            }
        }

        @Override
        public Long next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            found = false;
            return forward ? first++ : last--;
        }
    }
}
