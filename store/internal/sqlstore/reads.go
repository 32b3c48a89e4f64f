package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
)

// Request returns one request.
func (s *Store) Request(ctx context.Context, tenant, id string) (*approval.Request, error) {
	seen := s.versions.latest(rowName{tenant, id})
	d, ok, err := first(
		ctx,
		s.eng,
		scanDocument,
		documents("requests")+" WHERE tenant = $1 AND id = $2",
		tenant,
		plain(id),
	)
	if err != nil {
		return nil, unavailable("read request", err)
	}
	if !ok {
		return nil, fmt.Errorf("request %q: %w", id, approval.ErrNotFound)
	}
	if err := s.check("requests", tenant, d, seen); err != nil {
		return nil, err
	}
	return parseRequest(d.body)
}

// Heads reads columns only.
func (s *Store) Heads(ctx context.Context, tenant string, ids []string) (map[string]approval.Head, error) {
	type row struct {
		id string
		approval.Head
	}
	out := make(map[string]approval.Head, len(ids))
	for some := range slices.Chunk(ids, headsOnce) {
		where, args := oneOf("id", some, tenant)
		found, err := collect(ctx, s.eng, func(r Rows) (x row, err error) {
			return x, r.Scan(&x.id, &x.Version, &x.Bytes)
		},
			"SELECT id, version, octet_length(body) FROM requests WHERE tenant = $1 AND "+where, args...)
		if err != nil {
			return nil, unavailable("look at requests", err)
		}
		for _, x := range found {
			out[x.id] = x.Head
		}
	}

	return out, nil
}

// headsOnce is how many ids one statement names.
const headsOnce = 128

// oneOf writes the condition that a column is one of some values,
// behind the arguments that there are. The number of values is rounded
// up, so that there are few statements to prepare.
func oneOf(column string, values []string, before ...any) (string, []any) {
	var names []string
	args := before
	for i := range roundUp(len(values)) {
		args = append(args, plain(values[min(i, len(values)-1)]))
		names = append(names, "$"+strconv.Itoa(len(args)))
	}
	return column + " IN (" + strings.Join(names, ", ") + ")", args
}

// roundUp is the next power of two.
func roundUp(n int) int {
	out := 1
	for out < n {
		out *= 2
	}
	return out
}

// Loads reads an index only.
func (s *Store) Loads(ctx context.Context, tenant string) (map[string]approval.Load, error) {
	type row struct {
		asker string
		approval.Load
	}
	scan := func(r Rows) (x row, err error) { return x, r.Scan(&x.asker, &x.Requests, &x.Bytes) }
	found, err := collect(ctx, s.eng, scan, `SELECT asker, count(*), CAST(sum(bytes) AS BIGINT) FROM requests
WHERE tenant = $1 AND state = 'pending' GROUP BY asker`, tenant)
	if err != nil {
		return nil, unavailable("count open requests", err)
	}
	out := make(map[string]approval.Load, len(found))
	for _, x := range found {
		out[x.asker] = x.Load
	}
	return out, nil
}

// mostSimilar is how many bytes Similar reads, unless the first one
// alone has more.
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
	found, err := collect(
		ctx,
		s.eng,
		func(r Rows) (x row, err error) { return x, r.Scan(&x.id, &x.bytes) },
		`SELECT id, octet_length(body) FROM requests WHERE tenant = $1 AND agent = $2 AND target = $3 AND closed IS NOT NULL
ORDER BY closed DESC, id DESC LIMIT $4`,
		tenant,
		plain(agent),
		plain(target),
		int64(limit),
	)
	if err != nil {
		return nil, unavailable("read similar requests", err)
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
	seen := s.versions.latest(rowName{tenant, id})
	d, ok, err := first(
		ctx,
		s.eng,
		scanDocument,
		documents("grants")+" WHERE tenant = $1 AND id = $2",
		tenant,
		plain(id),
	)
	if err != nil {
		return nil, unavailable("read grant", err)
	}
	if !ok {
		return nil, fmt.Errorf("grant %q: %w", id, approval.ErrNotFound)
	}
	if err := s.check("grants", tenant, d, seen); err != nil {
		return nil, err
	}
	return parse[approval.Grant](d.body)
}

// Grants lists grants, newest first.
func (s *Store) Grants(ctx context.Context, tenant string, all bool, now time.Time) ([]approval.Grant, error) {
	where, args := "tenant = $1", []any{tenant}
	if !all {
		where, args = where+" AND revoked IS NULL AND expires > $2 AND uses < max_uses", append(args, micros(now))
	}
	found, err := collect(
		ctx,
		s.eng,
		scanDocument,
		documents("grants")+" WHERE "+where+" ORDER BY created DESC, id DESC",
		args...)
	if err != nil {
		return nil, unavailable("list grants", err)
	}
	out := make([]approval.Grant, 0, len(found))
	for _, d := range found {
		if err := s.check("grants", tenant, d, 0); err != nil {
			return nil, err
		}
		g, err := parse[approval.Grant](d.body)
		if err != nil {
			return nil, err
		}
		out = append(out, *g)
	}

	return out, nil
}

// Votes lists vote facts since a time, newest first.
func (s *Store) Votes(
	ctx context.Context,
	tenant string,
	since time.Time,
	limit int,
) ([]approval.VoteFact, error) {
	out, err := collect(
		ctx,
		s.eng,
		scanVote,
		`SELECT request, agent, target, person, verdict, waited, at FROM votes WHERE tenant = $1 AND at >= $2
ORDER BY at DESC, seq DESC LIMIT $3`,
		tenant,
		micros(since),
		int64(limit),
	)
	if err != nil {
		return nil, unavailable("list votes", err)
	}
	return out, nil
}

// Changed returns a channel that is closed at the tenant's next change.
func (s *Store) Changed(tenant string) <-chan struct{} { return s.changes.wait(tenant) }
