//go:build unix

package keyfile

import (
	"io/fs"
	"syscall"
)

// ownedByRoot reports whether only root can change the mode of a file.
func ownedByRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}
