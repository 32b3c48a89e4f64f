package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/approval"
)

// pruneStep is how many rows one transaction redacts.
const pruneStep = 200

// Prune redacts requests, grants and entries in small steps, so that it
// can run beside everything else and be cut off anywhere.
func (s *Store) Prune(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error) {
	if requests, err = s.pruneRequests(ctx, tenant, before); err != nil {
		return requests, 0, err
	}
	if err = s.pruneGrants(ctx, tenant, before); err != nil {
		return requests, 0, err
	}
	entries, err = s.pruneEntries(ctx, tenant, before)
	return requests, entries, err
}

// steps runs one step after the other until one did less than it might.
func (s *Store) steps(ctx context.Context, what string, step func(Tx) (int, error)) (total int, err error) {
	for n := pruneStep; n == pruneStep; total += n {
		err := s.write(ctx, what, func(x Tx) (err error) {
			n, err = step(x)
			return err
		})
		if err != nil {
			return total, err
		}
	}

	return total, nil
}

func (s *Store) pruneRequests(ctx context.Context, tenant string, before time.Time) (int, error) {
	return s.steps(ctx, "prune requests", func(x Tx) (int, error) {
		found, err := collect(
			ctx,
			x,
			scanDocument,
			documents("requests")+` WHERE tenant = $1 AND closed < $2 AND closed IS NOT NULL AND pruned = 0
ORDER BY closed LIMIT $3`+s.d.Lock,
			tenant,
			micros(before),
			int64(pruneStep),
		)
		if err != nil {
			return 0, err
		}
		for _, d := range found {
			if err := s.check("requests", tenant, d, 0); err != nil {
				return 0, verdict{err}
			}
			r, err := parseRequest(d.body)
			if err != nil {
				return 0, err
			}
			left := redacted(r)
			body, err := json.Marshal(left)
			if err != nil {
				return 0, err
			}
			x.Queue(s.updateRequest(tenant, left, rowOf(left), d.version, false, string(body)))
			x.Queue(Stmt{
				SQL:  "UPDATE requests SET pruned = 1 WHERE tenant = $1 AND id = $2",
				Args: []any{tenant, r.ID},
				One:  true,
			})
		}

		return len(found), nil
	})
}

// redacted is what stays of a request: who, what, when and how it
// ended, but nothing that a call carried or people wrote.
func redacted(r *approval.Request) *approval.Request {
	out := *r
	out.Version++
	out.Reason, out.Answer = "", ""
	out.Context, out.Data = nil, nil
	if r.Question != nil { // how many choices there were stays, for the index of the one that was picked
		q := *r.Question
		q.Prompt, q.Schema = "", nil
		q.Choices = make([]string, len(r.Question.Choices))
		out.Question = &q
	}

	out.Revisions = make([]approval.Revision, len(r.Revisions))
	for i, rev := range r.Revisions {
		rev.Note = ""
		rev.Call.Args = nil
		rev.Call.ParentInput = nil
		rev.Call.ToolDefinition = ""
		rev.Decision.Message, rev.Decision.MissingVariables = "", nil
		rev.Decision.Reasons = append(rev.Decision.Reasons[:0:0], rev.Decision.Reasons...)
		for k := range rev.Decision.Reasons {
			rev.Decision.Reasons[k].Detail, rev.Decision.Reasons[k].Matchers = "", nil
		}
		out.Revisions[i] = rev
	}

	out.Votes = append(r.Votes[:0:0], r.Votes...)
	for i := range out.Votes {
		out.Votes[i].Reason, out.Votes[i].Grant = "", nil
		out.Votes[i].Data = nil
	}
	return &out
}

