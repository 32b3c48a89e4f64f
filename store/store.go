// Package store defines what assent keeps in addition to requests: the sealed ledger,
// tokens, short-lived values, records of other packages, and deliveries. Packages sqlite
// and postgres implement it; both must pass the tests of package storetest.
package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
)

// Errors of a store, in addition to approval.ErrNotFound.
var (
	// ErrUnavailable: the database can't be reached, read or written, or is full. Nothing
	// was written in part. The caller must not go on (503).
	ErrUnavailable = errors.New("the store is not available")
	// ErrNameTaken: another live token of the tenant has the name. Names must be unique
	// because they identify the caller.
	ErrNameTaken = errors.New("another live token has this name")
	// ErrSchema: the database was not made by a version of assent that this one can
	// upgrade.
	ErrSchema = errors.New("the database is not as this version of assent expects it")
	// ErrBackup: the input is not a complete, unchanged backup of this version, or the
	// store is not empty.
	ErrBackup = errors.New("can't restore")
)

// Store keeps all data of assent.
type Store interface {
	approval.Store
	Ledger
	Tokens
	Values
	Records
	Outbox

	// Ping returns an error if the store can't be written to.
	Ping(ctx context.Context) error
	// ClockAhead returns how far the clock of this process is ahead of the database's,
	// within the precision of one query. It returns 0 for a database that is part of this
	// process.
	ClockAhead(ctx context.Context) (time.Duration, error)
	// Index updates the lookup tables of lists for restored requests. Until then lists find
	// those requests more slowly. It works in small steps, while the store is in use.
	Index(ctx context.Context) error
	// Tenants lists the tenants that have any ledger entry.
	Tenants(ctx context.Context) ([]string, error)
	// Backup writes one consistent state of everything, in a form that any engine restores.
	// A backup contains all data of the store: protect it like the store.
	Backup(ctx context.Context, w io.Writer) error
	// Restore fills an empty store from a backup in one transaction. A store that is bound
	// to a key accepts only rows that were signed with it. The store is unfinished then:
	// the caller must void what must not survive a restore, and then call FinishRestore.
	Restore(ctx context.Context, r io.Reader) error
	// RestoreInPlace marks a store as restored that was put back as a whole, for example
	// from a snapshot of its volume.
	RestoreInPlace(ctx context.Context) error
	FinishRestore(ctx context.Context) error
	// Identity returns what the store is bound to.
	Identity(ctx context.Context) (Identity, error)
	// Rotate binds the store to another key in one transaction: the last entry of each log
	// names the new key, and its checkpoint is signed by both keys.
	Rotate(ctx context.Context, r Rotation) error
	// Namespaces lists the namespaces that hold records and whose names begin
	// with prefix.
	Namespaces(ctx context.Context, prefix string) ([]string, error)
	// Verify compares every log with the watermark. Call it before anything is answered.
	// The error is a *TamperedError if something does not match.
	Verify(ctx context.Context) error
	// Distrust stops a tenant because something outside of the store shows that its log was
	// changed. Nothing is signed or run for it until the store is opened again.
	Distrust(tenant, problem string)
	// Integrity returns the findings of this process since it opened the store.
	Integrity() Integrity
	Close() error
}

