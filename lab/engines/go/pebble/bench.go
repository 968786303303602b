// The lab's engine program for Pebble.
package main

import (
	"context"
	"fmt"
	"log"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"lab/driver"
)

// The variant whose log reaches the operating system with every write.
const written = "written"

const (
	pollInterval = 10 * time.Millisecond
	// Looks in a row that have to find nothing to do: a flush may be followed by a compaction.
	idleLooks = 10
	// Bytes of a table that is built for a bulk load.
	loadTable = 64 << 20
)

func main() {
	driver.Main(describe, func(settings *driver.Settings) driver.Engine {
		return &engine{settings: settings, logs: &logFS{FS: vfs.Default}}
	})
}

func describe(settings *driver.Settings) driver.Description {
	d := driver.Description{
		Engine:  "pebble",
		Title:   "Pebble",
		Version: driver.ModuleVersion("github.com/cockroachdb/pebble/v2"),
		Variants: []driver.Variant{
			{Name: "", Title: "Pebble"},
			{Name: "filter", Title: "Pebble, filters"},
			{Name: written, Title: "Pebble, log written"},
		},
		Asynchronous: "NoSync: the record is in the process until its block of the log, 32 KiB, is " +
			"full; a killed process loses what it had acknowledged since",
		Synchronous: "Sync: the log is forced to the disk by fdatasync before the call returns",
		Settings: "cache_size: a block cache of its own (default 8 MiB); write_buffer_size: " +
			"MemTableSize (default 4 MiB), two of them; block_size, max_open_files and bloom_bits: " +
			"the options of these names for all levels (defaults 4 KiB, 1,000, none); compression: " +
			"snappy or none on every level. FormatMajorVersion is the newest; everything else is " +
			"Pebble's default, one compaction at a time included. Bulk load: sorted tables of " +
			"64 MiB, moved in by Ingest. Threads are goroutines. Variant filter: 10 bits a key " +
			"where bloom_bits asks for none; written: every write waits until the log is written, " +
			"by a file system whose syncs of the log do nothing",
	}
	if settings.Variant == written {
		d.Asynchronous = "Sync, through a file system of the lab's whose syncs of the log do " +
			"nothing: written to the log file by write(); survives the process, not the machine"
	}
	return d
}

type engine struct {
	settings *driver.Settings
	logs     *logFS
	options  *pebble.Options
	db       *pebble.DB
	write    *pebble.WriteOptions
}

func (e *engine) Open(use driver.Use) error {
	s := e.settings
	options := &pebble.Options{
		FS:                 e.logs,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             quietLogger{},
		MemTableSize:       s.WriteBufferSize,
		MaxOpenFiles:       int(s.MaxOpenFiles),
		CacheSize:          int64(s.CacheSize),
	}
	for i := range options.Levels {
		level := &options.Levels[i]
		level.BlockSize = int(s.BlockSize)
		level.Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
		if !s.Compress {
			level.Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		}
		if bits := s.FilterBits(); bits > 0 {
			level.FilterPolicy = bloom.FilterPolicy(bits)
		}
	}
	options.EnsureDefaults()
	db, err := pebble.Open(s.DB, options)
	if err != nil {
		return err
	}
	e.db, e.options = db, options
	return e.Adapt(use)
}

func (e *engine) Adapt(use driver.Use) error {
	e.write = pebble.NoSync
	if use.Synchronous || e.settings.Variant == written {
		e.write = pebble.Sync
	}
	e.logs.unsynced.Store(!use.Synchronous && e.settings.Variant == written)
	return nil
}

func (e *engine) Close() error {
	return e.db.Close()
}

func (e *engine) Compact() error {
	return e.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
}

