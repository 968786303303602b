// The lab's engine program for bbolt.
package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"lab/driver"
)

var bucketName = []byte("lab")

const (
	// Address space, not memory: a file that outgrows its map has to wait for all readers.
	mapSize = 64 << 30
	// Entries of a bulk load in one transaction.
	loadEntries = 100_000
	// Bytes of a transaction of a compaction.
	compactBytes = 1 << 20
)

func main() {
	driver.Main(describe, func(settings *driver.Settings) driver.Engine {
		return &engine{settings: settings}
	})
}

func describe(*driver.Settings) driver.Description {
	return driver.Description{
		Engine:   "bbolt",
		Title:    "bbolt",
		Version:  driver.ModuleVersion("go.etcd.io/bbolt"),
		Variants: []driver.Variant{{Name: "", Title: "bbolt"}},
		Asynchronous: "NoSync: pages and header are written by pwrite(); survives the process, but a " +
			"crash of the machine may leave a file that cannot be read",
		Synchronous: "pages, then the header, are forced to the disk by fdatasync before the call " +
			"returns",
		Settings: "bbolt has no cache of its own, it reads the page cache of the operating system " +
			"through a map of 64 GiB: none of cache_size, write_buffer_size, block_size (4 KiB " +
			"pages), max_open_files, bloom_bits and compression has a meaning. One bucket; a read " +
			"transaction for each read, a write transaction for each write or batch. Set beyond the " +
			"defaults: a hash map as the list of free pages, which is not written to the file " +
			"(FreelistMapType, NoFreelistSync), no statistics, and with NoSync also NoGrowSync. Bulk " +
			"load: transactions of 100,000 entries that fill their pages. compact copies the " +
			"database into a new file with bbolt's Compact, waitcompact forces the file to the disk. " +
			"Threads are goroutines",
		Limits: []string{
			"its memory is the page cache, whatever cache_size says",
			"values are not compressed",
			"one write at a time; writers wait for each other",
		},
	}
}

type engine struct {
	settings *driver.Settings
	db       *bolt.DB
}

func (e *engine) path() string {
	return filepath.Join(e.settings.DB, "lab.db")
}

func open(path string) (*bolt.DB, error) {
	return bolt.Open(path, 0o644, &bolt.Options{
		FreelistType:    bolt.FreelistMapType,
		NoFreelistSync:  true,
		NoStatistics:    true,
		NoSync:          true,
		NoGrowSync:      true,
		InitialMmapSize: mapSize,
	})
}

func (e *engine) Open(use driver.Use) error {
	db, err := open(e.path())
	if err != nil {
		return err
	}
	e.db = db
	err = db.Update(func(transaction *bolt.Tx) error {
		_, err := transaction.CreateBucketIfNotExists(bucketName)
		return err
	})
	if err != nil {
		return err
	}
	return e.Adapt(use)
}

func (e *engine) Adapt(use driver.Use) error {
	e.db.NoSync, e.db.NoGrowSync = !use.Synchronous, !use.Synchronous
	return nil
}

func (e *engine) Close() error {
	return e.db.Close()
}

func (e *engine) Compact() error {
	// A compaction ends with a commit that is synced.
	path := e.path() + ".new"
	copied, err := open(path)
	if err != nil {
		return err
	}
	if err := bolt.Compact(copied, e.db, compactBytes); err != nil {
		return err
	}
	synchronous := !e.db.NoSync
	if err := errors.Join(copied.Sync(), copied.Close(), e.db.Close()); err != nil {
		return err
	}
	if err := os.Rename(path, e.path()); err != nil {
		return err
	}
	return e.Open(driver.Use{Synchronous: synchronous})
}

func (e *engine) WaitCompact() (time.Duration, error) {
	return 0, e.db.Sync()
}

func (e *engine) NewSession() (driver.Session, error) {
	return &session{db: e.db}, nil
}

type session struct {
	db *bolt.DB
	// The batch.
	writing *bolt.Tx
	bucket  *bolt.Bucket
}

func (s *session) begin() error {
	if s.writing != nil {
		return nil
	}
	transaction, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	s.writing, s.bucket = transaction, transaction.Bucket(bucketName)
	return nil
}

// The bucket keeps the value and not a copy until the commit; the driver's values never change.
func (s *session) BatchPut(key, value []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.bucket.Put(key, value)
}

func (s *session) BatchDelete(key []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.bucket.Delete(key)
}

func (s *session) Commit() error {
	if s.writing == nil {
		return nil
	}
	transaction := s.writing
	s.writing = nil
	return transaction.Commit()
}

func (s *session) Put(key, value []byte) error {
	if err := s.BatchPut(key, value); err != nil {
		return err
	}
	return s.Commit()
}

func (s *session) Delete(key []byte) error {
	if err := s.BatchDelete(key); err != nil {
		return err
	}
	return s.Commit()
}

func (s *session) Get(key []byte, value *[]byte) (bool, error) {
	transaction, err := s.db.Begin(false)
	if err != nil {
		return false, err
	}
	found := transaction.Bucket(bucketName).Get(key)
	if found != nil {
		*value = append((*value)[:0], found...)
	}
	return found != nil, transaction.Rollback()
}

// Close drops a batch that an error left open.
func (s *session) Close() error {
	if s.writing == nil {
		return nil
	}
	return s.writing.Rollback()
}

func (s *session) NewCursor() (driver.Cursor, error) {
	transaction, err := s.db.Begin(false)
	if err != nil {
		return nil, err
	}
	return &cursor{transaction: transaction, cursor: transaction.Bucket(bucketName).Cursor()}, nil
}

type cursor struct {
	transaction *bolt.Tx
	cursor      *bolt.Cursor
	key, value  []byte
}

func (c *cursor) at(key, value []byte) bool {
	c.key, c.value = key, value
	return key != nil
}

func (c *cursor) First() bool          { return c.at(c.cursor.First()) }
func (c *cursor) Last() bool           { return c.at(c.cursor.Last()) }
func (c *cursor) Seek(key []byte) bool { return c.at(c.cursor.Seek(key)) }
func (c *cursor) Next() bool           { return c.at(c.cursor.Next()) }
func (c *cursor) Prev() bool           { return c.at(c.cursor.Prev()) }
func (c *cursor) Key() []byte          { return c.key }
func (c *cursor) Value() []byte        { return c.value }
func (c *cursor) Close() error         { return c.transaction.Rollback() }

func (s *session) NewLoader() (driver.Loader, error) {
	return &loader{session: s}, nil
}

type loader struct {
	session *session
	entries int
}

func (l *loader) Put(key, value []byte) error {
	if err := l.session.begin(); err != nil {
		return err
	}
	l.session.bucket.FillPercent = 1
	if err := l.session.BatchPut(key, value); err != nil {
		return err
	}
	if l.entries++; l.entries%loadEntries == 0 {
		return l.session.Commit()
	}
	return nil
}

func (l *loader) Finish() error {
	return l.session.Commit()
}
