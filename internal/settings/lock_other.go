//go:build !unix

package settings

import "os"

// lock does nothing, because directories can't be locked here. The file is still compared
// before it is replaced, which leaves a short race.
func lock(*os.File) error { return nil }
