package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
	"github.com/assent-dev/assent/store/storetest"
)

func database(t *testing.T) func() (store.Store, error) {
	path := filepath.Join(t.TempDir(), "a ?#%.db")
	return func() (store.Store, error) {
		return sqlite.Open(t.Context(), path, sqlite.Options{Poll: 20 * time.Millisecond})
	}
}

func TestStore(t *testing.T) { storetest.Run(t, database) }