// pruneGrants redacts grants that ended. The live ones need the call
// that they cover.
func (s *Store) pruneGrants(ctx context.Context, tenant string, before time.Time) error {
	_, err := s.steps(ctx, "prune grants", func(x Tx) (int, error) {
		found, err := collect(
			ctx,
			x,
			scanDocument,
			documents(
				"grants",
			)+" WHERE tenant = $1 AND pruned = 0 AND (expires < $2 OR revoked < $2) ORDER BY created LIMIT $3"+s.d.Lock,
			tenant,
			micros(before),
			int64(pruneStep),
		)
		if err != nil {
			return 0, err
		}
		for _, d := range found {
			if err := s.check("grants", tenant, d, 0); err != nil {
				return 0, verdict{err}
			}
			g, err := parse[approval.Grant](d.body)
			if err != nil {
				return 0, err
			}
			g.Call.Args = nil
			g.Call.ParentInput = nil
			g.Call.ToolDefinition = ""
			g.RevokedWhy = ""
			left, err := json.Marshal(g)
			if err != nil {
				return 0, err
			}
			x.Queue(s.updateGrant(tenant, g, d.version, string(left)))
			x.Queue(Stmt{
				SQL:  "UPDATE grants SET pruned = 1 WHERE tenant = $1 AND id = $2",
				Args: []any{tenant, g.ID},
				One:  true,
			})
		}

		return len(found), nil
	})
	return err
}

// pruneEntries walks the sealed entries from the first that may hold
// openings. It looks at all of them, since clocks may have jumped.
func (s *Store) pruneEntries(ctx context.Context, tenant string, before time.Time) (total int, err error) {
	from, _, err := first(ctx, s.eng, scanInt, "SELECT pruned FROM trees WHERE tenant = $1", tenant)
	if err != nil {
		return 0, unavailable("prune entries", err)
	}
	clean := true // nothing so far keeps its openings
	for done := false; !done; {
		var found []span
		if found, err = s.spans(ctx, tenant, from); err != nil {
			return total, err
		}
		done = len(found) < spanStep
		n, next, stillClean, err := s.pruneSpans(ctx, tenant, found, micros(before), from, clean)
		if err != nil {
			return total, err
		}
		total = total + n
		from = next
		clean = stillClean
	}

	n, err := s.pruneUnsealed(ctx, tenant, before)
	return total + n, err
}

const spanStep = 1000

// span is an entry as pruning sees it.
type span struct{ seq, idx, at, open int64 }

func (s *Store) spans(ctx context.Context, tenant string, from int64) ([]span, error) {
	out, err := collect(
		ctx,
		s.eng,
		func(r Rows) (x span, err error) {
			return x, r.Scan(&x.seq, &x.idx, &x.at, &x.open)
		},
		`SELECT seq, idx, at, CASE WHEN openings IS NULL THEN 0 ELSE 1 END FROM entries WHERE tenant = $1 AND idx >= $2 AND idx IS NOT NULL
ORDER BY idx LIMIT $3`,
		tenant,
		from,
		int64(spanStep),
	)
	if err != nil {
		return nil, unavailable("prune entries", err)
	}
	return out, nil
}

// pruneSpans drops the openings of old entries, and notes how far
// nothing is left to drop.
func (s *Store) pruneSpans(
	ctx context.Context, tenant string, found []span, before, from int64, clean bool,
) (n int, next int64, still bool, err error) {
	mark := from
	next = from
	var drop []Stmt
	for _, x := range found {
		next = x.idx + 1
		if x.open == 1 && x.at < before {
			drop = append(drop, Stmt{
				SQL:  "UPDATE entries SET openings = NULL WHERE seq = $1",
				Args: []any{x.seq},
				One:  true,
			})
		}

		if clean = clean && x.at < before; clean {
			mark = next
		}
	}

	if len(drop) == 0 && mark == from {
		return 0, next, clean, nil
	}
	err = s.write(ctx, "prune entries", func(x Tx) error {
		x.Queue(drop...)
		x.Queue(
			Stmt{
				SQL:  "UPDATE trees SET pruned = $2 WHERE tenant = $1 AND pruned < $2",
				Args: []any{tenant, mark},
			},
		)
		return nil
	})
	return len(drop), next, clean, err
}

// pruneUnsealed drops the openings of what is old and not sealed yet.
func (s *Store) pruneUnsealed(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	err = s.write(ctx, "prune entries", func(x Tx) error {
		gone, err := collect(
			ctx,
			x,
			scanInt,
			"UPDATE entries SET openings = NULL WHERE tenant = $1 AND idx IS NULL AND at < $2 AND openings IS NOT "+
				"NULL RETURNING seq",
			tenant,
			micros(before),
		)
		n = len(gone)
		return err
	})
	return n, err
}
