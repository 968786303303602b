package driver

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

var processStart = time.Now()

// nowNanos reads the monotonic clock, and no other.
func nowNanos() int64 {
	return int64(time.Since(processStart))
}

// deadline is when a benchmark has to end, as a time of nowNanos. 0 stops all threads.
type deadline struct {
	at atomic.Int64
}

const never = math.MaxInt64

// intervalCounts are what one thread did since the last line of a series: taken by the goroutine
// that prints it.
type intervalCounts struct {
	mutex      sync.Mutex
	operations uint64
	latencies  histogram
}

// meter counts the work of one thread of a benchmark. It belongs to that thread until it has ended.
type meter struct {
	deadline   *deadline
	interval   *intervalCounts
	last       int64
	operations uint64
	bytes      uint64
	found      uint64
	truncated  bool
	latencies  histogram
	// Keeps meters of several threads on cache lines of their own.
	_ [128]byte
}

func (m *meter) begin() {
	m.last = nowNanos()
}

// end says that a call to the engine ended that did count operations on bytes of keys and values.
func (m *meter) end(count uint64, bytes int) {
	m.add(count, bytes, m.lap(), 1)
}

// endBefore says that one call ended in whose last part, idle, nothing was done: it does not count.
func (m *meter) endBefore(idle time.Duration) {
	now := nowNanos() - int64(idle)
	m.add(1, 0, uint64(now-m.last), 1)
	m.last = now
}

// endSteps says that count steps of a scan ended: too short to be timed one by one.
func (m *meter) endSteps(count uint64, bytes int) {
	if count > 0 {
		m.add(count, bytes, m.lap()/count, count)
	}
}

func (m *meter) lap() uint64 {
	now := nowNanos()
	nanos := now - m.last
	m.last = now
	return uint64(nanos)
}

func (m *meter) add(count uint64, bytes int, nanos, times uint64) {
	m.operations += count
	m.bytes += uint64(bytes)
	m.latencies.add(nanos, times)
	if m.interval != nil {
		m.interval.mutex.Lock()
		m.interval.operations += count
		m.interval.latencies.add(nanos, times)
		m.interval.mutex.Unlock()
	}
}

// goesOn tells whether there was time left when the last operation ended.
func (m *meter) goesOn() bool {
	return m.last < m.deadline.at.Load()
}
