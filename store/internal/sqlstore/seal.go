package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/wait"
)

// sealStep is how many entries one transaction seals. It is small so that writers wait only
// briefly.
const sealStep = 256

// errSealing means that another replica is sealing.
var errSealing = errors.New("another replica seals")

// Seal adds entries to the trees of their tenants, and then follows the entries that other
// processes added. A failure for one tenant does not stop the others. A tenant whose log is
// inconsistent is stopped.
func (s *Store) Seal(ctx context.Context, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (int, error) {
	if !s.sealing.TryLock() {
		return 0, nil
	}
	defer s.sealing.Unlock()
	own := s.own.snapshot()
	tenants, err := list(ctx, s, "seal", scanText,
		"SELECT tenant FROM entries WHERE idx IS NULL GROUP BY tenant ORDER BY min(seq)")
	if err != nil {
		return 0, err
	}
	r := sealRound{left: map[string]bool{}, failed: map[string]error{}}
	for _, tenant := range tenants {
		r.left[tenant] = true
	}
	tenants = slices.DeleteFunc(tenants, func(tenant string) bool {
		if err := s.distrusted[tenant]; err != nil {
			r.fail(tenant, err)
		}
		return s.distrusted[tenant] != nil
	})
	err = s.sealShares(ctx, &r, tenants, limit, sign)
	if errors.Is(err, errSealing) {
		return r.sealed, r.err()
	}
	if err := s.followAll(ctx, &r); err != nil {
		return r.sealed, errors.Join(err, r.err())
	}
	for _, tenant := range s.missing(own, r.left) {
		r.fail(
			tenant,
			s.tampered(
				tenant,
				"the ledger",
				"entries that this process wrote were taken away before they were sealed",
			),
		)
	}

	s.halt(r.failed)
	return r.sealed, r.err()
}

// sealPause is how long SealTenant waits while another goroutine or replica seals.
const sealPause = 10 * time.Millisecond

// SealTenant seals the entries of a tenant that are committed by now. It compares their
// numbers instead of waiting until no entry is left, because under load there is always a
// newer one.
func (s *Store) SealTenant(
	ctx context.Context, tenant string, sign func(ledger.Checkpoint) ([]byte, error),
) (sealed int, err error) {
	last, found, err := find(ctx, s, "seal", scanInt,
		"SELECT seq FROM entries WHERE tenant = $1 AND idx IS NULL ORDER BY seq DESC LIMIT 1", tenant)
	for err == nil && found {
		n, sealErr := s.Seal(ctx, sealStep, sign)
		sealed += n
		_, found, err = find(ctx, s, "seal", scanInt,
			"SELECT seq FROM entries WHERE tenant = $1 AND idx IS NULL AND seq <= $2 LIMIT 1", tenant, last)
		if err != nil || !found || n > 0 {
			continue
		}
		if err = sealErr; err == nil {
			err = wait.Pause(ctx, sealPause)
		}
	}

	return sealed, err
}

// sealRound is the result of one call of Seal.
type sealRound struct {
	sealed int
	left   map[string]bool  // tenants that may have entries still to be sealed
	failed map[string]error // by tenant
}

func (r *sealRound) fail(tenant string, err error) {
	r.failed[tenant] = errors.Join(r.failed[tenant], err)
}

func (r *sealRound) err() error {
	var errs []error
	for _, tenant := range slices.Sorted(maps.Keys(r.failed)) {
		errs = append(errs, fmt.Errorf("tenant %q: %w", tenant, r.failed[tenant]))
	}
	return errors.Join(errs...)
}

// sealShares gives each tenant its share in turn, so that a tenant with a constant stream
// of entries does not block the others.
func (s *Store) sealShares(
	ctx context.Context, r *sealRound, tenants []string, limit int, sign func(ledger.Checkpoint) ([]byte, error),
) error {
	for len(tenants) > 0 && r.sealed < limit {
		share := max(1, (limit-r.sealed)/len(tenants))
		var more []string
		for _, tenant := range tenants[:min(len(tenants), limit-r.sealed)] {
			n, err := s.sealTenant(ctx, tenant, share, sign)
			r.sealed += n
			switch {
			case errors.Is(err, errSealing):
				return err
			case err != nil:
				r.fail(tenant, err)
			case n == share:
				more = append(more, tenant)
			default:
				delete(r.left, tenant)
			}
		}

		tenants = more
	}

	return nil
}

func (s *Store) sealTenant(
	ctx context.Context, tenant string, limit int, sign func(ledger.Checkpoint) ([]byte, error),
) (sealed int, err error) {
	for sealed < limit {
		step, done := min(limit-sealed, sealStep), sealedStep{}
		err := s.write(ctx, "seal", func(x Tx) (err error) {
			mine, _, err := first(ctx, x, scanInt, "SELECT CASE WHEN "+s.d.SealLock+" THEN 1 ELSE 0 END")
			if err == nil && mine == 0 {
				err = verdict{errSealing}
			}
			if err == nil {
				done, err = s.sealSome(ctx, x, tenant, s.trees.of(tenant), step, sign)
			}
			return err
		})
		if err != nil {
			return sealed, err
		}
		// Learn only what was committed: otherwise another replica may seal different
		// entries up to the same size.
		s.learn(ctx, tenant, done.at, done.seen)
		if done.n > 0 {
			s.changes.happened(tenant)
		}
		if sealed += done.n; done.bad != nil || done.n < step {
			return sealed, done.bad
		}
	}

	return sealed, nil
}

// sealedStep is the result of one transaction that sealed entries.
type sealedStep struct {
	n    int
	at   grown // the tree afterwards
	seen []logged
	bad  error // error of the first entry after them, which was not sealed
}

type unsealed struct {
	seq  int64
	code []byte
	fact
}

const selectUnsealed = "SELECT seq, type, subject, at, version, leaf, code FROM entries WHERE tenant = $1 AND idx " +
	"IS NULL ORDER BY seq LIMIT $2"

func scanUnsealed(r Rows) (e unsealed, err error) {
	return e, r.Scan(&e.seq, &e.kind, &e.subject, &e.at, &e.version, &e.leaf, &e.code)
}

// unsealed reads the entries that wait to be sealed, up to the first one that was not
// written with the key, and returns the error of that one.
func (s *Store) unsealed(ctx context.Context, x Tx, tenant string, limit int) ([]unsealed, error) {
	entries, err := collect(ctx, x, scanUnsealed, selectUnsealed, tenant, int64(limit))
	if err != nil {
		return nil, err
	}
	return s.genuineUnsealed(tenant, entries)
}

func (s *Store) genuineUnsealed(tenant string, entries []unsealed) ([]unsealed, error) {
	for i, e := range entries {
		what := fmt.Sprintf("entry number %d, which is not sealed", e.seq)
		if err := s.genuine(e.code, tenant, what, "entries", e.values(tenant, nil)...); err != nil {
			return entries[:i], err
		}
	}
	return entries, nil
}

// sealSome seals up to limit entries in one transaction. It assigns indexes in the order of
// the entries' numbers among those that are committed by now. An entry of a slower
// transaction comes later, whatever its number. An entry that was not written with the key
// ends the step: only the entries before it are sealed.
func (s *Store) sealSome(
	ctx context.Context, x Tx, tenant string, at grown, limit int, sign func(ledger.Checkpoint) ([]byte, error),
) (out sealedStep, err error) {
	tree, err := s.tree(ctx, x, tenant)
	if err != nil {
		return out, err
	}
	if out.at, out.seen, err = s.follow(ctx, x, tenant, at, tree); err != nil {
		return out, err
	}
	entries, err := s.unsealed(ctx, x, tenant, limit)
	if _, bad := errors.AsType[verdict](err); bad {
		out.bad, err = err, nil
	}
	if err != nil {
		return out, err
	}
	if len(entries) == 0 {
		return out, nil
	}
	s.number(x, tenant, entries, tree.size)
	all := make([]logged, len(entries))
	for i, e := range entries {
		all[i] = logged{e.fact, ledger.LeafHash(e.leaf)}
	}
	if out.at, err = s.grow(ctx, x, tenant, out.at.at(tree.size), tree.size, all, sign); err != nil {
		return out, err
	}
	out.n, out.seen = len(entries), append(out.seen, all...)
	return out, nil
}

// grow writes the hashes and the signed checkpoint of a tree of the given size that grew by
// more entries. known holds hashes of that tree.
func (s *Store) grow(
	ctx context.Context, x Tx, tenant string, known map[int64]ledger.Hash, size int64, all []logged,
	sign func(ledger.Checkpoint) ([]byte, error),
) (grown, error) {
	leaves := make([][]byte, len(all))
	for i, e := range all {
		leaves[i] = e.leaf
	}
	edge := &edge{known: known, store: hashes{ctx, x, tenant}}
	ext, err := ledger.Extend(size, edge, leaves)
	if err != nil {
		return grown{}, err
	}
	checkpoint, err := sign(ledger.Checkpoint{Origin: ledger.Origin(tenant), Size: ext.Size, Root: ext.Root})
	if err != nil {
		return grown{}, verdict{fmt.Errorf("sign the checkpoint of tenant %q: %w", tenant, err)}
	}
	for i, h := range ext.Hashes {
		x.Queue(blind("INSERT INTO hashes (tenant, pos, hash) VALUES ($1, $2, $3)",
			tenant, ext.First+int64(i), slices.Clone(h[:])))
	}
	x.Queue(do(`INSERT INTO trees (tenant, size, root, checkpoint, pruned, code) VALUES ($1, $2, $3, $4, 0, $5)
ON CONFLICT (tenant) DO UPDATE SET size = excluded.size, root = excluded.root, checkpoint = excluded.checkpoint, code = excluded.code`,
		s.auth.coded("trees", tenant, ext.Size, slices.Clone(ext.Root[:]), checkpoint)...))
	return edge.next(ext), nil
}

// edge reads the hashes that a tree grows from: those on its right edge, most of which this
// process knows from the last time.
type edge struct {
	known map[int64]ledger.Hash
	store hashes
	used  map[int64]ledger.Hash
}

func (e *edge) ReadHashes(indexes []int64) (out []ledger.Hash, err error) {
	e.used = make(map[int64]ledger.Hash, len(indexes))
	for _, i := range indexes {
		h, ok := e.known[i]
		if !ok {
			if out, err = e.store.ReadHashes(indexes); err != nil {
				return nil, err
			}
			for n, i := range indexes {
				e.used[i] = out[n]
			}
			return out, nil
		}

		out, e.used[i] = append(out, h), h
	}

	return out, nil
}

// grown is a tree of one size that this process has seen, with the hashes that it needs to
// grow.
type grown struct {
	size   int64
	root   ledger.Hash
	hashes map[int64]ledger.Hash
}

// next returns the grown tree. It keeps the hashes that were used and added, which include
// the edge of the grown tree.
func (e *edge) next(ext ledger.Extension) grown {
	all := e.used
	if all == nil {
		all = map[int64]ledger.Hash{}
	}
	for i, h := range ext.Hashes {
		all[ext.First+int64(i)] = h
	}
	return grown{size: ext.Size, root: ext.Root, hashes: all}
}

// at returns the hashes if they belong to a tree of this size, and nil otherwise: another
// replica may have sealed since.
func (g grown) at(size int64) map[int64]ledger.Hash {
	if g.size != size {
		return nil
	}
	return g.hashes
}

// number gives entries their indexes, starting with from, and the codes of sealed entries.
func (s *Store) number(x Tx, tenant string, entries []unsealed, from int64) {
	numbers := make([]int64, len(entries))
	indexes := make([]int64, len(entries))
	codes := make([][]byte, len(entries))
	for i, e := range entries {
		index := from + int64(i)
		numbers[i] = e.seq
		indexes[i] = index
		codes[i] = s.auth.code("entries", e.values(tenant, &index)...)
	}

	if s.d.Number != "" {
		x.Queue(do(s.d.Number, numbers, indexes, codes))
		return
	}
	for i := range entries {
		x.Queue(
			one(
				"UPDATE entries SET idx = $2, code = $3 WHERE seq = $1 AND idx IS NULL",
				numbers[i],
				indexes[i],
				codes[i],
			),
		)
	}
}

// hashes reads stored hashes of one tree.
type hashes struct {
	ctx    context.Context
	q      querier
	tenant string
}

// readStep limits the placeholders of one statement.
const readStep = 500

func (h hashes) ReadHashes(indexes []int64) ([]ledger.Hash, error) {
	found := make(map[int64]ledger.Hash, len(indexes))
	for part := range slices.Chunk(indexes, readStep) {
		if err := h.read(part, found); err != nil {
			return nil, err
		}
	}
	out := make([]ledger.Hash, len(indexes))
	for i, index := range indexes {
		hash, ok := found[index]
		if !ok {
			return nil, unavailable(
				"read hashes",
				fmt.Errorf("tenant %q has no stored hash %d", h.tenant, index),
			)
		}

		out[i] = hash
	}

	return out, nil
}

func (h hashes) read(indexes []int64, found map[int64]ledger.Hash) error {
	args := []any{h.tenant}
	for _, index := range indexes {
		args = append(args, index)
	}
	type row struct {
		pos  int64
		hash []byte
	}
	rows, err := collect(h.ctx, h.q, func(r Rows) (x row, err error) { return x, r.Scan(&x.pos, &x.hash) },
		"SELECT pos, hash FROM hashes WHERE tenant = $1 AND pos IN ("+marks(2, len(indexes))+")", args...)
	if err != nil {
		return unavailable("read hashes", err)
	}
	for _, r := range rows {
		if len(r.hash) != len(ledger.Hash{}) {
			return unavailable(
				"read hashes",
				fmt.Errorf("stored hash %d of tenant %q has %d bytes", r.pos, h.tenant, len(r.hash)),
			)
		}

		found[r.pos] = ledger.Hash(r.hash)
	}

	return nil
}

// Hashes reads stored hashes of the tenant's tree.
func (s *Store) Hashes(ctx context.Context, tenant string) ledger.HashReader {
	return hashes{ctx, s.eng, tenant}
}

// Checkpoint returns the size and the signed checkpoint of the tenant's tree.
func (s *Store) Checkpoint(ctx context.Context, tenant string) (int64, []byte, error) {
	type row struct {
		size int64
		note []byte
	}
	scan := func(r Rows) (x row, err error) { return x, r.Scan(&x.size, &x.note) }
	c, _, err := find(
		ctx,
		s,
		"read checkpoint",
		scan,
		"SELECT size, checkpoint FROM trees WHERE tenant = $1",
		tenant,
	)
	return c.size, c.note, err
}
