//go:build !linux

package sqlite

// freeBytes is only known on Linux.
func freeBytes(string) (uint64, bool) { return 0, false }
