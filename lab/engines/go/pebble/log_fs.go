package main

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is a file system whose syncs of the write-ahead log do nothing while unsynced is set.
// Tables and the manifest are synced as ever, so that a crash of the machine costs the last writes
// and nothing else.
type logFS struct {
	vfs.FS
	unsynced atomic.Bool
}

func (fs *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := fs.FS.Create(name, category)
	return fs.wrap(name, file, err)
}

func (fs *logFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := fs.FS.ReuseForWrite(old, name, category)
	return fs.wrap(name, file, err)
}

func (fs *logFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &logFile{File: file, unsynced: &fs.unsynced}, nil
}

type logFile struct {
	vfs.File
	unsynced *atomic.Bool
}

func (f *logFile) Sync() error {
	if f.unsynced.Load() {
		return nil
	}
	return f.File.Sync()
}

func (f *logFile) SyncData() error {
	if f.unsynced.Load() {
		return nil
	}
	return f.File.SyncData()
}

func (f *logFile) SyncTo(length int64) (bool, error) {
	if f.unsynced.Load() {
		return false, nil
	}
	return f.File.SyncTo(length)
}
