package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The file that says whose a directory is: only one that holds it is emptied.
const mark = "LAB-BENCHMARK"

const markWords = "A benchmark's database. Everything in this directory is removed when the next " +
	"benchmark begins.\n"

// createDirectory creates a directory if it is missing, and marks it as ours if it is empty.
func createDirectory(path string) error {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) > 0 {
		return err
	}
	return os.WriteFile(filepath.Join(path, mark), []byte(markWords), 0o666)
}

// emptyDirectory removes all but the mark; fails if what is there may belong to another program.
func emptyDirectory(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(path, mark)); err != nil {
		return fmt.Errorf("%s was not made by a benchmark (there is no %s in it), so it is not emptied",
			path, mark)
	}
	for _, entry := range entries {
		if entry.Name() == mark {
			continue
		}
		if err := os.RemoveAll(filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
