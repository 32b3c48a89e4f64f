package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

// A process remembers the size and root of each tenant's log, starting from its watermark.
// Before it signs anything, and after another replica has signed, it compares the log with
// what it remembers: it doesn't sign a log that is shorter or that doesn't continue the
// remembered one. From the entries that it reads on the way it also learns the versions of
// rows and the revoked tokens.

// followStep is the number of entries that are read at once.
const followStep = 1000

// tree is the row of a tenant's log.
type tree struct {
	tenant     string
	size       int64
	root       ledger.Hash
	checkpoint []byte
	code       []byte
}

const selectTrees = "SELECT tenant, size, root, checkpoint, code FROM trees"

func scanTree(r Rows) (t tree, err error) {
	var root []byte
	err = r.Scan(&t.tenant, &t.size, &root, &t.checkpoint, &t.code)
	copy(t.root[:], root)
	return t, err
}

// fact holds the parts of an entry that its code covers.
type fact struct {
	kind, subject string
	at, version   int64
	leaf          []byte
}

// values returns the columns that the code covers. index is nil before the entry is sealed.
func (f fact) values(tenant string, index *int64) []any {
	var idx any
	if index != nil {
		idx = *index
	}
	return []any{tenant, idx, f.kind, f.subject, f.at, f.version, f.leaf}
}

// logged is an entry that was sealed by this or another process.
type logged struct {
	fact
	hash ledger.Hash
}

// sealedEntry is a row of a sealed entry.
type sealedEntry struct {
	ledger.SealedEntry
	fact
	code []byte
}

const selectClosed = "SELECT idx, type, subject, at, version, leaf, code FROM entries WHERE tenant = $1"

// scanClosed reads an entry without its openings.
func scanClosed(r Rows) (e sealedEntry, err error) {
	err = r.Scan(&e.Index, &e.kind, &e.subject, &e.at, &e.version, &e.leaf, &e.code)
	e.Leaf = e.leaf
	return e, err
}

// genuineEntries returns an error if an entry was not sealed by this service.
func (s *Store) genuineEntries(tenant string, found []sealedEntry) ([]ledger.SealedEntry, error) {
	return each(found, func(e sealedEntry) (ledger.SealedEntry, error) {
		what := fmt.Sprintf("entry %d", e.Index)
		return e.SealedEntry, s.genuine(e.code, tenant, what, "entries", e.values(tenant, &e.Index)...)
	})
}

// tree reads the row of a tenant's log. It returns an empty log if there is no row.
func (s *Store) tree(ctx context.Context, q querier, tenant string) (tree, error) {
	t, found, err := first(ctx, q, scanTree, selectTrees+" WHERE tenant = $1", tenant)
	if err != nil || !found {
		return tree{tenant: tenant}, err
	}
	return t, s.genuineTree(t)
}

func (s *Store) genuineTree(t tree) error {
	return s.genuine(
		t.code, t.tenant, "the ledger's checkpoint", "trees", t.tenant, t.size, t.root[:], t.checkpoint,
	)
}

// follow compares a log with the state that this process saw last. It returns the log's
// current state and the new entries, or a tamper error if the log doesn't continue that
// state.
func (s *Store) follow(
	ctx context.Context,
	q querier,
	tenant string,
	at grown,
	t tree,
) (grown, []logged, error) {
	refuse := func(problem string, args ...any) error {
		problem = fmt.Sprintf(
			problem,
			args...) + ": part of it was taken away, or an older state of the database was put back; " +
			"if that was a backup or a snapshot, run `assent restore --in-place`"
		return s.tampered(tenant, "the ledger", problem)
	}
	if at.hashes == nil {
		mark := s.marks[tenant]
		if t.size < mark.Size {
			return at, nil, refuse("it has %d entries, and had %d", t.size, mark.Size)
		}
		next, err := s.first(ctx, q, t, mark)
		if errors.Is(err, errInconsistent) {
			err = refuse("it does not begin with the %d entries that it had", mark.Size)
		}
		return next, nil, err
	}

	switch {
	case t.size < at.size:
		return at, nil, refuse("it has %d entries, and had %d", t.size, at.size)
	case t.size == at.size && t.root != at.root:
		return at, nil, refuse("its %d entries are not those that it had", t.size)
	}

	var all []logged
	for at.size < t.size {
		next, part, err := s.extend(ctx, q, tenant, at, min(t.size-at.size, followStep))
		if err != nil {
			return at, nil, err
		}
		at, all = next, append(all, part...)
	}

	if at.root != t.root {
		return at, nil, refuse("it does not continue the entries that it had")
	}
	return at, all, nil
}

var errInconsistent = errors.New("the log does not begin with what the watermark knows")

