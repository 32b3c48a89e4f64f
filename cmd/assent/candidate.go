package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/candidate"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
)

// partCandidate is the part of what calls are compared with. Nothing is
// decided by it.
const partCandidate = "candidate"

// compare begins to compare a tenant's calls, if a candidate is given.
func (t *tenant) compare(live plans.Config) {
	if t.cfg.Candidate == "" {
		return
	}
	t.candidate = candidate.New(candidate.Config{
		Dir:    t.cfg.Candidate,
		Live:   live,
		Plans:  t.plans,
		Now:    time.Now,
		Logger: t.log.With("tenant", t.cfg.Name),
	})
}

// candidateLoaded is what /readyz tells of the candidate.
func (t *tenant) candidateLoaded(problems bool) []openapi.Loaded {
	if t.candidate == nil {
		return nil
	}
	state := t.candidate.Files()
	l := openapi.Loaded{Part: partCandidate, Digest: state.Digest, Count: state.Agents}
	if problems {
		l.Problems = state.Problems
	}
	return []openapi.Loaded{l}
}

// watcher hands the calls of tenants to their candidates; nil: no
// tenant has one.
func (ts tenants) watcher() approval.Watcher {
	for _, t := range ts {
		if t.candidate != nil {
			return watcher{ts}
		}
	}
	return nil
}

// watcher is an approval.Watcher.
type watcher struct{ tenants tenants }

func (w watcher) of(tenant string) *candidate.Candidate {
	if t := w.tenants[tenant]; t != nil {
		return t.candidate
	}
	return nil
}

func (w watcher) Decided(tenant string, by *approval.Compiled, call *resolve.Call, outcome resolve.Outcome) {
	if c := w.of(tenant); c != nil {
		c.Decided(by, call, outcome)
	}
}

func (w watcher) Denied(r *approval.Request) {
	if c := w.of(r.Tenant); c != nil {
		c.Denied(r)
	}
}

// candidateErr is what is wrong with the candidates' files.
func (ts tenants) candidateErr(context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		c := ts[name].candidate
		if c == nil {
			continue
		}
		if err := c.Err(); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", name, err))
		}
	}

	return errors.Join(errs...)
}

// candidateCounts is server.Config.CandidateCounts.
func (ts tenants) candidateCounts() func() ([]candidate.Count, uint64) {
	if ts.watcher() == nil {
		return nil
	}
	return func() (sum []candidate.Count, dropped uint64) {
		for _, t := range ts {
			if t.candidate == nil {
				continue
			}
			all, lost := t.candidate.Counts()
			if sum == nil {
				sum = make([]candidate.Count, len(all))
			}
			for i, one := range all {
				one.Calls += sum[i].Calls
				sum[i] = one
			}
			dropped += lost
		}

		return sum, dropped
	}
}

// candidateOf is server.Config.Candidate.
func (ts tenants) candidateOf(name string) *candidate.Candidate {
	return watcher{ts}.of(name)
}
