package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

const selectJobs = "SELECT id, tenant, target, event, subject, payload, state, attempt, run_at, problem, created, " +
	"code FROM deliveries WHERE "

// jobRow is a delivery with its code.
type jobRow struct {
	store.Job
	code []byte
}

func scanJob(r Rows) (j jobRow, err error) {
	var state string
	var attempt, runAt, created int64
	err = r.Scan(
		&j.ID,
		&j.Tenant,
		&j.Target,
		&j.Event,
		&j.Subject,
		&j.Payload,
		&state,
		&attempt,
		&runAt,
		&j.Problem,
		&created,
		&j.code,
	)
	j.State = store.JobState(state)
	j.Attempt = int(attempt)
	j.RunAt = moment(runAt)
	j.Created = moment(created)
	return j, err
}

// Claim leases deliveries to owner: no other worker gets them until the lease ends.
func (s *Store) Claim(
	ctx context.Context, owner string, targets []string, now time.Time, lease time.Duration, limit int,
) (jobs []store.Job, err error) {
	if len(targets) == 0 || limit <= 0 {
		return nil, nil
	}
	args := []any{micros(now), int64(limit)}
	for _, t := range targets {
		args = append(args, t)
	}
	due := "state = 'waiting' AND run_at <= $1 AND target IN (" + marks(3, len(targets)) + ")"
	idle, _, err := find(ctx, s, "claim deliveries", scanInt,
		"SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE "+due+" LIMIT $2) AS waiting", args...)
	if err != nil || idle == 0 { // the usual case, which costs no write
		return nil, err
	}
	err = s.write(ctx, "claim deliveries", func(x Tx) error {
		jobs = nil
		found, err := collect(ctx, x, scanJob,
			selectJobs+due+" ORDER BY run_at, id LIMIT $2"+s.d.SkipLocked, args...)
		for _, row := range found {
			j := row.Job
			if err := s.genuineJob(row); err != nil { // a forged delivery is not sent
				x.Queue(
					one("UPDATE deliveries SET state = 'dead', problem = $2 WHERE id = $1", j.ID, err.Error()),
				)
				continue
			}

			j.Attempt++
			j.RunAt = moment(micros(now.Add(lease)))
			x.Queue(
				one(
					"UPDATE deliveries SET owner = $2, attempt = attempt + 1, run_at = $3 WHERE id = $1",
					j.ID,
					owner,
					micros(j.RunAt),
				),
			)
			jobs = append(jobs, j)
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

func (s *Store) genuineJob(j jobRow) error {
	what := "delivery " + strconv.FormatInt(j.ID, 10)
	return s.genuine(
		j.code,
		j.Tenant,
		what,
		"deliveries",
		j.Tenant,
		j.Target,
		j.Event,
		j.Subject,
		j.Payload,
		micros(j.Created),
	)
}

// end ends a claim if owner still holds it.
func (s *Store) end(
	ctx context.Context, what string, state store.JobState, owner string, id int64, problem string, at time.Time,
) error {
	return s.exec(
		ctx,
		what,
		do("UPDATE deliveries SET state = $5, owner = '', problem = $3, run_at = $4 "+
			"WHERE id = $1 AND owner = $2 AND state = 'waiting'", id, owner, plain(problem), micros(at), string(state)),
	)
}

// Delivered ends a claim of a delivery that arrived.
func (s *Store) Delivered(ctx context.Context, owner string, id int64, now time.Time) error {
	return s.end(ctx, "end delivery", store.Sent, owner, id, "", now)
}

// Retry makes a delivery due again at a time.
func (s *Store) Retry(ctx context.Context, owner string, id int64, problem string, at time.Time) error {
	return s.end(ctx, "retry delivery", store.Waiting, owner, id, problem, at)
}

// Bury marks a delivery as dead: it is not tried again.
func (s *Store) Bury(ctx context.Context, owner string, id int64, problem string, now time.Time) error {
	return s.end(ctx, "bury delivery", store.DeadEnd, owner, id, problem, now)
}

// Jobs lists deliveries, newest first. An empty state lists all of them.
func (s *Store) Jobs(ctx context.Context, tenant string, state store.JobState, limit int) ([]store.Job, error) {
	where, args := "tenant = $1", []any{tenant, int64(limit)}
	if state != "" {
		where, args = where+" AND state = $3", append(args, string(state))
	}
	found, err := list(ctx, s, "list deliveries", scanJob, selectJobs+where+" ORDER BY id DESC LIMIT $2", args...)
	if err != nil {
		return nil, err
	}
	var out []store.Job
	for _, row := range found {
		out = append(out, row.Job)
	}
	return out, nil
}

// Redeliver makes a dead delivery due again and resets its number of attempts.
func (s *Store) Redeliver(ctx context.Context, tenant string, id int64, now time.Time) error {
	return s.write(ctx, "redeliver", func(x Tx) error {
		_, ok, err := first(
			ctx,
			x,
			scanInt,
			`UPDATE deliveries SET state = 'waiting', attempt = 0, run_at = $3, owner = ''
WHERE tenant = $1 AND id = $2 AND state = 'dead' RETURNING id`,
			tenant,
			id,
			micros(now),
		)
		if err == nil && !ok {
			return verdict{fmt.Errorf("dead delivery %d: %w", id, approval.ErrNotFound)}
		}
		return err
	})
}

// sentKept is how long a delivery stays in the list after it arrived.
const sentKept = 7 * 24 * time.Hour

// sweepSent deletes deliveries that arrived long ago. It reads only the oldest of each
// tenant, step by step, so the cost of a step does not depend on how many arrived since.
func (s *Store) sweepSent(ctx context.Context, now time.Time) error {
	const old = `SELECT id FROM (SELECT id, run_at FROM deliveries WHERE tenant = $1 AND state = 'sent' ORDER BY id ` +
		`LIMIT $3) AS oldest WHERE run_at < $2`
	tenants, err := s.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		args := []any{tenant, micros(now.Add(-sentKept)), int64(sweepStep)}
		for {
			_, found, err := find(ctx, s, "sweep deliveries", scanInt, old, args...)
			if err != nil {
				return err
			}
			if !found { // the usual case, which costs no write
				break
			}
			gone := do("DELETE FROM deliveries WHERE id IN ("+old+")", args...)
			if err := s.exec(ctx, "sweep deliveries", gone); err != nil {
				return err
			}
		}
	}

	return nil
}
