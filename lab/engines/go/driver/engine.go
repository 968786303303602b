// Package driver runs the lab's benchmarks on a storage engine in Go: the twin of engines/common,
// which is for programs in C++. lab/WORKLOADS.md specifies what benchmarks do and what a program
// prints; an engine provides an [Engine] and a [Description] and gives them to [Main].
//
//  1. Threads of a benchmark are goroutines. Sessions, and all that is made of one, belong to the
//     goroutine that made them.
//  2. Every write is as durable as [Use] asks when the call returns.
//  3. Keys and values that are passed in belong to the driver and change after the call.
package driver

import "time"

// Use is the next use of a database.
type Use struct {
	// How many sessions work at the same time.
	Sessions uint64
	// Writes are on the disk when they return.
	Synchronous bool
}

// Engine is a storage engine. Its methods are called while there is no session.
type Engine interface {
	// Open opens the database, and creates it if the directory holds none.
	Open(use Use) error
	// Adapt makes an open database ready for another use.
	Adapt(use Use) error
	Close() error
	// Compact compacts the whole range.
	Compact() error
	// WaitCompact does all work that was put off: nothing is left in the process that a crash loses.
	// It returns the time at its end in which it only saw that there was nothing more to do.
	WaitCompact() (time.Duration, error)
	// NewSession makes what one goroutine works with. Several may exist at the same time.
	NewSession() (Session, error)
}

// Session is what one goroutine works with.
type Session interface {
	Put(key, value []byte) error
	// Delete removes a key that may be missing.
	Delete(key []byte) error
	// Get copies the value of a key into a buffer that is used again; false if the key is missing.
	Get(key []byte, value *[]byte) (bool, error)
	BatchPut(key, value []byte) error
	BatchDelete(key []byte) error
	// Commit writes the batch: all of it or nothing.
	Commit() error
	// NewCursor begins a scan. The session does nothing else until the cursor is closed.
	NewCursor() (Cursor, error)
	// NewLoader begins a load of keys in increasing order into an empty database.
	NewLoader() (Loader, error)
	Close() error
}

// RangeDeleter is a session that deletes a range of keys as one. Without it they are deleted one by
// one, in a batch.
type RangeDeleter interface {
	DeleteRange(first, end []byte) error
}

// Expirer is a session of an engine whose entries may expire; see [Description].
type Expirer interface {
	PutExpiring(key, value []byte, after time.Duration) error
}

// Cursor is a scan. Steps return whether it stands on an entry: they return false at the end, and
// after an error, which Close returns.
type Cursor interface {
	First() bool
	Last() bool
	// Seek finds the first entry whose key is not below the given one.
	Seek(key []byte) bool
	// Next follows First, Seek and Next.
	Next() bool
	// Prev follows Last and Prev.
	Prev() bool
	// Key and Value are valid until the next step.
	Key() []byte
	Value() []byte
	Close() error
}

// Loader is an engine's way to load ordered data.
type Loader interface {
	Put(key, value []byte) error
	Finish() error
}
