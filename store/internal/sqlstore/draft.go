package sqlstore

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/approval"
)

// A draft is an update worked out ahead of its transaction, on its caller's goroutine, while others commit: it reads what is known, locks
// nothing, and assumes that nothing is frozen. Its writes count only if all of that still holds when they are sent: each request that
// it read is one that it writes, at the version that it read; a leader checks for freezes; an index keeps pending bindings apart. If
// anything moved, the update runs again under locks, as it does from the start when it looks at grants or remembered keys, or
// concludes something without writing what it looked at.

// draft runs fn ahead. It returns nil when the update must run under locks.
func (s *Store) draft(ctx context.Context, tenant string, fn func(approval.Tx) error) *tx {
	b := &batch{s: s, ctx: ctx, tx: loose{s.eng}, ahead: true}
	t := &tx{b: b, tenant: tenant}
	if err := fn(t); err != nil || b.err != nil || t.err != nil || t.firm {
		return nil
	}
	if err := t.finish(); err != nil || len(t.writes) == 0 {
		return nil
	}
	for id := range t.read {
		if !t.saves(id) {
			return nil
		}
	}
	return t
}

func (t *tx) saves(id string) bool {
	for _, r := range t.saved {
		if r.ID == id {
			return true
		}
	}
	return false
}

// loose reads outside of any transaction, for drafts.
type loose struct{ Engine }

func (l loose) Queue(...Stmt)                {}
func (l loose) Flush(context.Context) error  { return nil }
func (l loose) Commit(context.Context) error { return errNoTx }
func (l loose) Rollback()                    {}

var errNoTx = errors.New("a draft has no transaction")

// admits says whether a draft still holds, as far as this batch can tell: nothing is frozen, and none of its requests was written since, here
// or by an earlier update of the batch. What other replicas do shows when the writes are sent.
func (b *batch) admits(d *tx) (bool, error) {
	freezes, err := (&tx{b: b, tenant: d.tenant}).Freezes()
	if err != nil || len(freezes) > 0 || d.froze {
		return false, err
	}
	for _, r := range d.saved {
		if b.wrote[[2]string{d.tenant, r.ID}] || b.s.recent.get(d.tenant, r.ID).version >= r.Version {
			return false, nil
		}
	}
	return true, nil
}
