package watermark

import (
	"os"
	"syscall"
)

// lock takes the lock of a file until the file is closed, or the process
// ends. It returns false if another process has it.
func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

// syncData writes the content of the file to the disk, and only the metadata that is needed
// to read it.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
