package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/ledger"
	"github.com/assent-dev/assent/store"
)

// sealStep is how many entries one transaction seals, so that writers wait for it only shortly.
const sealStep = 256

// errSealing says that another replica seals.
var errSealing = errors.New("another replica seals")

// Seal puts entries into the trees of their tenants. What goes wrong for one tenant does not stop the others.
func (s *Store) Seal(ctx context.Context, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (int, error) {
	if !s.sealing.TryLock() {
		return 0, nil
	}
	defer s.sealing.Unlock()
	tenants, err := collect(ctx, s.eng, scanText, "SELECT tenant FROM entries WHERE idx IS NULL GROUP BY tenant ORDER BY min(seq)")
	if err != nil {
		return 0, unavailable("seal", err)
	}
	sealed := 0
	var errs []error
	for len(tenants) > 0 && sealed < limit { // a share for each in turn, so that nobody waits for somebody who is never done
		share := max(1, (limit-sealed)/len(tenants))
		var more []string
		for _, tenant := range tenants[:min(len(tenants), limit-sealed)] {
			n, err := s.sealTenant(ctx, tenant, share, sign)
			sealed += n
			switch {
			case errors.Is(err, errSealing):
				return sealed, errors.Join(errs...)
			case err != nil:
				errs = append(errs, fmt.Errorf("tenant %q: %w", tenant, err))
			case n == share:
				more = append(more, tenant)
			}
		}
		tenants = more
	}
	return sealed, errors.Join(errs...)
}

func (s *Store) sealTenant(ctx context.Context, tenant string, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (sealed int, err error) {
	for sealed < limit {
		step, n, next := min(limit-sealed, sealStep), 0, grown{}
		err := s.write(ctx, "seal", func(x Tx) (err error) {
			n, next, err = s.sealSome(ctx, x, tenant, step, sign)
			return err
		})
		if err != nil {
			return sealed, err
		}
		s.edges[tenant] = next // only what was committed: another replica may seal other entries up to the same size
		if n > 0 {
			s.changes.happened(tenant)
		}
		if sealed += n; n < step {
			break
		}
	}
	return sealed, nil
}

type unsealed struct {
	seq  int64
	leaf []byte
}

// sealSome seals up to limit entries in one transaction. It hands out indexes in the order of the entries' numbers among those that are
// committed by now; a slower transaction's entry comes later, whatever its number.
func (s *Store) sealSome(ctx context.Context, x Tx, tenant string, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (int, grown, error) {
	mine, _, err := first(ctx, x, scanInt, "SELECT CASE WHEN "+s.d.SealLock+" THEN 1 ELSE 0 END")
	if err != nil {
		return 0, grown{}, err
	}
	if mine == 0 {
		return 0, grown{}, verdict{errSealing}
	}
	entries, err := collect(ctx, x, func(r Rows) (e unsealed, err error) { return e, r.Scan(&e.seq, &e.leaf) },
		"SELECT seq, leaf FROM entries WHERE tenant = $1 AND idx IS NULL ORDER BY seq LIMIT $2", tenant, int64(limit))
	if err != nil || len(entries) == 0 {
		return 0, grown{}, err
	}
	size, _, err := first(ctx, x, scanInt, "SELECT size FROM trees WHERE tenant = $1", tenant)
	if err != nil {
		return 0, grown{}, err
	}
	leaves := make([][]byte, len(entries))
	for i, e := range entries {
		leaves[i] = e.leaf
	}
	s.number(x, entries, size)
	edge := &edge{known: s.edges[tenant].at(size), store: hashes{ctx, x, tenant}}
	ext, err := ledger.Extend(size, edge, leaves)
	if err != nil {
		return 0, grown{}, err
	}
	checkpoint, err := sign(ledger.Checkpoint{Origin: ledger.Origin(tenant), Size: ext.Size, Root: ext.Root})
	if err != nil {
		return 0, grown{}, verdict{fmt.Errorf("sign the checkpoint of tenant %q: %w", tenant, err)}
	}
	for i, h := range ext.Hashes {
		x.Queue(Stmt{SQL: "INSERT INTO hashes (tenant, pos, hash) VALUES ($1, $2, $3)", Args: []any{tenant, ext.First + int64(i), slices.Clone(h[:])}, Blind: true})
	}
	x.Queue(Stmt{SQL: `INSERT INTO trees (tenant, size, root, checkpoint, pruned) VALUES ($1, $2, $3, $4, 0)
ON CONFLICT (tenant) DO UPDATE SET size = excluded.size, root = excluded.root, checkpoint = excluded.checkpoint`,
		Args: []any{tenant, ext.Size, slices.Clone(ext.Root[:]), checkpoint}})
	return len(entries), edge.next(ext), nil
}

// edge reads the hashes that a tree grows from: those on its right edge, of which this process knows most from the last time.
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

// grown is what a tree of one size can grow from.
type grown struct {
	size   int64
	hashes map[int64]ledger.Hash
}

// next holds what was used and what was added: the edge of the grown tree is among them.
func (e *edge) next(ext ledger.Extension) grown {
	all := e.used
	if all == nil {
		all = map[int64]ledger.Hash{}
	}
	for i, h := range ext.Hashes {
		all[ext.First+int64(i)] = h
	}
	return grown{ext.Size, all}
}

// at returns the hashes if they are of a tree of this size. Another replica may have sealed since.
func (g grown) at(size int64) map[int64]ledger.Hash {
	if g.size != size {
		return nil
	}
	return g.hashes
}

// number gives entries their indexes, from one on.
func (s *Store) number(x Tx, entries []unsealed, from int64) {
	if s.d.Number == "" {
		for i, e := range entries {
			x.Queue(Stmt{SQL: "UPDATE entries SET idx = $2 WHERE seq = $1 AND idx IS NULL", Args: []any{e.seq, from + int64(i)}, One: true})
		}
		return
	}
	numbers, indexes := make([]int64, len(entries)), make([]int64, len(entries))
	for i, e := range entries {
		numbers[i], indexes[i] = e.seq, from+int64(i)
	}
	x.Queue(Stmt{SQL: s.d.Number, Args: []any{numbers, indexes}})
}

// hashes reads stored hashes of one tree.
type hashes struct {
	ctx    context.Context
	q      querier
	tenant string
}

// readStep bounds the placeholders of one statement.
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
			return nil, unavailable("read hashes", fmt.Errorf("tenant %q has no stored hash %d", h.tenant, index))
		}
		out[i] = hash
	}
	return out, nil
}

