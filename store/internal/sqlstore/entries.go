package sqlstore

import (
	"context"

	"github.com/assent-dev/assent/approval/ledger"
)

// Limits of one read by Entries. Openings hold arguments, which callers choose, and may
// have megabytes each.
const (
	smallOpenings = 64 << 10 // bytes; larger ones are read one by one
	mostOpenings  = 16 << 20 // bytes of larger ones, unless the first one alone has more
)

// Leaves lists sealed entries without their openings.
func (s *Store) Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error) {
	found, err := list(ctx, s, "list leaves", scanClosed,
		selectClosed+" AND idx >= $2 AND idx IS NOT NULL ORDER BY idx LIMIT $3", tenant, from, int64(limit))
	if err != nil {
		return nil, err
	}
	return s.genuineEntries(tenant, found)
}

// measured is an entry. If its openings are still to be read, it has their size.
type measured struct {
	sealedEntry
	large int64
}

func scanMeasured(r Rows) (m measured, err error) {
	err = r.Scan(&m.Index, &m.kind, &m.subject, &m.at, &m.version, &m.leaf, &m.code, &m.Openings, &m.large)
	m.Leaf = m.leaf
	return m, err
}

// Entries lists sealed entries from an index on, without checking their codes: changed
// entries are found when the log is verified, and an auditor wants to see them.
func (s *Store) Entries(
	ctx context.Context,
	tenant string,
	from int64,
	limit int,
) ([]ledger.SealedEntry, error) {
	found, err := s.entries(ctx, "", tenant, from, int64(limit), int64(smallOpenings))
	if err != nil {
		return nil, err
	}
	out := make([]ledger.SealedEntry, len(found))
	for i, e := range found {
		out[i] = e.SealedEntry
	}

	return out, nil
}

// History lists the sealed entries about one subject from an index on.
func (s *Store) History(
	ctx context.Context, tenant, subject string, from int64, limit int,
) ([]ledger.SealedEntry, error) {
	found, err := s.entries(
		ctx,
		"subject = $5 AND ",
		tenant,
		from,
		int64(limit),
		int64(smallOpenings),
		plain(subject),
	)
	if err != nil {
		return nil, err
	}

	return s.genuineEntries(tenant, found)
}

// entries lists the entries that meet a condition. The first arguments are the tenant, the
// first index, the limit, and the size up to which openings are read with their entry.
func (s *Store) entries(ctx context.Context, where, tenant string, args ...any) ([]sealedEntry, error) {
	found, err := list(
		ctx,
		s,
		"list entries",
		scanMeasured,
		`SELECT idx, type, subject, at, version, leaf, code,
CASE WHEN length(openings) <= $4 THEN openings END,
CASE WHEN length(openings) > $4 THEN length(openings) ELSE 0 END
FROM entries WHERE `+where+`tenant = $1 AND idx >= $2 AND idx IS NOT NULL ORDER BY idx LIMIT $3`,
		append([]any{tenant}, args...)...,
	)
	if err != nil {
		return nil, err
	}
	out, room := make([]sealedEntry, 0, len(found)), int64(mostOpenings)
	for i, m := range found {
		if m.large > room && i > 0 {
			break
		}
		if room -= m.large; m.large > 0 {
			if m.Openings, err = s.openings(ctx, tenant, m.Index); err != nil {
				return nil, err
			}
		}
		out = append(out, m.sealedEntry)
	}

	return out, nil
}

// openings reads the openings of one entry. It returns nil if they were redacted meanwhile.
func (s *Store) openings(ctx context.Context, tenant string, index int64) ([]byte, error) {
	b, _, err := find(ctx, s, "read openings", func(r Rows) (b []byte, err error) { return b, r.Scan(&b) },
		"SELECT openings FROM entries WHERE tenant = $1 AND idx = $2", tenant, index)
	return b, err
}
