package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/assent-dev/assent/store/sqlite"
)

// TestManyOpenANewDatabaseAtOnce: each of them waits for the others,
// also while the journal is switched, for which SQLite itself doesn't
// wait.
func TestManyOpenANewDatabaseAtOnce(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "new.db")
		start := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				<-start
				s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}

		close(start)
		all.Wait()
	}
}
