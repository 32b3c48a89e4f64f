// Package postgres keeps everything in PostgreSQL (13 or newer). Any number of replicas can
// share requests, deadlines and deliveries through row locks.
//
// Connections may go through a pooler that lends them for single transactions (PgBouncer in
// transaction mode). So nothing depends on the state of a connection: every transaction
// sets what it needs (engine.go), and statements are not prepared if there is a pooler.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/internal/sqlstore"
)

// Options configure the store. Zero fields have the defaults named here.
type Options struct {
	Now   func() time.Time // the clock; default time.Now
	Poll  time.Duration    // how often to poll for changes by other replicas while there are waiters; default 250ms
	Conns int              // maximal number of connections; default 16
	Trust store.Trust      // the key that authenticates rows, and the watermark
}

// writers is how many groups of updates run at once. More writers would make smaller groups
// and more commits.
const writers = 3

// Open connects to a database, postgres://user@host/name, and brings it up to date. It
// detects a pooler; `pool=transaction` in the query declares one. Errors never contain the
// password.
func Open(ctx context.Context, url string, o Options) (store.Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w, expected postgres://user:password@host:port/name", err)
	}

	cfg.MaxConns = 16
	if o.Conns > 0 {
		cfg.MaxConns = int32(max(o.Conns, writers+1))
	}
	if err := suit(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w: %w", store.ErrUnavailable, err)
	}
	e := &engine{pool}
	if err := e.hold(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database: %w", err), e.Close())
	}
	s, err := sqlstore.New(ctx, e, sqlstore.Options{Now: o.Now, Poll: o.Poll, Trust: o.Trust})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

// The parameter of the URL that declares a pooler, and its only value.
const (
	poolParameter   = "pool"
	poolTransaction = "transaction"
)

// suit adapts a configuration to a direct connection or a pooler.
func suit(ctx context.Context, cfg *pgxpool.Config) error {
	conn := cfg.ConnConfig
	pooler := conn.RuntimeParams[poolParameter]
	if pooler != "" && pooler != poolTransaction {
		return fmt.Errorf(
			"%s=%s in the URL, expected %s=%s, or nothing",
			poolParameter,
			pooler,
			poolParameter,
			poolTransaction,
		)
	}

	delete(conn.RuntimeParams, poolParameter)
	// the only startup parameter that all poolers accept
	conn.RuntimeParams["application_name"] = "assent"
	lent := pooler != ""
	if !lent {
		var err error
		if lent, err = behindPooler(ctx, conn); err != nil {
			return err
		}
	}

	switch {
	case lent && conn.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement:
		// A statement would be prepared in one connection and executed
		// in another.
		conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	case !lent:
		cfg.AfterConnect = refusePooler
	}

	return nil
}

// behindPooler reports whether the server process has another id than the one in the
// connection's startup answer: a pooler sends a number of its own there.
func behindPooler(ctx context.Context, cfg *pgx.ConnConfig) (lent bool, err error) {
	plain := cfg.Copy()
	plain.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, plain)
	if err != nil {
		return false, fmt.Errorf("%w: %w%s", store.ErrUnavailable, err, poolerHint(err))
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	lent, err = otherProcess(ctx, conn)
	if err != nil {
		return false, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return lent, nil
}

func otherProcess(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var process uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&process); err != nil {
		return false, err
	}
	return process != conn.PgConn().PID(), nil
}

// errPoolerSince means that statements can no longer stay prepared.
var errPoolerSince = errors.New(
	"a pooler stands between since the start: restart, or say pool=transaction in the URL",
)

// refusePooler returns an error for a connection through a pooler if there was none at the
// start.
func refusePooler(ctx context.Context, conn *pgx.Conn) error {
	lent, err := otherProcess(ctx, conn)
	if err == nil && lent {
		return errPoolerSince
	}
	return err
}

// poolerHint returns what to do about parameters of the URL that a pooler doesn't accept.
func poolerHint(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "08P01" &&
		strings.Contains(e.Message, "startup parameter") {
		return " (a pooler takes no such parameter in the URL: set it with ALTER ROLE, or let the pooler ignore it)"
	}
	return ""
}

// hangs makes the server end the transaction of a replica that is idle for 5 seconds while
// it may seal, because all others wait for that lock.
const hangs = "set_config('idle_in_transaction_session_timeout', '5s', true)"

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Types: map[string]string{
			"text": `TEXT COLLATE "C"`, "int": "BIGINT", "blob": "BYTEA", "strict": "", "compact": "",
			// Documents of up to a page are not compressed, because every change would
			// compress them again.
			"documents": "WITH (toast_tuple_target = 8160)",
			"serial":    "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "serial_once": "BIGINT GENERATED BY " +
				"DEFAULT AS IDENTITY PRIMARY KEY",
		},
		Lock:       " FOR UPDATE",
		SkipLocked: " FOR UPDATE SKIP LOCKED",
		Find:       "strpos",
		WaitFor:    "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
		TryLock:    "pg_try_advisory_xact_lock(hashtextextended($1, 0))",
		Patience:   "SELECT pg_advisory_xact_lock(742, hashtext(current_schema() || ' wait'))",
		HasTable:   "to_regclass($1) IS NOT NULL",
		Migrate:    "SELECT pg_advisory_xact_lock(742, hashtext(current_schema() || ' migrate'))",
		KeyShare:   "SELECT pg_advisory_xact_lock_shared(742, hashtext(current_schema() || ' key'))",
		KeyAlone:   "SELECT pg_advisory_xact_lock(742, hashtext(current_schema() || ' key'))",
		Number: `UPDATE entries SET idx = n.idx, code = n.code FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS n(seq, idx, code)
WHERE entries.seq = n.seq AND entries.idx IS NULL`,
		SealLock: "pg_try_advisory_xact_lock(742, hashtext(current_schema() || ' seal')) AND " + hangs + " <> ''",
		SealWait: "SELECT pg_advisory_xact_lock(742, hashtext(current_schema() || ' seal')), " + hangs,
		Sequence: "SELECT setval(pg_get_serial_sequence('{{table}}', '{{column}}'), coalesce((SELECT " +
			"max({{column}}) FROM {{table}}), 0) + 1, false)",
		Clock:   "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		Writers: writers,
	}
}

// class returns the class of a failure.
func class(err error) sqlstore.Class {
	if errors.Is(err, sqlstore.ErrMoved) {
		return sqlstore.Conflict
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return sqlstore.Lost
	case e.Code == "40001", e.Code == "40P01", e.Code == "23505", e.Code == "55P03":
		// serialization, deadlock, unique, lock not available
		return sqlstore.Conflict
	case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "57P"), e.Code == "25P03":
		// connection, shutdown, idle for too long
		return sqlstore.Lost
	}

	return sqlstore.Broken
}
