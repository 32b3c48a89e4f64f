//go:build !unix

package keyfile

import "io/fs"

func ownedByRoot(fs.FileInfo) bool { return false }
