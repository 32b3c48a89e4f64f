package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

// An action that spends or withdraws an approval is answered only after its entry is sealed
// and the watermark has it. Otherwise a person who can write to the database could kill
// this process, remove the entry and restore the row, and the action would leave no trace.
// So a group with such an action seals the entries of its tenant in its own transaction: if
// they can't be sealed, the group is not committed. See docs/design/024-journal.md.

// mostWaiting is how many unsealed entries a group seals in addition to its own. The sealer
// in the background seals the rest.
const mostWaiting = 4096

// sealedTenant is the result of sealing one tenant's entries in a group.
type sealedTenant struct {
	at   grown // the tree afterwards
	seen []logged
	n    int64 // entries that the group sealed
}

// sealing is the result of sealGroup, and the watermark write that is reserved for it.
type sealing struct {
	tenants map[string]sealedTenant
	mark    store.Reserved // nil if there is no watermark
}

// sealGroup seals the entries of all tenants that have an update in the group which must be
// sealed first. It writes the entries of all other tenants unsealed.
func (b *batch) sealGroup(ctx context.Context, written []*tx) (out sealing, err error) {
	first := map[string]bool{}
	for _, t := range written {
		if t.sealFirst {
			first[t.tenant] = true
		}
	}
	own := map[string][]*tx{}
	for _, t := range written {
		if first[t.tenant] {
			own[t.tenant] = append(own[t.tenant], t)
		} else {
			t.writeEntries()
		}
	}
	if len(first) == 0 {
		return out, nil
	}

	// Groups of this process wait here for each other, so that each one knows the tree that
	// the previous one left, and need not read that group's entries.
	b.s.turn.Lock()
	b.turn = true
	if b.s.d.SealWait != "" {
		b.tx.Queue(do(b.s.d.SealWait))
	}
	out.tenants = map[string]sealedTenant{}
	marks := map[string]store.Mark{}
	for _, tenant := range slices.Sorted(maps.Keys(first)) {
		done, err := b.sealOwn(ctx, tenant, own[tenant])
		if err != nil {
			return out, notSealed(err)
		}
		out.tenants[tenant], marks[tenant] = done, b.s.markOf(done.at)
	}
	if b.s.trust.Watermark != nil {
		if out.mark, err = b.s.trust.Watermark.Reserve(b.s.period.id, marks); err != nil {
			return out, verdict{fmt.Errorf("%w: %w: %w", store.ErrUnavailable, store.ErrNotSealed, err)}
		}
	}
	return out, nil
}

// selectTreeAndUnsealed reads a tenant's log and its unsealed entries in one statement,
// because every other sealer waits meanwhile.
const selectTreeAndUnsealed = `SELECT trees.size, trees.root, trees.checkpoint, trees.code,
entries.seq, entries.type, entries.subject, entries.at, entries.version, entries.leaf, entries.code
FROM (SELECT 1 AS one) AS always LEFT JOIN trees ON trees.tenant = $1
LEFT JOIN entries ON entries.tenant = $1 AND entries.idx IS NULL ORDER BY entries.seq LIMIT $2`

// treeAndUnsealed does the reads of tree and unsealed in one query.
func (s *Store) treeAndUnsealed(ctx context.Context, x Tx, tenant string) (tree, []unsealed, error) {
	t := tree{tenant: tenant}
	var size *int64
	var root []byte
	var entries []unsealed
	_, err := collect(ctx, x, func(r Rows) (_ struct{}, err error) {
		var seq, at, version *int64
		var kind, subject *string
		var leaf, code []byte
		err = r.Scan(&size, &root, &t.checkpoint, &t.code, &seq, &kind, &subject, &at, &version, &leaf, &code)
		if err == nil && seq != nil {
			entries = append(entries, unsealed{*seq, code, fact{*kind, *subject, *at, *version, leaf}})
		}
		return struct{}{}, err
	}, selectTreeAndUnsealed, tenant, int64(mostWaiting+1))
	if err != nil {
		return t, nil, err
	}
	if size != nil {
		t.size = *size
		copy(t.root[:], root)
		if err := s.genuineTree(t); err != nil {
			return t, nil, err
		}
	}
	entries, err = s.genuineUnsealed(tenant, entries)
	return t, entries, err
}

// endTurn lets the next group of this process seal.
func (b *batch) endTurn() {
	if b.turn {
		b.turn = false
		b.s.turn.Unlock()
	}
}

