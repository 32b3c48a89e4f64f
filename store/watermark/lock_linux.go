package watermark

import (
	"os"
	"syscall"
)

// lock takes the lock of a file until the file is closed, or the process
// ends. It returns false if another process has it.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

// syncData writes what the file holds to the disk, and about the file only
// what it takes to read it again.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
