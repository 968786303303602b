package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// result is what a benchmark measured.
type result struct {
	benchmark       string
	engine          string
	threads         uint64
	operations      uint64
	bytes           uint64
	seconds         float64
	latencies       histogram
	cpuSeconds      float64
	bytesWritten    uint64
	bytesRead       uint64
	device          *deviceRequests
	diskBytes       uint64
	peakMemoryBytes uint64
	found           *uint64
	writerOpsPerSec *float64
	truncated       bool
	digest          string
}

func (r *result) perSecond(amount float64) float64 {
	if r.seconds > 0 {
		return amount / r.seconds
	}
	return 0
}

func (r *result) microsPerOperation() float64 {
	return 1e6 * r.seconds * float64(r.threads) / float64(max(r.operations, 1))
}

// jsonLine is one object of JSON, built field by field.
type jsonLine struct {
	text strings.Builder
}

func (j *jsonLine) raw(name, value string) *jsonLine {
	separator := ","
	if j.text.Len() == 0 {
		separator = "{"
	}
	fmt.Fprintf(&j.text, `%s"%s":%s`, separator, name, value)
	return j
}

func (j *jsonLine) string(name, value string) *jsonLine {
	quoted, _ := json.Marshal(value)
	return j.raw(name, string(quoted))
}

func (j *jsonLine) whole(name string, value uint64) *jsonLine {
	return j.raw(name, fmt.Sprint(value))
}

func (j *jsonLine) number(name string, value float64, digits int) *jsonLine {
	return j.raw(name, fmt.Sprintf("%.*f", digits, value))
}

func (j *jsonLine) line() string {
	return j.text.String() + "}"
}

func (r *result) json() string {
	var j jsonLine
	j.string("benchmark", r.benchmark).string("engine", r.engine).whole("ops", r.operations)
	j.number("seconds", r.seconds, 6).number("micros_per_op", r.microsPerOperation(), 4)
	j.number("ops_per_sec", r.perSecond(float64(r.operations)), 1)
	j.number("mb_per_sec", r.perSecond(float64(r.bytes)/1048576), 2)
	j.number("mean_us", r.latencies.meanMicros(), 3)
	for _, quantile := range []struct {
		name  string
		value float64
	}{
		{"p50_us", 0.5}, {"p75_us", 0.75}, {"p90_us", 0.9}, {"p95_us", 0.95},
		{"p99_us", 0.99}, {"p999_us", 0.999}, {"p9999_us", 0.9999},
	} {
		j.number(quantile.name, r.latencies.microsAt(quantile.value), 3)
	}
	j.number("max_us", r.latencies.maxMicros(), 3)
	j.number("cpu_seconds", r.cpuSeconds, 3).whole("bytes_written", r.bytesWritten).
		whole("bytes_read", r.bytesRead)
	if r.device != nil {
		j.whole("device_reads", r.device.reads).whole("device_writes", r.device.writes).
			whole("device_bytes_written", r.device.bytesWritten)
	}
	j.whole("disk_bytes", r.diskBytes).whole("peak_memory_bytes", r.peakMemoryBytes)
	if r.found != nil {
		j.whole("found", *r.found)
	}
	if r.writerOpsPerSec != nil {
		j.number("writer_ops_per_sec", *r.writerOpsPerSec, 1)
	}
	if r.truncated {
		j.raw("truncated", "true")
	}
	if r.digest != "" {
		j.string("digest", r.digest)
	}
	return j.line()
}

// words returns a line for people.
func (r *result) words() string {
	line := fmt.Sprintf("%-16s : %11.3f micros/op; %10.0f ops/s; %8.1f MB/s", r.benchmark,
		r.microsPerOperation(), r.perSecond(float64(r.operations)),
		r.perSecond(float64(r.bytes)/1048576))
	if r.found != nil {
		line += fmt.Sprintf(" (%d found)", *r.found)
	}
	if r.writerOpsPerSec != nil {
		line += fmt.Sprintf(" (writer %.0f ops/s)", *r.writerOpsPerSec)
	}
	if r.truncated {
		line += fmt.Sprintf(" (truncated after %d)", r.operations)
	}
	if r.digest != "" {
		line += fmt.Sprintf(" (digest %s)", r.digest)
	}
	return line
}

// seriesLine describes one interval of a benchmark that is still running.
func seriesLine(benchmark string, second float64, operations uint64, latencies *histogram) string {
	var j jsonLine
	j.string("series", benchmark).number("second", second, 3).whole("ops", operations)
	j.number("mean_us", latencies.meanMicros(), 3)
	j.number("p50_us", latencies.microsAt(0.5), 3).number("p95_us", latencies.microsAt(0.95), 3)
	j.number("p99_us", latencies.microsAt(0.99), 3).number("p999_us", latencies.microsAt(0.999), 3)
	j.number("max_us", latencies.maxMicros(), 3)
	return j.line()
}

// printLine writes a line at once: nothing of it is left in the process.
func printLine(line string) error {
	_, err := os.Stdout.WriteString(line + "\n")
	return err
}
