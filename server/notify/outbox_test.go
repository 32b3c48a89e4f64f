package notify_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// outbox is a store.Outbox in memory. Unlike a database it works in a synctest bubble.
type outbox struct {
	mu     sync.Mutex
	jobs   []*leased
	broken error // error of every call
}

type leased struct {
	store.Job
	owner string
	until time.Time
}

func (o *outbox) add(target, payload string, at time.Time) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	job := store.Job{ID: int64(len(o.jobs) + 1), Tenant: "t", State: store.Waiting, RunAt: at, Created: at}
	job.Delivery = approval.Delivery{Target: target, Event: approval.EventOpened, Subject: "req_1", Payload: payload}
	o.jobs = append(o.jobs, &leased{Job: job})
	return job.ID
}

func (o *outbox) get(id int64) store.Job {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.jobs[id-1].Job
}

func (o *outbox) breakWith(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = err
}

func (o *outbox) Claim(
	_ context.Context, owner string, targets []string, now time.Time, lease time.Duration, limit int,
) ([]store.Job, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return nil, o.broken
	}
	var out []store.Job
	for _, j := range o.jobs {
		if len(out) < limit && j.State == store.Waiting && slices.Contains(targets, j.Target) && !j.RunAt.After(now) &&
			!j.until.After(now) {
			j.owner, j.until = owner, now.Add(lease)
			j.Attempt++
			out = append(out, j.Job)
		}
	}

	return out, nil
}

// end changes a job if the owner's claim is still valid.
func (o *outbox) end(owner string, id int64, change func(*leased)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return o.broken
	}
	if j := o.jobs[id-1]; j.owner == owner {
		j.owner, j.until = "", time.Time{}
		change(j)
	}
	return nil
}

func (o *outbox) Delivered(_ context.Context, owner string, id int64, _ time.Time) error {
	return o.end(owner, id, func(j *leased) { j.State, j.Problem = store.Sent, "" })
}

func (o *outbox) Retry(_ context.Context, owner string, id int64, problem string, at time.Time) error {
	return o.end(owner, id, func(j *leased) { j.RunAt, j.Problem = at, problem })
}

func (o *outbox) Bury(_ context.Context, owner string, id int64, problem string, _ time.Time) error {
	return o.end(owner, id, func(j *leased) { j.State, j.Problem = store.DeadEnd, problem })
}

func (o *outbox) Jobs(context.Context, string, store.JobState, int) ([]store.Job, error) {
	return nil, nil
}

func (o *outbox) Redeliver(_ context.Context, _ string, id int64, now time.Time) error {
	return o.end("", id, func(j *leased) { j.State, j.RunAt = store.Waiting, now })
}
