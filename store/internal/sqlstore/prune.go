package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/approval"
)

// pruneStep is the number of rows that one transaction redacts.
const pruneStep = 200

// Prune redacts requests, grants and entries in small steps. It can run while the store is
// in use, and may be interrupted at any point.
func (s *Store) Prune(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error) {
	if requests, err = s.pruneRequests(ctx, tenant, before); err != nil {
		return requests, 0, err
	}
	if err = s.pruneGrants(ctx, tenant, before); err != nil {
		return requests, 0, err
	}
	if entries, err = s.pruneEntries(ctx, tenant, before); err != nil {
		return requests, entries, err
	}
	if e, ok := s.eng.(eraser); ok {
		err = e.Erase(ctx)
	}
	return requests, entries, err
}

// eraser is an engine whose files keep the texts of deleted rows until Erase is called.
type eraser interface {
	// Erase removes deleted data from the files.
	Erase(ctx context.Context) error
}

// Prunable counts the rows that Prune would redact now.
func (s *Store) Prunable(ctx context.Context, tenant string, before time.Time) (requests, entries int, err error) {
	count := func(sql string) (n int64, err error) {
		n, _, err = find(ctx, s, "count what can be pruned", scanInt, sql, tenant, micros(before))
		return n, err
	}
	r, err := count("SELECT count(*) FROM requests WHERE tenant = $1 AND " + oldRequests)
	if err != nil {
		return 0, 0, err
	}
	e, err := count("SELECT count(*) FROM entries WHERE tenant = $1 AND " + oldOpenings)
	return int(r), int(e), err
}

// oldRequests is the condition for requests that ended before $2 and are not redacted yet.
const oldRequests = "closed < $2 AND closed IS NOT NULL AND pruned = 0"

// oldOpenings is the condition for entries from before $2 that hold openings, except those
// about requests that are open or ended later, and about grants that may still be used: the
// ledger must be able to show what was approved.
const oldOpenings = `at < $2 AND openings IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.tenant = entries.tenant AND r.id = entries.subject
  AND (r.closed IS NULL OR r.closed >= $2))
AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.tenant = entries.tenant AND g.id = entries.subject
  AND g.expires >= $2 AND (g.revoked IS NULL OR g.revoked >= $2))`

// steps calls step until it handles fewer rows than a full step.
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
	const old = oldRequests + " ORDER BY closed"
	return s.pruneDocuments(ctx, "requests", tenant, before, old, func(d document) ([]Stmt, error) {
		r, err := parseRequest(d.body)
		if err != nil {
			return nil, err
		}
		left := redacted(r)
		body, err := json.Marshal(left)
		now := rowOf(left)
		update := s.updateRequest(tenant, left, now, d.version, false, true, string(body))
		return append(changeKeys(tenant, rowOf(r), now), update), err
	})
}

// pruneDocuments redacts the rows of a table that meet a condition, each with the
// statements that redact returns for it.
func (s *Store) pruneDocuments(
	ctx context.Context, table, tenant string, before time.Time, old string, redact func(document) ([]Stmt, error),
) (int, error) {
	return s.steps(ctx, "prune "+table, func(x Tx) (int, error) {
		found, err := collect(ctx, x, scanDocument,
			documents(table)+" WHERE tenant = $1 AND "+old+" LIMIT $3"+s.d.Lock,
			tenant, micros(before), int64(pruneStep))
		for _, d := range found {
			if err := s.check(table, tenant, d, 0); err != nil {
				return 0, err
			}
			left, err := redact(d)
			if err != nil {
				return 0, err
			}
			x.Queue(left...)
			x.Queue(one("UPDATE "+table+" SET pruned = 1 WHERE tenant = $1 AND id = $2", tenant, d.id))
		}

		return len(found), err
	})
}

// redacted returns a copy of a request that keeps who, what, when and how it ended, but
// nothing that a call carried or people wrote.
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

// pruneGrants redacts grants that ended. Live grants still need the call that they cover.
func (s *Store) pruneGrants(ctx context.Context, tenant string, before time.Time) error {
	const old = "pruned = 0 AND (expires < $2 OR revoked < $2) ORDER BY created"
	_, err := s.pruneDocuments(ctx, "grants", tenant, before, old, func(d document) ([]Stmt, error) {
		g, err := parse[approval.Grant](d.body)
		if err != nil {
			return nil, err
		}
		g.Call.Args = nil
		g.Call.ParentInput = nil
		g.Call.ToolDefinition = ""
		g.RevokedWhy = ""
		left, err := json.Marshal(g)
		return []Stmt{s.updateGrant(tenant, g, d.version, string(left))}, err
	})
	return err
}

// pruneEntries walks the sealed entries from the first one that may hold openings. It reads
// all of them, because the clock may have jumped.
func (s *Store) pruneEntries(ctx context.Context, tenant string, before time.Time) (total int, err error) {
	type stretch struct{ from, end int64 }
	sealed, _, err := find(ctx, s, "prune entries", func(r Rows) (x stretch, err error) {
		return x, r.Scan(&x.from, &x.end)
	}, "SELECT pruned, (SELECT max(idx) + 1 FROM entries WHERE tenant = $1 AND idx IS NOT NULL) FROM trees WHERE tenant = $1 AND size > 0",
		tenant)
	for from := sealed.from; err == nil && from < sealed.end; from += spanStep {
		var n int
		n, err = s.dropOpenings(ctx, "idx >= $3 AND idx < $4", tenant, micros(before), from, from+spanStep)
		total += n
	}

	if err == nil {
		err = s.exec(
			ctx,
			"prune entries",
			do(
				`UPDATE trees SET pruned = coalesce((SELECT idx FROM entries
WHERE tenant = $1 AND idx >= trees.pruned AND openings IS NOT NULL ORDER BY idx LIMIT 1), size) WHERE tenant = $1`,
				tenant,
			),
		)
	}

	if err != nil {
		return total, err
	}
	n, err := s.dropOpenings(ctx, "idx IS NULL", tenant, micros(before))
	return total + n, err
}

const spanStep = 1000 // entries

// dropOpenings deletes the openings of the entries that meet a condition, and counts them.
func (s *Store) dropOpenings(ctx context.Context, which string, args ...any) (n int, err error) {
	err = s.write(ctx, "prune entries", func(x Tx) error {
		gone, err := collect(ctx, x, scanInt, "UPDATE entries SET openings = NULL WHERE tenant = $1 AND "+
			oldOpenings+" AND "+which+" RETURNING seq", args...)
		n = len(gone)
		return err
	})
	return n, err
}
