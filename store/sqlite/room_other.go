//go:build !linux

package sqlite

// freeBytes is implemented only on Linux.
func freeBytes(string) (uint64, bool) { return 0, false }
