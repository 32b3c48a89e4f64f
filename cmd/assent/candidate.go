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

// partCandidate is the name of the candidate rules that calls are compared with. They decide
// nothing.
const partCandidate = "candidate"

// compare starts comparing a tenant's calls with its candidate, if one is configured.
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

// candidateLoaded returns the state of the candidate for /readyz.
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

// watcher returns a watcher that passes the calls of tenants to their candidates, or nil if no
// tenant has one.
func (ts tenants) watcher() approval.Watcher {
	for _, t := range ts {
		if t.candidate != nil {
			return watcher{ts}
		}
	}
	return nil
}

// watcher implements approval.Watcher.
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

// candidateErr returns the errors in the candidates' files.
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

// candidateCounts returns the function for server.Config.CandidateCounts.
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

// candidateOf implements server.Config.Candidate.
func (ts tenants) candidateOf(name string) *candidate.Candidate {
	return watcher{ts}.of(name)
}
