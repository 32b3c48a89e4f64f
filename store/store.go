// Package store says what assent keeps beside requests: the sealed
// ledger, tokens, short-lived values, records of edges and deliveries.
// The engines stand below it (sqlite, postgres), storetest is what both
// must pass.
package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
)

// What stops a store, beside approval.ErrNotFound.
var (
	// ErrUnavailable: the database can't be reached, read or written,
	// or is full. Nothing was half done; whoever asked must not go on
	// (503).
	ErrUnavailable = errors.New("the store is not available")
	// ErrNameTaken says that another live token of the tenant has the
	// name: a name is who asks.
	ErrNameTaken = errors.New("another live token has this name")
	// ErrSchema: the database is not one that this version of assent
	// made or can bring up to date.
	ErrSchema = errors.New("the database is not as this version of assent expects it")
	// ErrBackup: what should be restored is no whole, unchanged backup
	// of this version, or the store is not empty.
	ErrBackup = errors.New("can't restore")
)

// Store is everything that assent keeps.
type Store interface {
	approval.Store
	Ledger
	Tokens
	Values
	Records
	Outbox

	// Ping fails when the store can't be written to.
	Ping(ctx context.Context) error
	// ClockAhead returns how far the clock of this process is ahead of
	// the database's, as far as the time of the answer lets it tell;
	// 0 for a database that is part of this process.
	ClockAhead(ctx context.Context) (time.Duration, error)
	// Index brings what lists look up up to date for requests that were
	// restored, or written by a version of assent without it. Until then
	// lists find those more slowly. It works in small steps, beside
	// everything else.
	Index(ctx context.Context) error
	// Tenants lists the tenants that have any ledger entry.
	Tenants(ctx context.Context) ([]string, error)
	// Backup writes everything as one consistent state, in a form that
	// any engine restores. It holds what the store holds: guard it.
	Backup(ctx context.Context, w io.Writer) error
	// Restore fills an empty store from a backup, all or nothing. A
	// store that is bound to a key takes only what was signed with it,
	// and then is unfinished: what must not outlive a restore is to be
	// voided, and then FinishRestore called.
	Restore(ctx context.Context, r io.Reader) error
	// RestoreInPlace makes a store that was put back as a whole, as by
	// a snapshot of its volume, one that was restored.
	RestoreInPlace(ctx context.Context) error
	FinishRestore(ctx context.Context) error
	// Identity says what the store is bound to.
	Identity(ctx context.Context) (Identity, error)
	// Rotate binds the store to another key, all or nothing: the last
	// entry of each log tells of it, and its checkpoint is signed by
	// both keys.
	Rotate(ctx context.Context, r Rotation) error
	// Namespaces lists the namespaces that hold records and whose names begin
	// with prefix.
	Namespaces(ctx context.Context, prefix string) ([]string, error)
	// Verify holds every log to the watermark before anything is
	// answered. The error is a *TamperedError where something does not
	// fit.
	Verify(ctx context.Context) error
	// Distrust stops a tenant, because something outside shows that its
	// log is not what it was: nothing is signed or run for it until the
	// store is opened anew.
	Distrust(tenant, problem string)
	// Integrity says what this process found since it opened the store.
	Integrity() Integrity
	Close() error
}

