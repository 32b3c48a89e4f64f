package sqlite

import "syscall"

// freeBytes returns how many bytes of the disk are free for users other than root.
func freeBytes(path string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
