// A sorted list in memory with a lock, kept in a file while it is closed: what the driver does is
// tested on it. It has no engine.toml, so that it is in no report.
package main

import (
	"encoding/gob"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lab/driver"
)

func main() {
	driver.Main(describe, func(settings *driver.Settings) driver.Engine {
		return &engine{path: filepath.Join(settings.DB, "entries")}
	})
}

func describe(*driver.Settings) driver.Description {
	return driver.Description{
		Engine:       "reference",
		Title:        "a sorted list",
		Version:      "1",
		Variants:     []driver.Variant{{Name: "", Title: "a sorted list"}},
		Asynchronous: "nothing: everything is in memory",
		Synchronous:  "nothing: everything is in memory",
		Settings:     "none of the settings has a meaning",
	}
}

// Fields have large names for the sake of gob.
type entry struct {
	Key   string
	Value []byte
}

type engine struct {
	path    string
	mutex   sync.RWMutex
	entries []entry
}

func (e *engine) Open(driver.Use) error {
	e.entries = nil
	file, err := os.Open(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return gob.NewDecoder(file).Decode(&e.entries)
}

func (e *engine) Close() error {
	file, err := os.Create(e.path)
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(file).Encode(e.entries), file.Close())
}

func (e *engine) Adapt(driver.Use) error              { return nil }
func (e *engine) Compact() error                      { return nil }
func (e *engine) WaitCompact() (time.Duration, error) { return 0, nil }

func (e *engine) NewSession() (driver.Session, error) {
	return &session{engine: e}, nil
}

func (e *engine) find(key string) (int, bool) {
	return slices.BinarySearchFunc(e.entries, key, func(e entry, key string) int {
		return strings.Compare(e.Key, key)
	})
}

type session struct {
	engine *engine
	batch  []func(*engine)
}

func (s *session) BatchPut(key, value []byte) error {
	added := entry{string(key), slices.Clone(value)}
	s.batch = append(s.batch, func(e *engine) {
		if at, found := e.find(added.Key); found {
			e.entries[at] = added
		} else {
			e.entries = slices.Insert(e.entries, at, added)
		}
	})
	return nil
}

func (s *session) BatchDelete(key []byte) error {
	removed := string(key)
	s.batch = append(s.batch, func(e *engine) {
		if at, found := e.find(removed); found {
			e.entries = slices.Delete(e.entries, at, at+1)
		}
	})
	return nil
}

func (s *session) Commit() error {
	s.engine.mutex.Lock()
	defer s.engine.mutex.Unlock()
	for _, change := range s.batch {
		change(s.engine)
	}
	s.batch = s.batch[:0]
	return nil
}

func (s *session) Put(key, value []byte) error {
	return errors.Join(s.BatchPut(key, value), s.Commit())
}

func (s *session) Delete(key []byte) error {
	return errors.Join(s.BatchDelete(key), s.Commit())
}

func (s *session) Get(key []byte, value *[]byte) (bool, error) {
	s.engine.mutex.RLock()
	defer s.engine.mutex.RUnlock()
	at, found := s.engine.find(string(key))
	if found {
		*value = append((*value)[:0], s.engine.entries[at].Value...)
	}
	return found, nil
}

func (s *session) Close() error { return nil }

func (s *session) NewCursor() (driver.Cursor, error) {
	return &cursor{engine: s.engine}, nil
}

// cursor keeps the entry where it stands, and looks for the next one from its key.
type cursor struct {
	engine *engine
	entry  entry
}

// to goes to the entry whose place choose returns.
func (c *cursor) to(choose func(e *engine) int) bool {
	c.engine.mutex.RLock()
	defer c.engine.mutex.RUnlock()
	at := choose(c.engine)
	if at < 0 || at >= len(c.engine.entries) {
		return false
	}
	c.entry = c.engine.entries[at]
	return true
}

func (c *cursor) First() bool {
	return c.to(func(*engine) int { return 0 })
}

func (c *cursor) Last() bool {
	return c.to(func(e *engine) int { return len(e.entries) - 1 })
}

func (c *cursor) Seek(key []byte) bool {
	return c.to(func(e *engine) int {
		at, _ := e.find(string(key))
		return at
	})
}

func (c *cursor) Next() bool {
	return c.to(func(e *engine) int {
		at, found := e.find(c.entry.Key)
		if found {
			at++
		}
		return at
	})
}

func (c *cursor) Prev() bool {
	return c.to(func(e *engine) int {
		at, _ := e.find(c.entry.Key)
		return at - 1
	})
}

func (c *cursor) Key() []byte   { return []byte(c.entry.Key) }
func (c *cursor) Value() []byte { return c.entry.Value }
func (c *cursor) Close() error  { return nil }

func (s *session) NewLoader() (driver.Loader, error) {
	return &loader{s}, nil
}

type loader struct {
	session *session
}

func (l *loader) Put(key, value []byte) error {
	return l.session.BatchPut(key, value)
}

func (l *loader) Finish() error {
	return l.session.Commit()
}
