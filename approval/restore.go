package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ByRestore is why an approval ended that nobody had used when the
// store was filled from a backup: its call may have run since.
const ByRestore Cause = "restored"

// Voided says what Void ended.
type Voided struct {
	Permits int
	Grants  int
	Freezes int // that were put in force again
}

// Void ends what must not outlive a restore: approvals that nobody had
// used and standing approvals. Freezes that were in force after the
// backup was made, and are known from elsewhere, are put in force again
// until somebody lifts them. Requests that wait stay. It may be called
// again.
func (s *Service) Void(ctx context.Context, tenant, by string, frozen []Freeze) (Voided, error) {
	var out Voided
	for cursor := ""; ; {
		page, err := s.store.Requests(ctx, tenant, Filter{
			States: []State{Approved},
			Limit:  500,
			Cursor: cursor,
		})
		if err != nil {
			return out, err
		}
		for _, line := range page.Requests {
			ended, err := s.voidPermit(ctx, tenant, line.ID, by)
			if err != nil {
				return out, fmt.Errorf("void the approval of %s: %w", line.ID, err)
			}
			if ended {
				out.Permits++
			}
		}

		if cursor = page.Next; cursor == "" {
			break
		}
	}

	// all: which ones live is for their documents to say
	grants, err := s.store.Grants(ctx, tenant, true, s.clock.Now())
	if err != nil {
		return out, err
	}
	for _, g := range grants {
		if !g.Live(s.clock.Now()) {
			continue
		}
		if _, err := s.Revoke(ctx, tenant, g.ID, by, "the store was restored"); err != nil {
			return out, fmt.Errorf("void the standing approval %s: %w", g.ID, err)
		}
		out.Grants++
	}

	out.Freezes, err = s.freezeAgain(ctx, tenant, by, frozen)
	return out, err
}

func (s *Service) voidPermit(ctx context.Context, tenant, id, by string) (ended bool, err error) {
	_, err = s.change(ctx, tenant, id, func(_ Tx, r *Request, now time.Time) (step, error) {
		if ended = r.State == Approved; !ended {
			return step{}, nil
		}
		return step{events: []Event{r.withdraw(ByRestore, by, "", now)}, changed: true}, nil
	})
	return ended, err
}

// freezeAgain puts in force what is not.
func (s *Service) freezeAgain(ctx context.Context, tenant, by string, frozen []Freeze) (n int, err error) {
	err = s.store.Update(ctx, tenant, func(tx Tx) error {
		n = 0
		there, err := tx.Freezes()
		if err != nil {
			return fmt.Errorf("read the freezes: %w", err)
		}
		for _, f := range frozen {
			if slices.ContainsFunc(there, func(o Freeze) bool { return o.Agent == f.Agent }) {
				continue
			}
			n++
			f.Lifted = nil
			tx.SaveFreeze(f)
			e := aboutFreeze(EventFrozen, by, f.Agent, f.Reason)
			e.Facts["restored"] = true
			if err := s.append(tx, tenant, s.clock.Now(), nil, e); err != nil {
				return err
			}
		}

		return nil
	})
	return n, err
}

// restored holds the ledger to what a restore promises: nothing that it
// found approved may run.
func (a *Auditor) restored(e *auditEntry) {
	for _, id := range slices.Sorted(maps.Keys(a.requests)) {
		if a.requests[id].state == Approved {
			e.fail("the approval of %s was not voided", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.grants)) {
		if g := a.grants[id]; !g.revoked && g.uses < g.most && e.Time.Before(g.expires) {
			e.fail("the standing approval %s was not voided", id)
		}
	}
}
