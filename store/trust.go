package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
)

// Errors of a store that can't be trusted.
var (
	// ErrTampered: something in the database was not written by a holder of the key. The
	// error is a *TamperedError.
	ErrTampered = errors.New("the database was changed by something other than this service")
	// ErrKey: the store is bound to a different key than the given one. The error is a
	// *KeyError.
	ErrKey = errors.New("the store is bound to another key")
	// ErrNotSealed: an action that spends or withdraws an approval could not be sealed in
	// the ledger and noted in the watermark, so it was not answered. It comes with
	// ErrUnavailable.
	ErrNotSealed = errors.New("what spends or takes away an approval must be sealed first, and that fails")
	// ErrUnfinished: the store was restored from a backup, but the approvals that must not
	// survive a restore have not been voided yet.
	ErrUnfinished = errors.New(
		"the restore of this store was not finished: run `assent restore --in-place` on it",
	)
)

// WatermarkError reports that the watermark, which is kept outside of the database, can't
// show what happened to a store after the state that it is restored to.
type WatermarkError struct {
	Tenant string // empty if the watermark has no entry for this store
	Size   int64  // number of entries in the tenant's restored ledger
	Known  int64  // number of entries that the watermark has recorded
}

func (e *WatermarkError) Error() string {
	if e.Tenant == "" {
		return "the watermark does not know this store, so nobody can tell what was frozen, revoked or recorded after " +
			"this state of it"
	}
	return fmt.Sprintf(
		"the watermark is older than this state of the store (tenant %q: it knows %d ledger entries of %d), so nobody "+
			"can tell what was frozen, revoked or recorded after it",
		e.Tenant, e.Known, e.Size,
	)
}

// TamperedError describes a row or log that was changed. No decision may depend on it.
type TamperedError struct {
	Tenant  string // "" when it belongs to none
	What    string // a row or a log, by its name: "request apr_1"
	Problem string // what was found and what was expected
}

func (e *TamperedError) Error() string {
	text := e.What + ": " + e.Problem
	if e.Tenant != "" {
		text = fmt.Sprintf("tenant %q: %s", e.Tenant, text)
	}
	return ErrTampered.Error() + ": " + text
}

// Is matches ErrTampered.
func (e *TamperedError) Is(target error) bool { return target == ErrTampered }

// KeyError reports the key that the store is bound to.
type KeyError struct {
	Bound string // public key; empty if the store holds data and has no key
	Given string // public key; empty if none was given
}

// Error returns a text that includes what to do.
func (e *KeyError) Error() string {
	switch {
	case e.Bound == "":
		return "the store holds data and is bound to no key, so nobody can tell who wrote it: restore a backup, or " +
			"begin with an empty database"
	case e.Given == "":
		return fmt.Sprintf("this store is signed by %s: give that key", e.Bound)
	}

	return fmt.Sprintf(
		"this store is signed by %s, and the key given is %s: mount that key, or run `assent key rotate`",
		e.Bound,
		e.Given,
	)
}

// Is matches ErrKey.
func (e *KeyError) Is(target error) bool { return target == ErrKey }

// Key is the key that a store is bound to, and authenticates its rows with.
type Key struct {
	Public string // verifier key of the ledger's signer, name+hash+base64
	Secret []byte // 32 bytes that only the service knows
	// Sign signs checkpoints. Without it the store can't seal by itself,
	// and approval.Tx.SealFirst does nothing.
	Sign func(ledger.Checkpoint) ([]byte, error)
	// Check returns an error if Public does not belong to the secret key. It is called before an
	// empty store is bound to the key. It may be nil.
	Check func() error
}

// Rotation is a change of keys.
type Rotation struct {
	Key  Key                                     // the next one
	Sign func(ledger.Checkpoint) ([]byte, error) // with both keys: see ledger.Both
	// Reseal is called for each record, whose value may be encrypted with a secret of the
	// old key. It returns the value for the new key. If it is nil, values don't change.
	Reseal func(room, key string, value []byte) ([]byte, error)
}