func (h hashes) read(indexes []int64, found map[int64]ledger.Hash) error {
	args, names := []any{h.tenant}, make([]string, len(indexes))
	for i, index := range indexes {
		args = append(args, index)
		names[i] = "$" + strconv.Itoa(len(args))
	}
	type row struct {
		pos  int64
		hash []byte
	}
	rows, err := collect(h.ctx, h.q, func(r Rows) (x row, err error) { return x, r.Scan(&x.pos, &x.hash) },
		"SELECT pos, hash FROM hashes WHERE tenant = $1 AND pos IN ("+strings.Join(names, ", ")+")", args...)
	if err != nil {
		return unavailable("read hashes", err)
	}
	for _, r := range rows {
		if len(r.hash) != len(ledger.Hash{}) {
			return unavailable("read hashes", fmt.Errorf("stored hash %d of tenant %q has %d bytes", r.pos, h.tenant, len(r.hash)))
		}
		found[r.pos] = ledger.Hash(r.hash)
	}
	return nil
}

// Hashes reads stored hashes of the tenant's tree.
func (s *Store) Hashes(ctx context.Context, tenant string) ledger.HashReader {
	return hashes{ctx, s.eng, tenant}
}

func scanEntry(r Rows) (e store.Entry, err error) { return e, r.Scan(&e.Index, &e.Leaf, &e.Openings) }

// History lists the sealed entries about one subject.
func (s *Store) History(ctx context.Context, tenant, subject string) ([]store.Entry, error) {
	out, err := collect(ctx, s.eng, scanEntry, "SELECT idx, leaf, openings FROM entries WHERE tenant = $1 AND subject = $2 AND idx IS NOT NULL ORDER BY idx",
		tenant, plain(subject))
	if err != nil {
		return nil, unavailable("list history", err)
	}
	return out, nil
}

// Checkpoint returns the size and the signed checkpoint of the tenant's tree.
func (s *Store) Checkpoint(ctx context.Context, tenant string) (int64, []byte, error) {
	type row struct {
		size int64
		note []byte
	}
	c, _, err := first(ctx, s.eng, func(r Rows) (x row, err error) { return x, r.Scan(&x.size, &x.note) },
		"SELECT size, checkpoint FROM trees WHERE tenant = $1", tenant)
	if err != nil {
		return 0, nil, unavailable("read checkpoint", err)
	}
	return c.size, c.note, nil
}