// notSealed returns the error for a group that was not committed, and keeps the class of
// the engine's error.
func notSealed(err error) error {
	if _, final := errors.AsType[verdict](err); final {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrNotSealed, err)
}

// sealOwn seals the unsealed entries of a tenant, then the entries of this group's updates.
func (b *batch) sealOwn(ctx context.Context, tenant string, own []*tx) (out sealedTenant, err error) {
	s := b.s
	if err := s.stopped(tenant); err != nil {
		return out, verdict{err}
	}
	var mark store.Mark
	if s.trust.Watermark != nil {
		if mark, err = s.trust.Watermark.Latest(s.period.id, tenant); err != nil {
			return out, verdict{fmt.Errorf("%w: %w: %w", store.ErrUnavailable, store.ErrNotSealed, err)}
		}
	}
	t, waiting, err := s.treeAndUnsealed(ctx, b.tx, tenant)
	if err != nil {
		return out, err
	}
	// Another process that shares the watermark may have seen more.
	if mark.Size > t.size || mark.Size == t.size && mark.Size > 0 && mark.Root != t.root {
		return out, s.tampered(tenant, "the ledger",
			fmt.Sprintf("it has %d entries, and the watermark knows another log of %d", t.size, mark.Size))
	}
	if out.at, out.seen, err = s.follow(ctx, b.tx, tenant, s.trees.of(tenant), t); err != nil {
		return out, err
	}
	if len(waiting) > mostWaiting {
		return out, verdict{fmt.Errorf("%w: %w: more than %d entries of tenant %q wait to be sealed",
			store.ErrUnavailable, store.ErrNotSealed, mostWaiting, tenant)}
	}

	s.number(b.tx, tenant, waiting, t.size)
	var all []logged
	for _, e := range waiting {
		all = append(all, logged{e.fact, ledger.LeafHash(e.leaf)})
	}
	for _, x := range own {
		for _, e := range x.appended {
			f := x.fact(e)
			index := t.size + int64(len(all))
			b.tx.Queue(blind("INSERT INTO entries (tenant, idx, type, subject, at, version, leaf, openings, code) VALUES "+
				"($1, $2, $3, $4, $5, $6, $7, $8, $9)", tenant, index, f.kind, f.subject, f.at, f.version, f.leaf,
				blob(e.Openings), s.auth.code("entries", f.values(tenant, &index)...)))
			all = append(all, logged{f, ledger.LeafHash(f.leaf)})
		}
	}
	if len(all) == 0 {
		return out, nil
	}
	out.at, err = s.grow(ctx, b.tx, tenant, out.at.at(t.size), t.size, all, s.trust.Key.Sign)
	out.seen, out.n = append(out.seen, all...), int64(len(all))
	return out, err
}

// drop releases the reserved watermark write.
func (g *sealing) drop() {
	if g.mark != nil {
		g.mark.Drop()
	}
}

// kept writes to the watermark what a committed group sealed. If that fails, the approval
// stays spent and the call is answered with an error. A client that repeats the same
// attempt gets its answer once the watermark can be written.
func (b *batch) kept() {
	if b.mark == nil {
		return
	}
	err := b.mark.Keep()
	if err == nil {
		return
	}
	for _, j := range b.spending {
		j.err = fmt.Errorf("%s: %w: it is recorded, but can't be noted in the watermark: repeat the same attempt: "+
			"%w: %w", j.what, store.ErrUnavailable, store.ErrNotSealed, err)
	}
}

// markOf returns the watermark's mark for a tree.
func (s *Store) markOf(at grown) store.Mark {
	return store.Mark{Size: at.size, Root: at.root, Time: s.now().UTC().Truncate(time.Microsecond)}
}

// trees holds the logs that this process has seen, by tenant.
type trees struct {
	mu  sync.Mutex
	all map[string]grown
}

func (t *trees) of(tenant string) grown {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[tenant]
}

func (t *trees) copy() map[string]grown {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.all)
}

func (t *trees) replace(all map[string]grown) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = all
}

// grow keeps the later of two states of a log. It returns how many entries are new, and
// whether the log was known before.
func (t *trees) grow(tenant string, at grown) (more int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.all[tenant]
	known = before.hashes != nil
	if known && at.size <= before.size {
		return 0, true
	}
	t.all[tenant] = at
	return at.size - before.size, known
}