// Trust configures how a store distinguishes its own rows from those of other writers to
// the database. With the zero Trust nothing is authenticated; a store that is bound to a
// key returns an error for it.
type Trust struct {
	Key       Key
	Watermark Watermark            // the memory outside of the database; may be nil
	Alarm     func(*TamperedError) // called for every inconsistency, each time it is found; may be nil
	// Recent is how long the version of a request, a grant or a freeze is remembered after
	// it was written, so that an older version is detected even if the ledger's entries
	// about it are gone. It must not be shorter than the life of permits. 0 means 30
	// minutes.
	Recent time.Duration
	// Unfinished opens a store whose restore was not finished, in order to finish it.
	Unfinished bool
}

// Watermark is a memory that a writer to the database can't reach: the size of each log,
// the freezes and the revoked tokens. Stores are identified by Identity.ID. Implementations
// must be safe for concurrent use.
type Watermark interface {
	// Marks returns the known marks of a store, by tenant.
	Marks(store string) map[string]Mark
	// Knows reports whether the watermark has marks of a store.
	Knows(store string) bool
	// Advance notes the size of a log, or its freezes. It may be written later, and never
	// goes back: of two marks the one with the greater size counts, and of two lists of
	// freezes the one with the greater version.
	Advance(store, tenant string, m Mark)
	// Latest returns the mark of one log, including marks that other processes have written
	// to a shared watermark.
	Latest(store, tenant string) (Mark, error)
	// Reserve prepares a durable write of marks, so that a full or
	// read-only disk is noticed before anything is committed. The caller
	// must call Keep or Drop.
	Reserve(store string, marks map[string]Mark) (Reserved, error)
	// Begin sets the marks of a new store id, starting from the marks of the id before, if
	// there are any.
	Begin(store, before string, marks map[string]Mark) error
	// Revoke durably notes a revoked token.
	Revoke(tenant, token string, at time.Time) error
	// Revoked returns when a token was revoked. It returns false if it has no such
	// revocation.
	Revoked(tenant, token string) (time.Time, bool)
}

// Reserved is a prepared durable write of marks.
type Reserved interface {
	// Keep writes the marks. If it returns nil, they survive a crash.
	Keep() error
	// Drop cancels the write.
	Drop()
}

// Mark is the size and root of a tenant's log, and the freezes in force at that time.
type Mark struct {
	Size    int64             `json:"size"`
	Root    ledger.Hash       `json:"root"`
	Time    time.Time         `json:"time"`
	Freezes int64             `json:"freezes,omitempty"` // version of the freezes
	Frozen  []approval.Freeze `json:"frozen,omitempty"`
}

// Join returns the later parts of both: by size for the log, by version for the freezes.
func (m Mark) Join(o Mark) Mark {
	if o.Size > m.Size {
		m.Size = o.Size
		m.Root = o.Root
		m.Time = o.Time
	}
	if o.Freezes > m.Freezes {
		m.Freezes, m.Frozen = o.Freezes, o.Frozen
	}
	return m
}

// Identity describes a store.
type Identity struct {
	ID        string    // changes with each change of keys and each restore; empty without a key
	PublicKey string    // that it is bound to
	Since     time.Time // when that began
	Restored  bool      // it began with a restore
	Empty     bool      // it holds nothing yet
	// this process could delete entries of the ledger, and the database
	// could forbid it (PostgreSQL)
	Erases bool
	// SchemaBefore is the schema version when this process opened the store, and Schema the
	// current one. 0 means that there were no tables.
	SchemaBefore, Schema int
}

// Integrity holds the findings of this process in a store since it opened it.
type Integrity struct {
	Alarms  int64            // times that something did not fit
	Stopped map[string]error // tenants whose log does not fit: nothing is signed for them, and nothing may run
	// SealedFirst counts the entries that updates have sealed before they were answered.
	SealedFirst int64
	Before      map[string]Mark // marks of the watermark from before this process restored the store, by tenant
}
