// The lab's engine program for Badger.
package main

import (
	"math"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/ristretto/v2/z"

	"lab/driver"
)

const (
	// A transaction has so many hundredths of the write buffer at most.
	batchShare = 15
	// Values above it lie in a log of their own. Badger's default, and the most that it takes.
	valueThreshold = 1 << 20
	// Bytes of a bulk load that are handed over at once.
	loadBytes = 4 << 20
	// Goroutines of a compaction of all; Badger's own tools have one.
	compactors = 1
)

func main() {
	driver.Main(describe, func(settings *driver.Settings) driver.Engine {
		return &engine{settings: settings}
	})
}

func describe(*driver.Settings) driver.Description {
	return driver.Description{
		Engine:   "badger",
		Title:    "Badger",
		Version:  driver.ModuleVersion("github.com/dgraph-io/badger/v4"),
		Variants: []driver.Variant{{Name: "", Title: "Badger"}},
		Expires:  true,
		Asynchronous: "written to the memtable's log, which is a mapped file; survives the process, " +
			"not the machine",
		Synchronous: "SyncWrites: the log is forced to the disk by msync before the call returns",
		Settings: "cache_size: BlockCacheSize (default 256 MiB), indexes and filters are in memory " +
			"beside it; write_buffer_size: MemTableSize (default 64 MiB), up to five more wait to be " +
			"flushed; block_size: BlockSize (default 4 KiB); max_open_files has no meaning, all " +
			"tables are mapped; bloom_bits: BloomFalsePositive of as many bits (default 0.01, about " +
			"10 bits a key); compression: snappy or none. Every write and every batch is a " +
			"transaction, every read one as well. Set beyond the defaults: no detection of " +
			"conflicts between transactions, since no transaction reads and writes, no metrics; " +
			"iterators do not read ahead values, which lie in the tables up to 1 MiB or 15 % of " +
			"the write buffer. Bulk load: a StreamWriter. compact is a reopening, which flushes the " +
			"memtable, and Flatten; waitcompact the same reopening. Threads are goroutines",
		Limits: []string{
			"a transaction has at most 15 % of the write buffer: a larger batch is divided, and is " +
				"not atomic",
			"waitcompact ends 0.3 s after the process became idle, since Badger cannot be asked",
		},
	}
}

type engine struct {
	settings *driver.Settings
	use      driver.Use
	db       *badger.DB
}

func (e *engine) Open(use driver.Use) error {
	s := e.settings
	o := badger.DefaultOptions(s.DB).
		WithLogger(nil).
		WithMetricsEnabled(false).
		WithDetectConflicts(false).
		WithSyncWrites(use.Synchronous)
	if s.CacheSize > 0 {
		o = o.WithBlockCacheSize(int64(s.CacheSize))
	}
	if s.WriteBufferSize > 0 {
		o = o.WithMemTableSize(int64(s.WriteBufferSize))
	}
	o = o.WithValueThreshold(min(valueThreshold, o.MemTableSize*batchShare/100))
	if s.BlockSize > 0 {
		o = o.WithBlockSize(int(s.BlockSize))
	}
	if s.BloomBits > 0 {
		o = o.WithBloomFalsePositive(math.Exp(-float64(s.BloomBits) * math.Ln2 * math.Ln2))
	}
	if !s.Compress {
		o = o.WithCompression(options.None)
	}
	db, err := badger.Open(o)
	if err != nil {
		return err
	}
	e.db, e.use = db, use
	return nil
}

// Adapt: whether writes are synchronous is said when the database is opened.
func (e *engine) Adapt(use driver.Use) error {
	if use.Synchronous == e.use.Synchronous {
		return nil
	}
	return e.reopen(use)
}

func (e *engine) reopen(use driver.Use) error {
	if err := e.Close(); err != nil {
		return err
	}
	return e.Open(use)
}

func (e *engine) Close() error {
	return e.db.Close()
}

func (e *engine) Compact() error {
	if err := e.reopen(e.use); err != nil {
		return err
	}
	return e.db.Flatten(compactors)
}

func (e *engine) WaitCompact() (time.Duration, error) {
	if err := e.reopen(e.use); err != nil {
		return 0, err
	}
	return driver.WaitUntilQuiet(), nil
}

func (e *engine) NewSession() (driver.Session, error) {
	return &session{db: e.db}, nil
}

type session struct {
	db    *badger.DB
	batch *badger.Txn
}

func (s *session) Put(key, value []byte) error {
	transaction := s.db.NewTransaction(true)
	defer transaction.Discard()
	if err := transaction.Set(key, value); err != nil {
		return err
	}
	return transaction.Commit()
}

