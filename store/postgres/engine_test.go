package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store/internal/sqlstore"
	"github.com/assent-dev/assent/store/postgres/pgtest"
)

// suited returns the engine that Open would make.
func suited(t *testing.T, url string) (*engine, *pgxpool.Config) {
	t.Helper()
	cfg := must.Get(pgxpool.ParseConfig(url))(t)
	must.Do(t, suit(t.Context(), cfg))
	pool := must.Get(pgxpool.NewWithConfig(t.Context(), cfg))(t)
	t.Cleanup(pool.Close)
	return &engine{pool}, cfg
}

// TestTransactionsCarryWhatTheyRestOn checks that, whatever the session's defaults are, a
// transaction that writes is durable and has a lock timeout, and that none of these
// settings stays in the connection, which a pooler may lend to another client.
func TestTransactionsCarryWhatTheyRestOn(t *testing.T) {
	ctx := t.Context()
	loose := "&synchronous_commit=off&lock_timeout=0&idle_in_transaction_session_timeout=0&default_transaction_isolation=serializable"
	e, _ := suited(t, pgtest.New(t)+loose)
	want := map[string]string{
		"synchronous_commit":                  "on",
		"lock_timeout":                        "20s",
		"idle_in_transaction_session_timeout": "1min",
		"transaction_isolation":               "read committed",
	}
	for name, begin := range map[string]func() (sqlstore.Tx, error){
		"write":    func() (sqlstore.Tx, error) { return e.Begin(ctx) },
		"snapshot": func() (sqlstore.Tx, error) { return e.Snapshot(ctx) },
	} {
		x := must.Get(begin())(t)
		if want["transaction_isolation"] = "read committed"; name == "snapshot" {
			want["transaction_isolation"] = "repeatable read"
		}
		for setting, value := range want {
			if got, err := x.(*tx).show(ctx, setting); err != nil || got != value {
				t.Errorf("%s: %s is %q, want %q, %v", name, setting, got, value, err)
			}
		}
		if err := x.Commit(ctx); err != nil {
			t.Error(err)
		}
		x.Rollback()
	}

	var after string
	if err := e.pool.QueryRow(ctx, "SHOW synchronous_commit").Scan(&after); err != nil || after != "off" {
		t.Errorf("after the transaction the connection has synchronous_commit %q, %v", after, err)
	}
	if err := e.hold(ctx); err != nil {
		t.Error(err)
	}
}

// TestSaysNothingAtTheStartThatPoolersRefuse checks that the application name is the only
// setting that is sent when a connection begins.
func TestSaysNothingAtTheStartThatPoolersRefuse(t *testing.T) {
	_, cfg := suited(t, pgtest.New(t))
	delete(cfg.ConnConfig.RuntimeParams, "search_path") // set by the test
	conn := must.Get(pgx.ConnectConfig(t.Context(), cfg.ConnConfig))(t)
	defer conn.Close(t.Context())
	rows := must.Get(conn.Query(t.Context(), "SELECT name FROM pg_settings WHERE source = 'client'"))(t)
	set, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || slices.ContainsFunc(set, func(name string) bool {
		return name != "application_name" && name != "client_encoding"
	}) {
		t.Errorf("set by us: %v, %v", set, err)
	}
}

// TestModeOfStatements checks that statements stay prepared only on direct connections.
func TestModeOfStatements(t *testing.T) {
	url := pgtest.New(t)
	_, direct := suited(t, url)
	if direct.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement || direct.AfterConnect == nil {
		t.Error("a direct connection keeps no statements, or takes a pooler later")
	}
	_, lent := suited(t, url+"&pool=transaction")
	if lent.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeExec || lent.AfterConnect != nil {
		t.Error("a lent connection keeps statements")
	}
	cfg := must.Get(pgxpool.ParseConfig(url + "&pool=session"))(t)
	if err := suit(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "expected pool=transaction") {
		t.Errorf("got %v", err)
	}
}
