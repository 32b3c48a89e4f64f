package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ByRestore is the cause for ending an unused approval after the store was restored from a backup,
// because the call may have run since the backup was made.
const ByRestore Cause = "restored"

// Voided counts what Void changed.
type Voided struct {
	Permits int
	Grants  int
	Freezes int // put in force again
}

// longestPast is the longest window of rules about past calls.
const longestPast = 366 * 24 * time.Hour

// Void ends everything that must not survive a restore: unused approvals and standing approvals. It marks
// that past calls from before now may be missing, so that tests of them are unknown. It puts the given
// freezes, which were in force after the backup was made, in force again until they are lifted. Pending requests stay.
// Void may be called again.
func (s *Service) Void(ctx context.Context, tenant, by string, frozen []Freeze) (Voided, error) {
	var out Voided
	err := s.store.Update(ctx, tenant, func(tx Tx) error {
		now := s.clock.Now()
		tx.SavePast(Past{State: PastRestored, At: now, Until: now.Add(longestPast + pastSlack)})
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("mark the past calls: %w", err)
	}
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

	// list all of them, because only their documents show which ones are live
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

// freezeAgain puts the freezes in force that are not in force, and returns their number.
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

// restored checks that no approval or standing approval was still usable when the store was
// restored.
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