// Ledger is the log of a tenant. Entries are appended by approval.Tx.Append, in the
// transaction that they describe. Sealing gives each of them its index in the tree, in
// batches, and signs the new checkpoint. Readers see only sealed entries, so an index never
// changes and no entry appears before entries that a reader has seen.
type Ledger interface {
	// Seal adds up to limit entries to the trees of their tenants, some of each tenant in
	// turn, signs the checkpoints, and returns how many it sealed. One replica seals at a
	// time; a call on another one returns 0 at once.
	Seal(ctx context.Context, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (int, error)
	// SealTenant returns once every entry of the tenant that was
	// committed before the call is sealed, by this call or by another
	// replica. It seals other entries too, as Seal does, and returns how
	// many it sealed.
	SealTenant(ctx context.Context, tenant string, sign func(ledger.Checkpoint) ([]byte, error)) (int, error)
	// Leaves lists sealed entries from an index on, without their openings.
	Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	// Entries lists up to limit sealed entries from an index on. It returns fewer if
	// openings are large, but at least one if there is any.
	Entries(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	// History lists the sealed entries about one subject from an index on, oldest first. It
	// returns up to limit entries, and fewer as in Entries.
	History(ctx context.Context, tenant, subject string, from int64, limit int) ([]ledger.SealedEntry, error)
	// Checkpoint returns the size and the signed checkpoint of the tenant's tree, or 0 and
	// nil before the first checkpoint.
	Checkpoint(ctx context.Context, tenant string) (int64, []byte, error)
	// Handovers lists the checkpoints of the tenant's log that were signed by two keys,
	// when the second one replaced the first; oldest first.
	Handovers(ctx context.Context, tenant string) ([][]byte, error)
	// Hashes reads stored hashes of the tenant's tree.
	Hashes(ctx context.Context, tenant string) ledger.HashReader
	// Prune redacts what people wrote and what calls carried: it deletes the bodies of
	// requests that closed before a time, and the openings of entries from before it,
	// except of entries about requests that are open or closed later, and about grants that
	// may still be used. Leaves and hashes stay, so the ledger still verifies. It returns
	// how many requests and entries it redacted.
	Prune(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error)
	// Prunable returns how many requests and entries Prune would redact.
	Prunable(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error)
}

// Tokens stores the credentials of runtimes. It keeps only hashes of the secrets.
type Tokens interface {
	// PutToken inserts or replaces a token. It returns ErrNameTaken if another live token
	// of the tenant has its name.
	PutToken(ctx context.Context, t Token) error
	// TokenByHash returns a token in any state, or approval.ErrNotFound.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// LiveToken returns the token of a name if it is neither revoked nor expired at now,
	// and approval.ErrNotFound otherwise.
	LiveToken(ctx context.Context, tenant, name string, now time.Time) (Token, error)
	Tokens(ctx context.Context, tenant string) ([]Token, error)
	// RevokeToken returns approval.ErrNotFound if there is no such token.
	RevokeToken(ctx context.Context, tenant, id string, at time.Time) error
	// EndToken revokes a token if it exists and was not revoked. ended reports whether it
	// did.
	EndToken(ctx context.Context, tenant, id string, at time.Time) (ended bool, err error)
}

// Token is a credential of a runtime, or of a person's command line.
type Token struct {
	ID      string     `json:"id"`
	Tenant  string     `json:"tenant"`
	Name    string     `json:"name"`
	Hash    string     `json:"-"`                // hex SHA-256 of the secret
	Scopes  []string   `json:"scopes"`           // see docs/contracts/http.md
	Agents  []string   `json:"agents,omitempty"` // if not empty, the only agents that it may act for
	Person  string     `json:"person,omitempty"` // whose votes it may give; empty if it may give none
	Maker   string     `json:"maker,omitempty"`  // id of the token that created it, with which it ends; may be empty
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// Values stores small values that expire: sessions (by hash), sign-in states, one-time
// links, the groups from a sign-in.
type Values interface {
	SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error
	// Value returns approval.ErrNotFound if the value is missing or expired at now.
	Value(ctx context.Context, bucket, key string, now time.Time) ([]byte, error)
	// TakeValue returns a value and deletes it in one step, so only one caller gets it.
	TakeValue(ctx context.Context, bucket, key string, now time.Time) ([]byte, error)
	DeleteValue(ctx context.Context, bucket, key string) error
	ListValues(ctx context.Context, bucket string, now time.Time) (map[string][]byte, error)
	// SweepValues deletes values that expired before now, past calls that no rule counts any
	// more, and deliveries that arrived more than 7 days before now, in small steps.
	SweepValues(ctx context.Context, now time.Time) error
}

// Outbox holds deliveries until 7 days after they arrived (Values.SweepValues).
type Outbox interface {
	// Claim leases up to limit due deliveries of the named targets to owner until
	// now+lease. A delivery whose lease ran out is claimed again.
	Claim(
		ctx context.Context,
		owner string,
		targets []string,
		now time.Time,
		lease time.Duration,
		limit int,
	) ([]Job, error)
	// Delivered, Retry and Bury end a claim. They change nothing if the lease passed to
	// another owner.
	Delivered(ctx context.Context, owner string, id int64, now time.Time) error
	Retry(ctx context.Context, owner string, id int64, problem string, at time.Time) error
	Bury(ctx context.Context, owner string, id int64, problem string, now time.Time) error
	// Jobs lists deliveries of a tenant, newest first.
	Jobs(ctx context.Context, tenant string, state JobState, limit int) ([]Job, error)
	// Redeliver makes a dead delivery due again and resets its number of attempts, so that
	// it is tried as often as the first time.
	Redeliver(ctx context.Context, tenant string, id int64, now time.Time) error
}

// JobState is the state of a delivery.
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
