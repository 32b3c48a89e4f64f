package hold

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/value"
)

// Log is the sealed ledger. Every store implements it.
type Log interface {
	Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	Checkpoint(ctx context.Context, tenant string) (int64, []byte, error)
	Changed(tenant string) <-chan struct{}
}

const (
	batch     = 256         // leaves per read
	lookAgain = time.Second // sealing by another replica may be announced late
)

// Changes finds out which requests of an agent a ledger entry may have changed. It calls Changed
// with the reference of the request, or with an empty string if any request may have changed.
type Changes struct {
	Agent   string // id
	Changed func(ref string)
}

// moves reports whether events of this type change the state of a request.
func moves(kind string) bool {
	switch kind {
	case approval.EventEdited, approval.EventApproved, approval.EventRequestDenied, approval.EventAnswered,
		approval.EventExpired, approval.EventCancelled, approval.EventConsumed, approval.EventPermitExpired:
		return true
	}

	return false
}

// Leaf processes one entry. An entry that can't be parsed may be about any request.
func (c Changes) Leaf(text []byte) {
	l, err := ledger.ParseLeaf(text)
	if err != nil {
		c.Changed("")
		return
	}
	about, _ := l.Facts.Get("agent")
	mine := about.Kind == value.String && about.Text == c.Agent
	switch {
	case moves(l.Type) && mine:
		c.Changed(l.Subject)
	case l.Type == approval.EventFrozen || l.Type == approval.EventThawed:
		if mine || about.Text == "" { // a freeze or thaw changes which answers are withheld
			c.Changed("")
		}
	}
}

// follow reads the sealed ledger from its current end until ctx ends. After an error, it starts
// again and reports that any request may have changed.
func (c Changes) follow(ctx context.Context, log Log, tenant string) error {
	next := int64(-1)
	for ctx.Err() == nil {
		changed := log.Changed(tenant)
		var found int
		var err error
		if next < 0 {
			next, err = c.begin(ctx, log, tenant)
		} else {
			next, found, err = c.read(ctx, log, tenant, next)
		}
		if found == batch {
			continue
		}
		if err != nil {
			next = -1
			changed = nil // wait for lookAgain, as a store that fails at once would keep us busy
		}
		_ = wait.For(ctx, changed, lookAgain)
	}

	return ctx.Err()
}

// begin finds the end of the ledger and then reports that any request may have changed. It does so
// in this order so that no change is missed.
func (c Changes) begin(ctx context.Context, log Log, tenant string) (int64, error) {
	size, _, err := log.Checkpoint(ctx, tenant)
	if c.Changed(""); err != nil {
		return -1, err
	}

	return size, nil
}

func (c Changes) read(ctx context.Context, log Log, tenant string, next int64) (int64, int, error) {
	entries, err := log.Leaves(ctx, tenant, next, batch)
	for _, entry := range entries {
		c.Leaf(entry.Leaf)
		next = entry.Index + 1
	}

	return next, len(entries), err
}