// PutExpiring: Badger counts in whole seconds.
func (s *session) PutExpiring(key, value []byte, after time.Duration) error {
	transaction := s.db.NewTransaction(true)
	defer transaction.Discard()
	if err := transaction.SetEntry(badger.NewEntry(key, value).WithTTL(after)); err != nil {
		return err
	}
	return transaction.Commit()
}

func (s *session) Delete(key []byte) error {
	transaction := s.db.NewTransaction(true)
	defer transaction.Discard()
	if err := transaction.Delete(key); err != nil {
		return err
	}
	return transaction.Commit()
}

func (s *session) Get(key []byte, value *[]byte) (bool, error) {
	transaction := s.db.NewTransaction(false)
	defer transaction.Discard()
	item, err := transaction.Get(key)
	if err == badger.ErrKeyNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*value, err = item.ValueCopy(*value)
	return err == nil, err
}

// The transaction keeps the key until the commit.
func (s *session) BatchPut(key, value []byte) error {
	key = slices.Clone(key)
	return s.add(func() error { return s.batch.Set(key, value) })
}

func (s *session) BatchDelete(key []byte) error {
	key = slices.Clone(key)
	return s.add(func() error { return s.batch.Delete(key) })
}

func (s *session) add(change func() error) error {
	if s.batch == nil {
		s.batch = s.db.NewTransaction(true)
	}
	err := change()
	if err != badger.ErrTxnTooBig {
		return err
	}
	if err := s.Commit(); err != nil {
		return err
	}
	s.batch = s.db.NewTransaction(true)
	return change()
}

func (s *session) Commit() error {
	if s.batch == nil {
		return nil
	}
	transaction := s.batch
	s.batch = nil
	return transaction.Commit()
}

// Close drops a batch that an error left open.
func (s *session) Close() error {
	if s.batch != nil {
		s.batch.Discard()
	}
	return nil
}

func (s *session) NewCursor() (driver.Cursor, error) {
	return &cursor{transaction: s.db.NewTransaction(false)}, nil
}

// cursor makes its iterator when it knows the direction.
type cursor struct {
	transaction *badger.Txn
	iterator    *badger.Iterator
	value       []byte
	problem     error
}

func (c *cursor) begin(reverse bool) {
	if c.iterator != nil {
		c.iterator.Close()
	}
	c.iterator = c.transaction.NewIterator(badger.IteratorOptions{Reverse: reverse})
}

func (c *cursor) First() bool {
	c.begin(false)
	c.iterator.Rewind()
	return c.iterator.Valid()
}

func (c *cursor) Last() bool {
	c.begin(true)
	c.iterator.Rewind()
	return c.iterator.Valid()
}

func (c *cursor) Seek(key []byte) bool {
	c.begin(false)
	c.iterator.Seek(key)
	return c.iterator.Valid()
}

func (c *cursor) Next() bool {
	c.iterator.Next()
	return c.iterator.Valid()
}

// Prev is a step of an iterator in reverse order.
func (c *cursor) Prev() bool {
	return c.Next()
}

func (c *cursor) Key() []byte {
	return c.iterator.Item().Key()
}

// Value shows the value where it lies: in the table, or in the log of large values.
func (c *cursor) Value() []byte {
	err := c.iterator.Item().Value(func(value []byte) error {
		c.value = value
		return nil
	})
	if err != nil {
		c.problem = err
		return nil
	}
	return c.value
}

func (c *cursor) Close() error {
	if c.iterator != nil {
		c.iterator.Close()
	}
	c.transaction.Discard()
	return c.problem
}

func (s *session) NewLoader() (driver.Loader, error) {
	writer := s.db.NewStreamWriter()
	if err := writer.Prepare(); err != nil {
		return nil, err
	}
	return &loader{writer: writer, buffer: newBuffer()}, nil
}

type loader struct {
	writer *badger.StreamWriter
	buffer *z.Buffer
}

func newBuffer() *z.Buffer {
	return z.NewBuffer(loadBytes+loadBytes/4, "lab")
}

func (l *loader) Put(key, value []byte) error {
	badger.KVToBuffer(&pb.KV{Key: key, Value: value, Version: 1}, l.buffer)
	if l.buffer.LenNoPadding() >= loadBytes {
		return l.handOver()
	}
	return nil
}

func (l *loader) handOver() error {
	err := l.writer.Write(l.buffer)
	l.buffer.Reset()
	return err
}

func (l *loader) Finish() error {
	defer l.buffer.Release()
	if err := l.handOver(); err != nil {
		return err
	}
	return l.writer.Flush()
}
