// Package witness shows the checkpoints of this server's ledgers to external witnesses,
// which the owner of this server and its database can't change. It also keeps those of
// other servers.
package witness

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

// Keeper keeps the newest checkpoint of each log that others show, and accepts no other
// history of that log. The first checkpoint of a log determines the key that must sign it
// from then on.
type Keeper struct {
	Records store.Records
	Now     func() time.Time
	Most    int // maximal number of logs of a tenant; 0 means 1000
}

// Shown is a checkpoint that another server shows.
type Shown struct {
	Checkpoint []byte
	PublicKey  string        // that signed it
	Since      int64         // size at which the proof begins; 0 without a proof
	Proof      []ledger.Hash // that the log of that size is the beginning of this one
}

// Kept is the stored checkpoint of a log.
type Kept struct {
	Log        string    `json:"log"`
	Size       int64     `json:"size"`
	Checkpoint string    `json:"checkpoint"`
	PublicKey  string    `json:"public_key"`
	At         time.Time `json:"at"` // when it was shown
}

// Reason is the reason why a checkpoint was not accepted, or empty if it was.
type Reason string

// The reasons.
const (
	Taken       Reason = ""
	NeedsProof  Reason = "proof"       // from the size that is kept
	Older       Reason = "older"       // a larger one is stored
	Contradicts Reason = "contradicts" // it has another history than the stored one
	AnotherKey  Reason = "key"         // the stored key did not hand over to its key
)

// InputError means that the input is not a valid checkpoint.
type InputError struct{ Err error }

// Error returns the text of the cause.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

const (
	mostRaces      = 16
	mostLogs       = 1000
	mostCheckpoint = 8 << 10 // bytes; a checkpoint with two signatures has about 300
)

// Newest returns the stored checkpoint of a log, or approval.ErrNotFound.
func (k *Keeper) Newest(ctx context.Context, tenant, log string) (Kept, error) {
	kept, _, err := k.read(ctx, tenant, log)
	return kept, err
}

// Show stores a checkpoint, or returns the reason why not. In both cases it returns the
// checkpoint that is stored afterwards.
func (k *Keeper) Show(ctx context.Context, tenant string, s Shown) (Kept, Reason, error) {
	if n := len(s.Checkpoint) + len(s.PublicKey); n > mostCheckpoint {
		return Kept{}, Taken, &InputError{
			fmt.Errorf("the checkpoint and its key have %d bytes, expected %d at most", n, mostCheckpoint),
		}
	}
	c, err := ledger.OpenCheckpoint(s.Checkpoint, s.PublicKey)
	if err != nil {
		return Kept{}, Taken, &InputError{err}
	}
	for range mostRaces {
		kept, version, err := k.read(ctx, tenant, c.Origin)
		if err != nil && !errors.Is(err, approval.ErrNotFound) {
			return Kept{}, Taken, err
		}
		next := Kept{
			Log:        c.Origin,
			Size:       c.Size,
			Checkpoint: string(s.Checkpoint),
			PublicKey:  s.PublicKey,
			At:         k.Now().UTC().Truncate(time.Microsecond),
		}
		if err == nil {
			if reason := kept.holds(c, s); reason != Taken {
				return kept, reason, nil
			}
			if kept.Size == next.Size && kept.PublicKey == next.PublicKey {
				return kept, Taken, nil
			}
		}

		if version == 0 {
			if err := k.roomForMore(ctx, tenant); err != nil {
				return Kept{}, Taken, err
			}
		}
		err = k.write(ctx, tenant, next, version)
		if !errors.Is(err, approval.ErrVersion) {
			return next, Taken, err
		}
	}

	return Kept{}, Taken, fmt.Errorf("keep a checkpoint: %w", approval.ErrVersion)
}

// roomForMore returns an error if the tenant has the maximal number of logs.
func (k *Keeper) roomForMore(ctx context.Context, tenant string) error {
	most := cmp.Or(k.Most, mostLogs)
	all, err := k.Records.ListRecords(ctx, room(tenant), "", "", most)
	if err == nil && len(all) == most {
		err = &InputError{
			fmt.Errorf(
				"this server keeps checkpoints of %d logs already: have it forget those that are no more",
				most,
			),
		}
	}

	return err
}

// holds compares a checkpoint with the stored one.
func (k Kept) holds(c ledger.Checkpoint, s Shown) Reason {
	old, err := ledger.OpenCheckpoint([]byte(k.Checkpoint), k.PublicKey)
	if err != nil {
		return Contradicts // the stored checkpoint can't be read: never replace it
	}
	if s.PublicKey != k.PublicKey {
		if handed, err := ledger.OpenCheckpoint(s.Checkpoint, k.PublicKey); err != nil || handed != c {
			return AnotherKey
		}
	}
	switch {
	case c.Size < old.Size:
		return Older
	case c.Size == old.Size && c.Root != old.Root:
		return Contradicts
	case c.Size == old.Size:
		return Taken
	case s.Since != old.Size:
		return NeedsProof
	case ledger.CheckConsistency(s.Proof, c.Size, c.Root, old.Size, old.Root) != nil:
		return Contradicts
	}

	return Taken
}

// Forget lets a log start over after its server was restored. It returns
// approval.ErrNotFound if no checkpoint of the log is stored.
func (k *Keeper) Forget(ctx context.Context, tenant, log string) error {
	_, version, err := k.read(ctx, tenant, log)
	if err != nil {
		return err
	}
	return k.Records.DeleteRecord(ctx, room(tenant), name(log), version)
}

func room(tenant string) string { return "witness/" + tenant }

// name returns a valid key of a record for any name of a log.
func name(log string) string {
	sum := sha256.Sum256([]byte(log))
	return hex.EncodeToString(sum[:])
}

func (k *Keeper) read(ctx context.Context, tenant, log string) (Kept, int64, error) {
	r, err := k.Records.Record(ctx, room(tenant), name(log))
	if err != nil {
		return Kept{}, 0, err
	}
	var kept Kept
	if err := json.Unmarshal(r.Value, &kept); err != nil || kept.Log != log {
		return Kept{}, 0, fmt.Errorf("read what is kept of the log: %w", errors.Join(err, store.ErrUnavailable))
	}
	return kept, r.Version, nil
}

func (k *Keeper) write(ctx context.Context, tenant string, next Kept, version int64) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	_, err = k.Records.PutRecord(ctx, store.Record{
		Namespace: room(tenant),
		Key:       name(next.Log),
		Version:   version,
		Value:     text,
	})
	return err
}
