package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/runtime"
)

var _ rap.Calls = (*tools)(nil)

// ofTenant returns the runtimes of a tenant by agent.
func (t *tools) ofTenant(tenant string) map[string]*runtime.Runtime {
	out := map[string]*runtime.Runtime{}
	for key, r := range t.runtimes {
		if of, agent, _ := strings.Cut(key, "\x00"); of == tenant {
			out[agent] = r
		}
	}

	return out
}

// calls returns an implementation of rap.Calls, or nil if there are no runtimes.
func (t *tools) calls() rap.Calls {
	if len(t.runtimes) == 0 {
		return nil
	}

	return t
}

// CallsOf implements rap.Calls.
func (t *tools) CallsOf(ctx context.Context, tenant, person string) ([]rap.AgentCalls, error) {
	var out []rap.AgentCalls
	all := t.ofTenant(tenant)
	for _, agent := range slices.Sorted(maps.Keys(all)) {
		calls, more, err := all[agent].CallsOf(ctx, person)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", agent, err)
		}
		if len(calls) > 0 || more {
			out = append(out, rap.AgentCalls{Agent: agent, Calls: calls, More: more})
		}
	}

	return out, nil
}

// Watch implements rap.Calls.
func (t *tools) Watch(ctx context.Context, tenant string, changed func()) {
	var one sync.Mutex // changed must not be called concurrently
	var all sync.WaitGroup
	for _, r := range t.ofTenant(tenant) {
		all.Go(func() {
			r.Watch(ctx, func() {
				one.Lock()
				defer one.Unlock()
				changed()
			})
		})
	}

	all.Wait()
}
