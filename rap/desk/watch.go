package desk

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/value"
)

// Ledger is what a desk over a service reads to know what happened; every store.Store is one.
type Ledger interface {
	Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	Checkpoint(ctx context.Context, tenant string) (int64, []byte, error)
	Changed(tenant string) <-chan struct{}
}

const (
	batch     = 256             // leaves at once
	lookAgain = time.Second     // sealing by another replica may be announced late
	pollEvery = 3 * time.Second // where events can't be read
)

// news tells what entries of the ledger mean for a desk's agent.
type news struct {
	agent   string
	changed func(ref string)
}

// tells are the entries after which a request stands differently.
func tells(kind string) bool {
	switch kind {
	case approval.EventEdited, approval.EventApproved, approval.EventRequestDenied, approval.EventAnswered, approval.EventExpired, approval.EventCancelled,
		approval.EventConsumed, approval.EventPermitExpired:
		return true
	}
	return false
}

// leaf takes one entry. One that can't be read could be about anything.
func (n news) leaf(text []byte) {
	l, err := ledger.ParseLeaf(text)
	if err != nil {
		n.changed("")
		return
	}
	about, _ := l.Facts.Get("agent")
	mine := about.Kind == value.String && about.Text == n.agent
	switch {
	case tells(l.Type) && mine:
		n.changed(l.Subject)
	case l.Type == approval.EventFrozen || l.Type == approval.EventThawed:
		if mine || about.Text == "" { // what was held back is given out, or the other way round
			n.changed("")
		}
	}
}

// watchLedger follows the sealed ledger from its end. After trouble anything may have happened.
func watchLedger(ctx context.Context, log Ledger, tenant string, n news) error {
	next := int64(-1)
	for ctx.Err() == nil {
		changed := log.Changed(tenant)
		var found int
		var err error
		if next < 0 {
			next, err = begin(ctx, log, tenant, n)
		} else {
			next, found, err = follow(ctx, log, tenant, next, n)
		}
		if found == batch {
			continue
		}
		if err != nil {
			next, changed = -1, nil // a store that fails at once would keep us busy
		}
		await(ctx, changed, lookAgain)
	}
	return ctx.Err()
}

// begin finds the end of the ledger, and then has everything looked at: what comes later is followed.
func begin(ctx context.Context, log Ledger, tenant string, n news) (int64, error) {
	size, _, err := log.Checkpoint(ctx, tenant)
	if n.changed(""); err != nil {
		return -1, err
	}
	return size, nil
}

func follow(ctx context.Context, log Ledger, tenant string, next int64, n news) (int64, int, error) {
	entries, err := log.Leaves(ctx, tenant, next, batch)
	for _, entry := range entries {
		n.leaf(entry.Leaf)
		next = entry.Index + 1
	}
	return next, len(entries), err
}

// await returns when the channel is closed, the time is over or ctx ends.
func await(ctx context.Context, c <-chan struct{}, most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	case <-ctx.Done():
	}
}

// watchServer follows the server's events, where the token may read them, and else has everything looked at every few seconds.
func watchServer(ctx context.Context, c *client.Client, poll time.Duration, n news) {
	barred := false
	for ctx.Err() == nil {
		if !barred {
			barred = refused(stream(ctx, c, n))
		}
		if ctx.Err() == nil {
			n.changed("")
			await(ctx, nil, poll)
		}
	}
}

// stream follows the events from the end of the ledger, until they break off for good.
func stream(ctx context.Context, c *client.Client, n news) error {
	end, err := c.Checkpoint(ctx)
	if err != nil {
		return err
	}
	n.changed("")
	for e, err := range c.Events(ctx, end.Size-1) {
		if err != nil {
			return err
		}
		n.leaf(e.Leaf)
	}
	return nil
}

// refused reports whether the token may not read events at all.
func refused(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status == http.StatusForbidden
}
