//go:build bars

package asking

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/postgres"
	"github.com/assent-dev/assent/store/postgres/pgtest"
	"github.com/assent-dev/assent/store/sqlite"
	"github.com/assent-dev/assent/store/watermark"
)

// engine opens a new store and returns the floor on the same database with the same durability:
// a row of the size of a small entry, in one commit.
type engine struct {
	name string
	open func(t *testing.T) (store.Store, func(context.Context) error)
}

func engines() []engine { return []engine{{"sqlite", openSQLite}, {"postgres", openPostgres}} }

const payload = `{"actor":"bench","facts":{"agent":"clerk","state":"pending","target":"tool ` +
	`transfer"},"sealed":{},"subject":"apr_0","tenant":"default","time":"2026-11-21T12:00:00.000000Z",` +
	`"type":"request_opened","v":1}`

// signs controls whether the next store that is opened gets a key and a watermark. With them, it
// seals an action that uses up or withdraws an approval before it answers.
var signs = true

// trust returns the trust settings of a service: a key and its watermark.
func trust(t *testing.T) store.Trust {
	signer, secret, err := ledger.GenerateKey("bench.example", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w, err := watermark.Open(
		filepath.Join(t.TempDir(), "key.watermark"),
		"bench",
		func(err error) { t.Error(err) },
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	sum := sha256.Sum256([]byte(secret))
	key := store.Key{Public: signer.PublicKey(), Secret: sum[:]}
	if signs {
		key.Sign = signer.Sign
	}
	return store.Trust{Key: key, Watermark: w}
}

func openSQLite(t *testing.T) (store.Store, func(context.Context) error) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "assent.db"), sqlite.Options{Trust: trust(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "floor.db")+"?"+q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE floor (id INTEGER PRIMARY KEY, body TEXT) STRICT"); err != nil {
		t.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO floor (body) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	return s, func(ctx context.Context) error {
		_, err := insert.ExecContext(ctx, payload)
		return err
	}
}

func openPostgres(t *testing.T) (store.Store, func(context.Context) error) {
	where := pgtest.New(t)
	s, err := postgres.Open(t.Context(), where, postgres.Options{Trust: trust(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	pool, err := pgxpool.New(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(
		t.Context(),
		"CREATE TABLE floor (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT)",
	); err != nil {
		t.Fatal(err)
	}

	return s, func(ctx context.Context) error {
		_, err := pool.Exec(ctx, "INSERT INTO floor (body) VALUES ($1)", payload)
		return err
	}
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // as in assent serve
	os.Exit(pgtest.Main(m))
}
