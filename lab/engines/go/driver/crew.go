package driver

import (
	"fmt"
	"sync"
	"time"
)

// crew is the threads of one benchmark: started together, measured together, stopped when the first
// of them fails.
type crew struct {
	benchmark string
	// So many seconds after the start the benchmark has to end (0: never).
	seconds float64
	// Every so many seconds a line is printed (0: no lines).
	interval float64

	deadline deadline
	once     sync.Once
	problem  error
}

// body is what a thread does: it prepares itself, calls start, works.
type body func(thread uint64, m *meter, start func()) error

// run starts body in so many threads, and beside, if it is not nil, in one more, which goes on
// until the others have ended. It fills what is measured into r, or returns the first error.
func (c *crew) run(threads uint64, body, beside body, r *result) error {
	c.deadline.at.Store(never)
	meters := make([]*meter, threads)
	intervals := make([]*intervalCounts, threads)
	started := make(chan struct{})
	var ready, working, besides sync.WaitGroup
	for thread := range threads {
		meters[thread] = &meter{deadline: &c.deadline}
		if c.interval > 0 {
			intervals[thread] = &intervalCounts{}
			meters[thread].interval = intervals[thread]
		}
		c.launch(thread, body, meters[thread], &ready, &working, started)
	}
	var endOfBeside deadline
	endOfBeside.at.Store(never)
	writer := &meter{deadline: &endOfBeside}
	if beside != nil {
		c.launch(threads, beside, writer, &ready, &besides, started)
	}
	ready.Wait()

	resetPeakMemory()
	requests := deviceRequestsNow()
	read, cpu, written, start := bytesRead(), cpuSeconds(), bytesWrittenNow(), nowNanos()
	if c.seconds > 0 {
		// A thread that has failed already has stopped the others.
		c.deadline.at.CompareAndSwap(never, start+int64(c.seconds*1e9))
	}
	close(started)
	finished := make(chan struct{})
	var reporter sync.WaitGroup
	if c.interval > 0 {
		reporter.Go(func() { c.reportIntervals(start, intervals, finished) })
	}
	working.Wait()
	endOfBeside.at.Store(0)
	besides.Wait()
	close(finished)
	reporter.Wait()
	if c.problem != nil {
		return c.problem
	}

	r.threads = threads
	end := start
	for _, m := range meters {
		r.operations += m.operations
		r.bytes += m.bytes
		if r.found != nil {
			*r.found += m.found
		}
		r.latencies.merge(&m.latencies)
		r.truncated = r.truncated || m.truncated
		end = max(end, m.last)
	}
	r.seconds = float64(end-start) / 1e9
	if beside != nil {
		rate := r.perSecond(float64(writer.operations))
		r.writerOpsPerSec = &rate
	}
	r.cpuSeconds = cpuSeconds() - cpu
	r.bytesWritten = bytesWrittenNow().since(written)
	r.bytesRead = bytesRead() - read
	r.device = deviceRequestsNow().since(requests)
	r.peakMemoryBytes = peakMemoryBytes()
	return nil
}

func (c *crew) launch(thread uint64, body body, m *meter, ready, working *sync.WaitGroup,
	started <-chan struct{}) {
	ready.Add(1)
	working.Go(func() {
		announce := sync.OnceFunc(ready.Done)
		// Also if the body fails before it starts, or panics.
		defer announce()
		defer func() {
			if problem := recover(); problem != nil {
				c.fail(fmt.Errorf("a thread of the benchmark panicked: %v", problem))
			}
		}()
		err := body(thread, m, func() {
			announce()
			<-started
			m.begin()
		})
		if err != nil {
			c.fail(err)
		}
	})
}

// fail keeps the first error, and stops all threads.
func (c *crew) fail(err error) {
	c.once.Do(func() {
		c.problem = err
		c.deadline.at.Store(0)
	})
}

// reportIntervals prints every interval that has gone by, also one in which nothing was done.
func (c *crew) reportIntervals(start int64, intervals []*intervalCounts,
	finished <-chan struct{}) {
	for n := 1; ; n++ {
		second := float64(n) * c.interval
		due := start + int64(second*1e9)
		select {
		case <-finished:
			if nowNanos() < due {
				return
			}
		case <-time.After(time.Duration(due - nowNanos())):
		}
		operations, latencies := uint64(0), histogram{}
		for _, interval := range intervals {
			interval.mutex.Lock()
			operations += interval.operations
			latencies.merge(&interval.latencies)
			interval.operations, interval.latencies = 0, histogram{}
			interval.mutex.Unlock()
		}
		// If the reader is gone, the benchmark's own line says so.
		_ = printLine(seriesLine(c.benchmark, second, operations, &latencies))
	}
}