// Ledger is the log of a tenant. Entries are appended by
// approval.Tx.Append, in the transaction that they tell about; sealing
// gives each of them its index in the tree, in batches, and signs the
// new checkpoint. Readers see sealed entries only, so an index never
// moves and nothing appears before what a reader has seen.
type Ledger interface {
	// Seal puts entries that are not in the tree yet into it, up to
	// limit of them, some of each tenant in turn, and signs the
	// checkpoints. One replica seals at a time; another's call returns
	// 0 at once. It returns how many were sealed.
	Seal(ctx context.Context, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (int, error)
	// SealTenant returns once every entry of the tenant that was
	// committed before the call is sealed, by this call or by another
	// replica. It seals other entries too, as Seal does, and returns how
	// many it sealed.
	SealTenant(ctx context.Context, tenant string, sign func(ledger.Checkpoint) ([]byte, error)) (int, error)
	// Leaves lists sealed entries from an index on, without their openings.
	Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	// Entries lists sealed entries from an index on: up to limit, and
	// fewer where openings are large, but one at least if there is any.
	Entries(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	// History lists the sealed entries about one subject from an index
	// on, oldest first: up to limit, and fewer as in Entries.
	History(ctx context.Context, tenant, subject string, from int64, limit int) ([]ledger.SealedEntry, error)
	// Checkpoint returns the size and the signed checkpoint of the
	// tenant's tree; size 0 and nil before the first.
	Checkpoint(ctx context.Context, tenant string) (int64, []byte, error)
	// Handovers lists the checkpoints of the tenant's log that were
	// signed by two keys, when the second took over from the first;
	// oldest first.
	Handovers(ctx context.Context, tenant string) ([][]byte, error)
	// Hashes reads stored hashes of the tenant's tree.
	Hashes(ctx context.Context, tenant string) ledger.HashReader
	// Prune redacts what people wrote and what calls carried: it drops
	// the bodies of requests that closed before a time, and the openings
	// of entries before it, except of entries about requests that are
	// open or closed later, and about grants that may still be used.
	// Leaves and hashes stay, so the ledger verifies. It returns how
	// many requests and entries it redacted.
	Prune(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error)
	// Prunable returns how many requests and entries Prune would redact.
	Prunable(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error)
}

// Tokens are the credentials of runtimes; only hashes are kept.
type Tokens interface {
	// PutToken inserts or replaces a token; ErrNameTaken while another
	// live one of the tenant has its name.
	PutToken(ctx context.Context, t Token) error
	// TokenByHash returns a token whatever its state; approval.ErrNotFound.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// LiveToken returns the token of a name that is neither revoked nor
	// has ended by now; approval.ErrNotFound.
	LiveToken(ctx context.Context, tenant, name string, now time.Time) (Token, error)
	Tokens(ctx context.Context, tenant string) ([]Token, error)
	// RevokeToken returns approval.ErrNotFound when there is none.
	RevokeToken(ctx context.Context, tenant, id string, at time.Time) error
	// EndToken revokes a token if it is there and was not; ended tells
	// whether it did.
	EndToken(ctx context.Context, tenant, id string, at time.Time) (ended bool, err error)
}

// Token is a credential of a runtime, or of a person's command line.
type Token struct {
	ID      string     `json:"id"`
	Tenant  string     `json:"tenant"`
	Name    string     `json:"name"`
	Hash    string     `json:"-"`                // hex SHA-256 of the secret
	Scopes  []string   `json:"scopes"`           // see docs/contracts/http.md
	Agents  []string   `json:"agents,omitempty"` // may act for these only; none means all
	Person  string     `json:"person,omitempty"` // whose votes it may give; "" none
	Maker   string     `json:"maker,omitempty"`  // id of the token that made it, with which it ends; "" none
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// Values are small things with an end: sessions (by hash), sign-in
// states, one-time links, the groups that a sign-in brought.
type Values interface {
	SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error
	// Value returns approval.ErrNotFound for what is missing or expired
	// at now.
	Value(ctx context.Context, bucket, key string, now time.Time) ([]byte, error)
	// TakeValue returns a value and deletes it in one step: one caller
	// gets it.
	TakeValue(ctx context.Context, bucket, key string, now time.Time) ([]byte, error)
	DeleteValue(ctx context.Context, bucket, key string) error
	ListValues(ctx context.Context, bucket string, now time.Time) (map[string][]byte, error)
	// SweepValues deletes what expired before now, and deliveries that
	// arrived more than 7 days before it, in small steps.
	SweepValues(ctx context.Context, now time.Time) error
}

// Outbox holds deliveries until they arrive, and for 7 days after that
// (Values.SweepValues).
type Outbox interface {
	// Claim leases up to limit deliveries that are due, of the named
	// targets, to owner until now+lease. A delivery whose lease ran out
	// is claimed again.
	Claim(
		ctx context.Context,
		owner string,
		targets []string,
		now time.Time,
		lease time.Duration,
		limit int,
	) ([]Job, error)
	// Delivered, Retry and Bury end a claim; they change nothing when
	// the lease passed to somebody else.
	Delivered(ctx context.Context, owner string, id int64, now time.Time) error
	Retry(ctx context.Context, owner string, id int64, problem string, at time.Time) error
	Bury(ctx context.Context, owner string, id int64, problem string, now time.Time) error
	// Jobs lists deliveries of a tenant, newest first.
	Jobs(ctx context.Context, tenant string, state JobState, limit int) ([]Job, error)
	// Redeliver makes a dead delivery due again, with its attempts
	// counted anew, so that it is tried as often as the first time.
	Redeliver(ctx context.Context, tenant string, id int64, now time.Time) error
}

// JobState is where a delivery stands.
type JobState string

// The states of a delivery.
const (
	Waiting JobState = "waiting"
	Sent    JobState = "sent"
	DeadEnd JobState = "dead"
)

// Job is one delivery with its history.
type Job struct {
	approval.Delivery
	ID      int64     `json:"id"`
	Tenant  string    `json:"tenant"`
	State   JobState  `json:"state"`
	Attempt int       `json:"attempt"` // attempts begun
	RunAt   time.Time `json:"run_at"`
	Problem string    `json:"problem,omitempty"` // of the last attempt
	Created time.Time `json:"created"`
}
