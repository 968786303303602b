// The lab's engine program for goleveldb.
package main

import (
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"
	"time"

	"lab/driver"
)

func main() {
	driver.Main(describe, func(settings *driver.Settings) driver.Engine {
		return &engine{settings: settings}
	})
}

func describe(*driver.Settings) driver.Description {
	return driver.Description{
		Engine:  "goleveldb",
		Title:   "goleveldb",
		Version: driver.ModuleVersion("github.com/syndtr/goleveldb"),
		Variants: []driver.Variant{
			{Name: "", Title: "goleveldb"},
			{Name: "filter", Title: "goleveldb, filters"},
		},
		Asynchronous: "written to the journal by write(); survives the process, not the machine",
		Synchronous:  "the journal is forced to the disk by fsync before the call returns",
		Settings: "cache_size: BlockCacheCapacity (default 8 MiB); write_buffer_size: WriteBuffer " +
			"(default 4 MiB), a second one while it is flushed; block_size: BlockSize (default " +
			"4 KiB); max_open_files: OpenFilesCacheCapacity (default 500); bloom_bits: a bloom " +
			"filter (default none); compression: snappy or none; everything else is goleveldb's " +
			"default. One background goroutine for compactions. Bulk load: one transaction, whose " +
			"tables are written without the journal. waitcompact opens and discards a transaction, " +
			"which flushes the memtable. Threads are goroutines. Variant filter: 10 bits a key where " +
			"bloom_bits asks for none",
		Limits: []string{
			"waitcompact ends 0.3 s after the process became idle, since goleveldb cannot be asked",
		},
	}
}

type engine struct {
	settings *driver.Settings
	db       *leveldb.DB
	write    *opt.WriteOptions
}

func (e *engine) Open(use driver.Use) error {
	s := e.settings
	options := &opt.Options{
		BlockCacheCapacity:     int(s.CacheSize),
		WriteBuffer:            int(s.WriteBufferSize),
		BlockSize:              int(s.BlockSize),
		OpenFilesCacheCapacity: int(s.MaxOpenFiles),
		Compression:            opt.SnappyCompression,
	}
	if !s.Compress {
		options.Compression = opt.NoCompression
	}
	if bits := s.FilterBits(); bits > 0 {
		options.Filter = filter.NewBloomFilter(int(bits))
	}
	db, err := leveldb.OpenFile(s.DB, options)
	if err != nil {
		return err
	}
	e.db = db
	return e.Adapt(use)
}

func (e *engine) Adapt(use driver.Use) error {
	e.write = &opt.WriteOptions{Sync: use.Synchronous}
	return nil
}

func (e *engine) Close() error {
	return e.db.Close()
}

func (e *engine) Compact() error {
	return e.db.CompactRange(util.Range{})
}

func (e *engine) WaitCompact() (time.Duration, error) {
	transaction, err := e.db.OpenTransaction()
	if err != nil {
		return 0, err
	}
	transaction.Discard()
	return driver.WaitUntilQuiet(), nil
}

func (e *engine) NewSession() (driver.Session, error) {
	return &session{db: e.db, write: e.write}, nil
}

type session struct {
	db    *leveldb.DB
	write *opt.WriteOptions
	batch leveldb.Batch
}

func (s *session) Put(key, value []byte) error {
	return s.db.Put(key, value, s.write)
}

func (s *session) Delete(key []byte) error {
	return s.db.Delete(key, s.write)
}

func (s *session) Get(key []byte, value *[]byte) (bool, error) {
	found, err := s.db.Get(key, nil)
	if err == leveldb.ErrNotFound {
		return false, nil
	}
	*value = found
	return err == nil, err
}

func (s *session) BatchPut(key, value []byte) error {
	s.batch.Put(key, value)
	return nil
}

func (s *session) BatchDelete(key []byte) error {
	s.batch.Delete(key)
	return nil
}

func (s *session) Commit() error {
	err := s.db.Write(&s.batch, s.write)
	s.batch.Reset()
	return err
}

func (s *session) Close() error {
	return nil
}

func (s *session) NewCursor() (driver.Cursor, error) {
	return &cursor{s.db.NewIterator(nil, nil)}, nil
}

// cursor has the names that the driver uses; the rest are the iterator's own.
type cursor struct {
	iterator.Iterator
}

func (c *cursor) Close() error {
	err := c.Error()
	c.Release()
	return err
}

func (s *session) NewLoader() (driver.Loader, error) {
	transaction, err := s.db.OpenTransaction()
	return &loader{transaction}, err
}

type loader struct {
	transaction *leveldb.Transaction
}

func (l *loader) Put(key, value []byte) error {
	return l.transaction.Put(key, value, nil)
}

func (l *loader) Finish() error {
	return l.transaction.Commit()
}
