package postgres_test

import (
	"os"
	"testing"
	"time"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/postgres/pgtest"
	"github.com/assent-dev/assent/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func database(t *testing.T) func() (store.Store, error) {
	url := pgtest.New(t)
	return func() (store.Store, error) {
		return postgres.Open(t.Context(), url, postgres.Options{Poll: 20 * time.Millisecond, Conns: 6})
	}
}

func TestStore(t *testing.T) { storetest.Run(t, database) }
