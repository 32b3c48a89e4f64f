package sqlstore

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
)

// Request returns one request.
func (s *Store) Request(ctx context.Context, tenant, id string) (*approval.Request, error) {
	d, err := s.document("requests", tenant, id, s.outside(ctx))
	if err != nil {
		return nil, err
	}
	return parseRequest(d.body)
}

// Heads reads columns only, not documents.
func (s *Store) Heads(ctx context.Context, tenant string, ids []string) (map[string]approval.Head, error) {
	type row struct {
		id string
		approval.Head
	}
	out := make(map[string]approval.Head, len(ids))
	for some := range slices.Chunk(ids, headsOnce) {
		where, args := oneOf("id", some, tenant)
		found, err := list(ctx, s, "look at requests", func(r Rows) (x row, err error) {
			return x, r.Scan(&x.id, &x.Version, &x.Bytes)
		}, "SELECT id, version, octet_length(body) FROM requests WHERE tenant = $1 AND "+where, args...)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			out[x.id] = x.Head
		}
	}

	return out, nil
}

// headsOnce is the number of ids in one statement.
const headsOnce = 128

// oneOf returns the condition that a column has one of some values, and appends its
// arguments to before. It rounds the number of values up to a power of two, so that few
// different statements are prepared.
func oneOf(column string, values []string, before ...any) (string, []any) {
	args := before
	for i := range roundUp(len(values)) {
		args = append(args, plain(values[min(i, len(values)-1)]))
	}
	return column + " IN (" + marks(len(before)+1, len(args)-len(before)) + ")", args
}

// roundUp returns the smallest power of two that is not less than n.
func roundUp(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// Loads reads an index only.
func (s *Store) Loads(ctx context.Context, tenant string) (map[string]approval.Load, error) {
	type row struct {
		asker string
		approval.Load
	}
	scan := func(r Rows) (x row, err error) { return x, r.Scan(&x.asker, &x.Requests, &x.Bytes) }
	found, err := list(ctx, s, "count open requests", scan,
		`SELECT asker, count(*), CAST(sum(bytes) AS BIGINT) FROM requests
WHERE tenant = $1 AND state = 'pending' GROUP BY asker`, tenant)
	if err != nil {
		return nil, err
	}
	out := make(map[string]approval.Load, len(found))
	for _, x := range found {
		out[x.asker] = x.Load
	}
	return out, nil
}

// mostSimilar is the number of bytes that Similar reads at most. The first request is
// returned even if it is larger.
const mostSimilar = 4 << 20

// Similar returns the latest closed requests of the same agent and target.
func (s *Store) Similar(
	ctx context.Context,
	tenant, agent, target string,
	limit int,
) ([]*approval.Request, error) {
	type row struct {
		id    string
		bytes int64
	}
	found, err := list(
		ctx,
		s,
		"read similar requests",
		func(r Rows) (x row, err error) { return x, r.Scan(&x.id, &x.bytes) },
		`SELECT id, octet_length(body) FROM requests WHERE tenant = $1 AND agent = $2 AND target = $3 AND closed IS NOT NULL
ORDER BY closed DESC, id DESC LIMIT $4`,
		tenant,
		plain(agent),
		plain(target),
		int64(limit),
	)
	if err != nil {
		return nil, err
	}
	out, room := make([]*approval.Request, 0, len(found)), int64(mostSimilar)
	for i, x := range found {
		if room -= x.bytes; room < 0 && i > 0 {
			break
		}
		r, err := s.Request(ctx, tenant, x.id)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}

	return out, nil
}

// Grant returns one grant.
func (s *Store) Grant(ctx context.Context, tenant, id string) (*approval.Grant, error) {
	d, err := s.document("grants", tenant, id, s.outside(ctx))
	if err != nil {
		return nil, err
	}
	return parse[approval.Grant](d.body)
}

// Grants lists grants, newest first.
func (s *Store) Grants(ctx context.Context, tenant string, all bool, now time.Time) ([]approval.Grant, error) {
	where, args := "tenant = $1", []any{tenant}
	if !all {
		where, args = where+" AND revoked IS NULL AND expires > $2 AND uses < max_uses", append(
			args,
			micros(now),
		)
	}

	found, err := list(ctx, s, "list grants", scanDocument,
		documents("grants")+" WHERE "+where+" ORDER BY created DESC, id DESC", args...)
	if err != nil {
		return nil, err
	}
	return each(found, func(d document) (approval.Grant, error) {
		if err := s.check("grants", tenant, d, 0); err != nil {
			return approval.Grant{}, err
		}
		g, err := parse[approval.Grant](d.body)
		return *g, err
	})
}

// Votes lists vote facts since a time, newest first.
func (s *Store) Votes(
	ctx context.Context, tenant string, since time.Time, limit int,
) ([]approval.VoteFact, error) {
	return list(ctx, s, "list votes", scanVote,
		`SELECT request, agent, target, person, verdict, waited, at FROM votes WHERE tenant = $1 AND at >= $2
ORDER BY at DESC, seq DESC LIMIT $3`, tenant, micros(since), int64(limit))
}

// Changed returns a channel that is closed at the tenant's next change.
func (s *Store) Changed(tenant string) <-chan struct{} { return s.changes.wait(tenant) }
