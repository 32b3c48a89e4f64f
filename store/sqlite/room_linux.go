package sqlite

import "syscall"

// freeBytes returns how many bytes the disk has left for who is not root.
func freeBytes(path string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
