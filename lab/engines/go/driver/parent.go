package driver

import (
	"os"
	"strconv"
	"syscall"
)

// A program that the harness has started ends when the harness is gone, however that ended. The
// harness names itself in LAB_PARENT; a program that is started by hand lives on. This runs on the
// main thread, which lasts as long as the process: the kernel drops the request with its thread.
func init() {
	parent, ok := os.LookupEnv("LAB_PARENT")
	if !ok {
		return
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG,
		uintptr(syscall.SIGKILL), 0)
	// It may have ended before that.
	if errno != 0 || strconv.Itoa(os.Getppid()) != parent {
		os.Exit(3)
	}
}
