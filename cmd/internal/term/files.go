package term

import (
	"fmt"
	"io"
	"os"
)

// Exists checks that a file exists, so that a clear error comes first.
func Exists(path string) error {
	_, err := os.Stat(path)
	return err
}

// maxFile limits one file in bytes: larger than any real agent, and small enough to read 100 of
// them at once.
const maxFile = 4 << 20

// ReadFile reads one input. It stops one byte after the limit, which is enough to refuse the file.
func ReadFile(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxFile+1))
	}
	info, err := os.Stat(path) // before it is opened: a named pipe without a writer would hold us there
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
