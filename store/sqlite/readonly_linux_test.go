package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store/sqlite"
)

// TestReadOnly opens a read-only file as a user who is not root.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	s := must.Get(open(t, path)())(t)
	must.Do(t, s.Close())
	for folder := dir; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
		must.Do(t, os.Chmod(folder, 0o755))
	}
	must.Do(t, os.Chmod(path, 0o444))
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, and its user with it
		if os.Getuid() == 0 {
			_ = syscall.Setfsuid(65534)
		}
		_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		result <- err
	}()
	unavailable(t, <-result, "permission denied")
}
