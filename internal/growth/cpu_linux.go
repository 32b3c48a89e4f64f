package growth

import (
	"syscall"
	"time"
	"unsafe"
)

// CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID of clock_gettime(2).
const (
	processClock clock = 2
	threadClock  clock = 3
)

// cpuTime returns the CPU time of this process or of this thread. Unlike wall-clock time it does not
// grow while other processes run.
func cpuTime(of clock) (time.Duration, bool) {
	var t syscall.Timespec
	_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(of), uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), failed == 0
}
