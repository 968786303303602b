package driver

import "strings"

type kind int

const (
	put kind = iota
	putBatch
	remove
	get
	scan
	seek
	getWhilePutting
	mixed
	latest
	shortScans
	getAndPut
	queue
	bulkLoad
	compact
	waitCompact
	cold
	selfTest
	production
	replay
	removeRange
	putExpiring
	keyspaces
	multiGet
)

type choice int

const (
	inOrder choice = iota
	reversed
	atRandom
	missing
	hot
	asPut
	byPareto
	byZipfian
)

// benchmark is a line of the table in lab/WORKLOADS.md.
type benchmark struct {
	name string
	kind kind
	keys choice
	// How many operations in a hundred are gets, or scans.
	reads uint64
	// The place in the table, from 1.
	number uint64
}

// In the order of their numbers.
var benchmarks = []benchmark{
	{name: "fillseq", kind: put, keys: inOrder},
	{name: "fillrandom", kind: put, keys: atRandom},
	{name: "overwrite", kind: put, keys: atRandom},
	{name: "fillseqbatch", kind: putBatch, keys: inOrder},
	{name: "fillrandbatch", kind: putBatch, keys: atRandom},
	{name: "fillsync", kind: put, keys: atRandom},
	{name: "fill100K", kind: put, keys: inOrder},
	{name: "fill100Krandom", kind: put, keys: atRandom},
	{name: "readseq", kind: scan, keys: inOrder},
	{name: "readreverse", kind: scan, keys: reversed},
	{name: "readrandom", kind: get, keys: atRandom},
	{name: "readmissing", kind: get, keys: missing},
	{name: "readhot", kind: get, keys: hot},
	{name: "seekrandom", kind: seek, keys: atRandom},
	{name: "readwhilewriting", kind: getWhilePutting, keys: atRandom},
	{name: "deleteseq", kind: remove, keys: inOrder},
	{name: "deleterandom", kind: remove, keys: atRandom},
	{name: "compact", kind: compact},
	{name: "waitcompact", kind: waitCompact},
	{name: "fillseqsync", kind: put, keys: inOrder},
	{name: "bulkload", kind: bulkLoad, keys: inOrder},
	{name: "cold", kind: cold},
	{name: "readpareto", kind: mixed, keys: byPareto, reads: 100},
	{name: "mixedpareto", kind: mixed, keys: byPareto, reads: 90},
	{name: "writepareto", kind: mixed, keys: byPareto},
	{name: "ycsba", kind: mixed, keys: byZipfian, reads: 50},
	{name: "ycsbb", kind: mixed, keys: byZipfian, reads: 95},
	{name: "ycsbc", kind: mixed, keys: byZipfian, reads: 100},
	{name: "ycsbd", kind: latest, keys: byZipfian, reads: 95},
	{name: "ycsbe", kind: shortScans, keys: byZipfian, reads: 95},
	{name: "selftest", kind: selfTest},
	{name: "ycsbf", kind: getAndPut, keys: byZipfian, reads: 50},
	{name: "readwriterandom", kind: mixed, keys: atRandom, reads: 50},
	{name: "queue", kind: queue, keys: inOrder},
	{name: "mixgraph", kind: production},
	{name: "replay", kind: replay},
	{name: "deleterange", kind: removeRange, keys: atRandom},
	{name: "fillexpiring", kind: putExpiring, keys: atRandom},
	{name: "createkeyspaces", kind: keyspaces},
	{name: "fillkeyspaces", kind: keyspaces},
	{name: "readkeyspaces", kind: keyspaces},
	{name: "multireadrandom", kind: multiGet, keys: atRandom},
	{name: "readhit", kind: get, keys: asPut},
}

// The numbers of the benchmarks of these names.
const (
	fillRandom    = 2
	fillRandBatch = 5
)

func findBenchmark(name string) (benchmark, error) {
	for at, known := range benchmarks {
		if known.name == name {
			known.number = uint64(at) + 1
			return known, nil
		}
	}
	return benchmark{}, wrongUse("there is no benchmark '%s'; lab/WORKLOADS.md lists them", name)
}

// missing says why this driver, or an engine whose entries may not expire, cannot run it.
func (b *benchmark) missing(rate uint64, expires bool) string {
	switch b.kind {
	case putExpiring:
		if !expires {
			return "entries do not expire"
		}
	case production, replay, keyspaces:
		return "the lab's driver for Go does not have it"
	case putBatch, multiGet, scan, shortScans, bulkLoad, compact, waitCompact, cold, selfTest:
		return ""
	}
	if rate > 0 {
		return "the lab's driver for Go keeps no rate"
	}
	return ""
}

// stream seeds its random numbers. fillrandbatch puts what fillrandom puts.
func (b *benchmark) stream() uint64 {
	if b.number == fillRandBatch {
		return fillRandom
	}
	return b.number
}

// isEmpty tells whether it begins with an empty database.
func (b *benchmark) isEmpty() bool {
	return strings.HasPrefix(b.name, "fill") || b.kind == bulkLoad || b.kind == selfTest ||
		b.kind == queue
}

func (b *benchmark) isSynchronous() bool {
	return b.name == "fillsync" || b.name == "fillseqsync"
}

func (b *benchmark) hasLargeValues() bool {
	return strings.HasPrefix(b.name, "fill100K")
}

// isTimed tells whether it runs for --duration.
func (b *benchmark) isTimed() bool {
	return b.keys == byPareto || b.kind == putExpiring
}

// reportsFound tells whether the report says how many keys were found.
func (b *benchmark) reportsFound() bool {
	switch b.kind {
	case get, seek, getWhilePutting, getAndPut, latest, queue, multiGet:
		return true
	case mixed:
		return b.reads > 0
	}
	return false
}

// concernsAll tells whether it is one call for the whole database.
func (b *benchmark) concernsAll() bool {
	switch b.kind {
	case compact, waitCompact, cold, selfTest:
		return true
	}
	return false
}

// isSingle tells whether it is done by one thread, whatever --threads says.
func (b *benchmark) isSingle() bool {
	return b.concernsAll() || b.kind == bulkLoad
}

// operations returns those of all threads.
func (b *benchmark) operations(settings *Settings) uint64 {
	operations := settings.Num
	switch b.kind {
	case get, scan, seek, getWhilePutting, multiGet:
		operations = settings.reads
	}
	if b.isSynchronous() {
		operations /= 100
	}
	if b.hasLargeValues() {
		operations /= 1000
	}
	if b.kind == removeRange {
		operations /= rangeKeys
	}
	return max(operations, 1)
}
