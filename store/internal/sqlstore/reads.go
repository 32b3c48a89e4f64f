package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
)

// Request returns one request.
func (s *Store) Request(ctx context.Context, tenant, id string) (*approval.Request, error) {
	seen := s.versions.latest(rowName{tenant, id})
	d, ok, err := first(ctx, s.eng, scanDocument, documents("requests")+" WHERE tenant = $1 AND id = $2", tenant, plain(id))
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

// Similar returns the latest closed requests of the same agent and target.
func (s *Store) Similar(ctx context.Context, tenant, agent, target string, limit int) ([]*approval.Request, error) {
	found, err := collect(ctx, s.eng, scanDocument, documents("requests")+` WHERE tenant = $1 AND agent = $2 AND target = $3 AND closed IS NOT NULL
ORDER BY closed DESC, id DESC LIMIT $4`, tenant, plain(agent), plain(target), int64(limit))
	if err != nil {
		return nil, unavailable("read similar requests", err)
	}
	out := make([]*approval.Request, 0, len(found))
	for _, d := range found {
		if err := s.check("requests", tenant, d, 0); err != nil {
			return nil, err
		}
		r, err := parseRequest(d.body)
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
	d, ok, err := first(ctx, s.eng, scanDocument, documents("grants")+" WHERE tenant = $1 AND id = $2", tenant, plain(id))
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
	found, err := collect(ctx, s.eng, scanDocument, documents("grants")+" WHERE "+where+" ORDER BY created DESC, id DESC", args...)
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
func (s *Store) Votes(ctx context.Context, tenant string, since time.Time, limit int) ([]approval.VoteFact, error) {
	out, err := collect(ctx, s.eng, scanVote, `SELECT request, agent, target, person, verdict, waited, at FROM votes WHERE tenant = $1 AND at >= $2
ORDER BY at DESC, seq DESC LIMIT $3`, tenant, micros(since), int64(limit))
	if err != nil {
		return nil, unavailable("list votes", err)
	}
	return out, nil
}

// Changed returns a channel that is closed at the tenant's next change.
func (s *Store) Changed(tenant string) <-chan struct{} { return s.changes.wait(tenant) }