func (e *engine) WaitCompact() (time.Duration, error) {
	if err := e.db.Flush(); err != nil {
		return 0, err
	}
	completed, busy := e.db.Metrics().Compact.Count, time.Now()
	for idle := 0; idle < idleLooks; {
		time.Sleep(pollInterval)
		metrics := e.db.Metrics()
		isBusy := metrics.Compact.NumInProgress > 0 || metrics.Flush.NumInProgress > 0
		if isBusy || metrics.Compact.Count != completed {
			idle, busy = 0, time.Now()
		} else {
			idle++
		}
		completed = metrics.Compact.Count
	}
	return time.Since(busy), nil
}

func (e *engine) NewSession() (driver.Session, error) {
	return &session{engine: e, db: e.db, write: e.write}, nil
}

type session struct {
	engine *engine
	db     *pebble.DB
	write  *pebble.WriteOptions
	batch  *pebble.Batch
}

func (s *session) Put(key, value []byte) error {
	return s.db.Set(key, value, s.write)
}

func (s *session) Delete(key []byte) error {
	return s.db.Delete(key, s.write)
}

func (s *session) Get(key []byte, value *[]byte) (bool, error) {
	found, closer, err := s.db.Get(key)
	if err == pebble.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*value = append((*value)[:0], found...)
	return true, closer.Close()
}

func (s *session) DeleteRange(first, end []byte) error {
	return s.db.DeleteRange(first, end, s.write)
}

func (s *session) open() *pebble.Batch {
	if s.batch == nil {
		s.batch = s.db.NewBatch()
	}
	return s.batch
}

func (s *session) BatchPut(key, value []byte) error {
	return s.open().Set(key, value, nil)
}

func (s *session) BatchDelete(key []byte) error {
	return s.open().Delete(key, nil)
}

func (s *session) Commit() error {
	batch := s.open()
	s.batch = nil
	if err := batch.Commit(s.write); err != nil {
		return err
	}
	return batch.Close()
}

func (s *session) Close() error {
	return nil
}

func (s *session) NewCursor() (driver.Cursor, error) {
	iterator, err := s.db.NewIter(nil)
	return &cursor{Iterator: iterator}, err
}

// cursor has the names that the driver uses; the rest are the iterator's own.
type cursor struct {
	*pebble.Iterator
	problem error
}

func (c *cursor) Seek(key []byte) bool {
	return c.SeekGE(key)
}

func (c *cursor) Value() []byte {
	value, err := c.ValueAndErr()
	if err != nil {
		c.problem = err
	}
	return value
}

func (c *cursor) Close() error {
	if err := c.Iterator.Close(); err != nil {
		return err
	}
	return c.problem
}

func (s *session) NewLoader() (driver.Loader, error) {
	return &loader{engine: s.engine}, nil
}

// loader writes tables beside the database, which takes them in when all are there.
type loader struct {
	engine *engine
	writer *sstable.Writer
	size   int
	tables []string
}

func (l *loader) Put(key, value []byte) error {
	if l.writer == nil {
		path := filepath.Join(l.engine.settings.DB, fmt.Sprintf("load-%d.sst", len(l.tables)))
		file, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		options := l.engine.options.MakeWriterOptions(0, l.engine.db.TableFormat())
		l.writer = sstable.NewWriter(objstorageprovider.NewFileWritable(file), options)
		l.tables = append(l.tables, path)
	}
	if err := l.writer.Set(key, value); err != nil {
		return err
	}
	l.size += len(key) + len(value)
	if l.size >= loadTable {
		return l.endTable()
	}
	return nil
}

func (l *loader) endTable() error {
	if l.writer == nil {
		return nil
	}
	err := l.writer.Close()
	l.writer, l.size = nil, 0
	return err
}

func (l *loader) Finish() error {
	if err := l.endTable(); err != nil || len(l.tables) == 0 {
		return err
	}
	return l.engine.db.Ingest(context.Background(), l.tables)
}

// quietLogger leaves out what is for information only.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any) {}

func (quietLogger) Errorf(format string, arguments ...any) {
	log.Printf(format, arguments...)
}

func (quietLogger) Fatalf(format string, arguments ...any) {
	log.Fatalf(format, arguments...)
}
