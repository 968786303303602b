package io.terrace.kafka;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;

/**
 * A store whose entries expire: segments of time, one behind the other in one database. A segment
 * that has expired goes as one deleted range.
 *
 * <p>An entry expires when stream time is the retention period past its time.
 */
abstract class SegmentedStore extends TerraceStateStore {
    private static final long NONE = -1;

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
                file().deleteRange(Keys.segment(firstSegment), Keys.segment(live));
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
        List<KeyValue<Bytes, Bytes>> ranges = new ArrayList<>();
        for (long segment = first; segment <= last; segment++) {
            Bytes lower = from == null ? Keys.segment(segment) : Keys.lower(segment, from, 0);
            Bytes upper = to == null ? Keys.segment(segment + 1) : Keys.after(segment, to);
            ranges.add(forward ? ranges.size() : 0, KeyValue.pair(lower, upper));
        }
        return new SegmentIterator(
                ranges, range -> iterator(range.key, range.value, forward), filter);
    }

    /** The entries of one key whose first number is in a range. */
    final SegmentIterator entriesOf(
            Bytes key, long firstTime, long lastTime, boolean forward, Filter filter) {
        long first = Math.max(firstSegment, segment(Math.max(0, firstTime)));
        long last = Math.min(lastSegment, segment(Math.max(NONE, lastTime)));
        List<KeyValue<Bytes, Bytes>> ranges = new ArrayList<>();
        for (long segment = first; segment <= last; segment++) {
            Bytes lower = Keys.lower(segment, key, Math.max(0, firstTime));
            Bytes upper = lastTime == Long.MAX_VALUE
                    ? Keys.after(segment, key)
                    : Keys.lower(segment, key, lastTime + 1);
            ranges.add(forward ? ranges.size() : 0, KeyValue.pair(lower, upper));
        }
        return new SegmentIterator(
                ranges, range -> iterator(range.key, range.value, forward), filter);
    }
}
