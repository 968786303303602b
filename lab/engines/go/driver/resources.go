package driver

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuSeconds returns user and system time of the whole process.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// WaitUntilQuiet is for an engine that cannot be asked whether it is busy: it is not when its
// process no longer uses the processor. It returns the time since it was last seen to use it.
func WaitUntilQuiet() time.Duration {
	busy := time.Now()
	for idle := 0; idle < 3; {
		before := cpuSeconds()
		time.Sleep(100 * time.Millisecond)
		if cpuSeconds()-before < 0.002 {
			idle++
		} else {
			idle, busy = 0, time.Now()
		}
	}
	return time.Since(busy)
}

// numberIn returns the number that follows a name on a line of a file under /proc; 0 if there is
// none.
func numberIn(path, name string) uint64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				number, _ := strconv.ParseUint(fields[0], 10, 64)
				return number
			}
		}
	}
	return 0
}

// bytesRead are those that the storage device had to read, for calls as for faults in mapped files.
func bytesRead() uint64 {
	return numberIn("/proc/self/io", "read_bytes")
}

// deviceRequests are requests to the storage device, and bytes written to it, by the process's
// control group.
type deviceRequests struct {
	reads, writes, bytesWritten uint64
}

// deviceRequestsNow returns nil unless LAB_IO_STAT names the group's io.stat, which has a line for
// each device: "259:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6". A stacked device and the
// one below it count the same requests, so that the greatest number counts.
func deviceRequestsNow() *deviceRequests {
	text, err := os.ReadFile(os.Getenv("LAB_IO_STAT"))
	if err != nil {
		return nil
	}
	most := func(name string) (most uint64) {
		for _, word := range strings.Fields(string(text)) {
			if rest, ok := strings.CutPrefix(word, name); ok {
				number, _ := strconv.ParseUint(rest, 10, 64)
				most = max(most, number)
			}
		}
		return most
	}
	return &deviceRequests{most("rios="), most("wios="), most("wbytes=")}
}

func (d *deviceRequests) since(start *deviceRequests) *deviceRequests {
	if d == nil || start == nil {
		return nil
	}
	return &deviceRequests{d.reads - start.reads, d.writes - start.writes,
		d.bytesWritten - start.bytesWritten}
}

// bytesWritten are those written to files: what reached the page cache, not what the device wrote.
type bytesWritten struct {
	byCalls, toStorage uint64
}

func bytesWrittenNow() bytesWritten {
	const io = "/proc/self/io"
	return bytesWritten{byCalls: numberIn(io, "wchar"), toStorage: numberIn(io, "write_bytes")}
}

func (b bytesWritten) since(start bytesWritten) uint64 {
	return max(b.byCalls-start.byCalls, b.toStorage-start.toStorage)
}

// forEachFile calls visit for the regular files of a directory. Files come and go while an engine
// works, so errors are passed over.
func forEachFile(directory string, visit func(path string, info *syscall.Stat_t)) {
	_ = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		var info syscall.Stat_t
		if syscall.Stat(path, &info) == nil {
			visit(path, &info)
		}
		return nil
	})
}

// diskBytes returns the disk space of a directory's files.
func diskBytes(directory string) uint64 {
	blocks := int64(0)
	forEachFile(directory, func(_ string, info *syscall.Stat_t) { blocks += info.Blocks })
	return uint64(blocks) * 512
}

// posixFadvDontneed is the advice of that name.
const posixFadvDontneed = 4

// dropPages throws the files of a directory out of the page cache.
func dropPages(directory string) error {
	syscall.Sync()
	var problem error
	forEachFile(directory, func(path string, _ *syscall.Stat_t) {
		file, err := os.Open(path)
		if err != nil {
			problem = err
			return
		}
		defer file.Close()
		_, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, posixFadvDontneed, 0, 0)
		if errno != 0 {
			problem = fmt.Errorf("posix_fadvise %s: %w", path, errno)
		}
	})
	return problem
}

// resetPeakMemory sets the peak of the process's memory back to what it uses now.
func resetPeakMemory() {
	// Some kernels lack the file; the peak is then that of the whole process.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

func peakMemoryBytes() uint64 {
	return numberIn("/proc/self/status", "VmHWM") * 1024
}