// first starts to follow a log at the size in the watermark.
func (s *Store) first(ctx context.Context, q querier, t tree, mark store.Mark) (grown, error) {
	stored := hashes{ctx, q, t.tenant}
	edge := &edge{store: stored}
	ext, err := ledger.Extend(t.size, edge, nil)
	if err != nil {
		return grown{}, err
	}
	if t.size > 0 && ext.Root != t.root {
		const problem = "the hashes of its entries don't lead to the root of its checkpoint"
		return grown{}, s.tampered(t.tenant, "the ledger", problem)
	}
	if mark.Size > 0 {
		proof, err := ledger.ProveConsistency(t.size, mark.Size, stored)
		if err != nil {
			return grown{}, err
		}
		if ledger.CheckConsistency(proof, t.size, t.root, mark.Size, mark.Root) != nil {
			return grown{}, errInconsistent
		}
	}

	return edge.next(ext), nil
}

// extend reads the next entries of a log and computes the tree with them.
func (s *Store) extend(
	ctx context.Context, q querier, tenant string, at grown, n int64,
) (grown, []logged, error) {
	all, err := s.stretch(ctx, q, tenant, at.size, at.size+n)
	if err != nil {
		return at, nil, err
	}
	leaves := make([][]byte, n)
	for i, e := range all {
		leaves[i] = e.leaf
	}
	edge := &edge{known: at.hashes, store: hashes{ctx, q, tenant}}
	ext, err := ledger.Extend(at.size, edge, leaves)
	if err != nil {
		return at, nil, err
	}
	return edge.next(ext), all, nil
}

// stretch reads the sealed entries with from <= index < to. It returns an error if one is
// missing or forged.
func (s *Store) stretch(ctx context.Context, q querier, tenant string, from, to int64) ([]logged, error) {
	found, err := collect(ctx, q, scanClosed,
		selectClosed+" AND idx >= $2 AND idx < $3 AND idx IS NOT NULL ORDER BY idx", tenant, from, to)
	if err == nil && int64(len(found)) != to-from {
		err = s.tampered(
			tenant,
			"the ledger",
			fmt.Sprintf("of its entries %d to %d some are missing", from, to-1),
		)
	}

	if err == nil {
		_, err = s.genuineEntries(tenant, found)
	}
	all := make([]logged, len(found))
	for i, e := range found {
		all[i] = logged{e.fact, ledger.LeafHash(e.leaf)}
	}

	return all, err
}

// learn takes note of the committed state of a log.
func (s *Store) learn(ctx context.Context, tenant string, at grown, all []logged) {
	all, more := s.grownBy(tenant, at, all)
	if !more {
		return
	}
	s.note(ctx, tenant, all)
	if at.size > 0 {
		s.advance(tenant, s.markOf(at))
	}
}

// grownBy notes that a log has grown, and which entries of this process that sealed. Both
// change under one lock; otherwise missing could, in between, report entries as lost that
// are already in the log. It returns the new entries, and false if the log was seen at this
// size before.
func (s *Store) grownBy(tenant string, at grown, all []logged) ([]logged, bool) {
	s.learning.Lock()
	defer s.learning.Unlock()
	more, known := s.trees.grow(tenant, at)
	if known && more == 0 {
		return nil, false
	}
	if !known || more > int64(len(all)) {
		s.own.forget(tenant) // some may have been sealed before this process began to follow
	} else {
		all = all[int64(len(all))-more:] // another goroutine has noted those before
	}
	s.own.seen(tenant, all)
	return all, true
}

// missing returns the tenants that lost entries of this process.
func (s *Store) missing(before map[ownEntry]bool, left map[string]bool) []string {
	s.learning.Lock()
	defer s.learning.Unlock()
	return s.own.lost(before, left)
}

// note takes from entries what must be remembered: versions, revoked tokens, freezes.
func (s *Store) note(ctx context.Context, tenant string, all []logged) {
	now, froze := time.Now(), false
	for _, e := range all {
		s.versions.note(rowName{tenant, e.subject}, e.version, now)
		froze = froze || e.subject == "" && e.version > 0
		if _, known := s.revoked(tenant, e.subject); e.kind == approval.EventTokenRevoked && !known {
			_ = s.noteRevoked(tenant, e.subject, moment(e.at)) // if this fails, the ledger still has the entry
		}
	}

	if !froze || s.trust.Watermark == nil {
		return
	}
	if f, err := s.frozen(ctx, s.eng, tenant); err == nil { // on an error, the next reader of frozen gets it
		s.advance(tenant, store.Mark{Freezes: f.version, Frozen: f.all})
	}
}

// advance updates the watermark, if there is one.
func (s *Store) advance(tenant string, m store.Mark) {
	if s.trust.Watermark != nil {
		s.trust.Watermark.Advance(s.period.id, tenant, m)
	}
}

// followAll follows the logs of all tenants, including tenants that must have a log but
// have none.
func (s *Store) followAll(ctx context.Context, r *sealRound) error {
	before := s.trees.copy() // must come first: what is read later may be newer, never older
	found, err := list(ctx, s, "read the ledgers", scanTree, selectTrees)
	if err != nil {
		return err
	}
	trees := map[string]tree{}
	for tenant := range before {
		trees[tenant] = tree{tenant: tenant}
	}
	for tenant := range s.marks {
		trees[tenant] = tree{tenant: tenant}
	}
	for _, t := range found {
		trees[t.tenant] = t
	}
	for _, tenant := range slices.Sorted(maps.Keys(trees)) {
		t := trees[tenant]
		if known := before[tenant]; r.failed[tenant] != nil ||
			known.hashes != nil && known.size == t.size && known.root == t.root {
			continue
		}
		if err := s.followOne(ctx, before[tenant], t); err != nil {
			r.fail(tenant, err)
		}
	}

	return nil
}

func (s *Store) followOne(ctx context.Context, at grown, t tree) (err error) {
	if t.size > 0 {
		err = s.genuineTree(t)
	}
	var all []logged
	if err == nil {
		at, all, err = s.follow(ctx, s.eng, t.tenant, at, t)
	}
	if err != nil {
		return unavailable("follow the ledger", err)
	}
	s.learn(ctx, t.tenant, at, all)
	return nil
}

// halt remembers the tenants that were stopped. Nothing runs for them until their log is
// consistent again.
func (s *Store) halt(failed map[string]error) {
	stopped := map[string]error{}
	maps.Copy(stopped, s.distrusted)
	for tenant, err := range failed {
		if errors.Is(err, store.ErrTampered) {
			stopped[tenant] = err
		}
	}
	s.halted.Store(&stopped)
}

// Distrust stops a tenant permanently.
func (s *Store) Distrust(tenant, problem string) {
	err := s.tampered(tenant, "the ledger", problem)
	s.sealing.Lock()
	defer s.sealing.Unlock()
	s.distrusted[tenant] = err
	stopped := map[string]error{tenant: err}
	if all := s.halted.Load(); all != nil {
		maps.Copy(stopped, *all)
	}
	s.halted.Store(&stopped)
}

// stopped returns the reason why a tenant is stopped, or nil if it is not.
func (s *Store) stopped(tenant string) error {
	if all := s.halted.Load(); all != nil {
		return (*all)[tenant]
	}
	return nil
}

// Verify compares every log with the watermark, and learns the versions of rows from the
// latest entries. A service calls it before it accepts requests.
func (s *Store) Verify(ctx context.Context) error {
	s.sealing.Lock()
	defer s.sealing.Unlock()
	r := sealRound{failed: map[string]error{}}
	if err := s.followAll(ctx, &r); err != nil {
		return err
	}
	for tenant, at := range s.trees.copy() {
		if err := s.recall(ctx, tenant, at.size); err != nil {
			r.fail(tenant, unavailable("read the ledger", err))
		}
	}
	return errors.Join(r.err(), s.noteAll())
}

// noteAll writes the size and root of every log to the watermark. A later answer may depend
// on entries that were sealed by a process that was killed before it wrote them there.
func (s *Store) noteAll() error {
	if s.trust.Watermark == nil {
		return nil
	}
	marks := map[string]store.Mark{}
	for tenant, at := range s.trees.copy() {
		if at.size > 0 {
			marks[tenant] = s.markOf(at)
		}
	}
	mark, err := s.trust.Watermark.Reserve(s.period.id, marks)
	if err != nil {
		return err
	}
	return mark.Keep()
}

// recall reads the log backwards until its entries are older than the versions that this
// process remembers.
func (s *Store) recall(ctx context.Context, tenant string, size int64) error {
	if s.auth == nil {
		return nil
	}
	since := micros(s.now().Add(-s.versions.span))
	for end := size; end > 0; {
		from := max(0, end-followStep)
		all, err := s.stretch(ctx, s.eng, tenant, from, end)
		if err != nil {
			return err
		}
		s.own.seen(tenant, all)
		s.note(ctx, tenant, all)
		if end = from; all[0].at < since {
			return nil
		}
	}

	return nil
}

// Integrity returns the findings of this process.
func (s *Store) Integrity() store.Integrity {
	out := store.Integrity{
		Alarms:  s.alarms.Load(),
		Stopped: map[string]error{},
		Before:  s.before,

		SealedFirst: s.sealedFirst.Load(),
	}
	if all := s.halted.Load(); all != nil {
		maps.Copy(out.Stopped, *all)
	}
	return out
}
