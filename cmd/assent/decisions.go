package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/cmd/internal/registry"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/policyhttp"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
)

// load loads agents with their policies, and the decision configuration if one is named.
func (f *files) load(cfg *plans.Config, chosen *term.Decisions) (err error) {
	if chosen != nil {
		f.file = chosen.File
		f.source = registry.NewSource(chosen.File, func(err error) {
			f.log.Warn("the copy of the policy registry can't be kept", "tenant", f.tenant, "error", err)
		})
		cfg.Decisions = &plans.Decisions{
			File:   chosen.File,
			Retain: f.source.Retain,
			Open: func(c *resolve.Config) (plans.Sources, error) {
				dirs, from, err := f.source.Open(c)

				return plans.Sources{Policies: dirs, Registry: from}, err
			},
		}
	}

	if f.plans, err = plans.Load(*cfg); err == nil {
		f.tellChoices()
	}

	return err
}

// tellChoices logs the decision configuration when it has changed and what the change loosens. It
// warns if an expired request counts as approval.
func (f *files) tellChoices() {
	now, before := f.plans.Chosen(), f.told
	if now == nil || before != nil && before.Digest() == now.Digest() {
		return
	}
	f.told = now
	log := f.log.With("tenant", f.tenant, "file", f.file, "digest", now.Digest())
	log.Info("the decision configuration is in force", "permit_age", policy.FormatDuration(now.PermitAge))
	if before != nil {
		if loosened := now.Loosened(before); len(loosened) > 0 {
			log.Warn("the decision configuration lets more through than before", "loosened", loosened)
		}
	}

	if now.ApproveOnTimeout {
		log.Warn(approvesOnTimeout)
	}
}

// approvesOnTimeout is the warning that a start, a change or a check prints if the owner opted in
// to approval by timeout.
const approvesOnTimeout = "APPROVAL BY TIMEOUT is on: a call runs that nobody decided in time, where a policy says " +
	"on_timeout: approve"

// factLoosened is the ledger's fact that lists what a change newly allows.
const factLoosened = "loosened"

// choices returns the facts about the decision configuration for the ledger.
func (f *files) choices() map[string]any {
	c := f.plans.Chosen()
	facts := map[string]any{
		"digest":              c.Digest(),
		"approve_on_timeout":  c.ApproveOnTimeout,
		"permit_age":          policy.FormatDuration(c.PermitAge),
		"replace_permissions": c.ReplacePermissions,
		"undeclared":          undeclared(c),
	}
	if f.ledgered == nil {
		return facts
	}
	var loosened []any
	for _, field := range c.Loosened(f.ledgered) {
		loosened = append(loosened, field)
	}
	if len(loosened) > 0 {
		facts[factLoosened] = loosened
	}

	return facts
}

// undeclared returns the outcome for calls to tools that the agent's file does not declare.
func undeclared(c *resolve.Config) string {
	if c.Undeclared == "" {
		return "deny"
	}

	return c.Undeclared
}

// inForce implements server.Config.Agents.
func (ts tenants) inForce(name string) openapi.Agents {
	out := openapi.Agents{Agents: []openapi.AgentInForce{}}
	t, ok := ts[name]
	if !ok {
		return out
	}
	if chosen := t.plans.Chosen(); chosen != nil {
		out.Configuration = chosen.Digest()
		out.ApproveOnTimeout = chosen.ApproveOnTimeout
		out.ReplacePermissions = chosen.ReplacePermissions
		out.PermitAge = policy.FormatDuration(chosen.PermitAge)
		out.Undeclared = undeclared(chosen)
	}

	if fetched, ok := t.plans.Registry().(*policyhttp.Registry); ok {
		out.Registry = registryInForce(fetched.State(), time.Now())
	}
	for _, id := range t.plans.Agents() {
		c, err := t.plans.Plan(context.Background(), name, id)
		if err != nil {
			continue // it is gone meanwhile, or its policies are
		}
		a := openapi.AgentInForce{
			ID:            id,
			Name:          c.Agent.Name,
			Version:       c.Agent.Version,
			Plan:          c.Plan.Version(),
			Configuration: c.Plan.Configuration(),
		}
		for _, f := range c.Plan.Findings() {
			a.Found = append(a.Found, found(f))
		}
		a.Findings = len(a.Found)
		out.Agents = append(out.Agents, a)
	}

	return out
}

// found formats a finding on one line. It omits the directory of the file, which should not be
// visible outside the server.
func found(f diag.Finding) string {
	return fmt.Sprintf("%s:%d:%d: %s", filepath.Base(f.File), f.Range.Start.Line, f.Range.Start.Column, f.Message)
}

// registryInForce describes the state of a registry.
func registryInForce(s policyhttp.State, now time.Time) *openapi.RegistryInForce {
	out := &openapi.RegistryInForce{
		Origin: s.Origin,
		Keep:   policy.FormatDuration(s.MaxAge),
		State:  openapi.RegistryStateFresh,
	}
	if !s.Confirmed.IsZero() {
		out.Confirmed = s.Confirmed.UTC().Format(time.RFC3339)
		out.Age = now.Sub(s.Confirmed).Round(time.Second).String()
	}
	switch {
	case !s.Usable:
		out.State = openapi.RegistryStateUnavailable
	case s.Failure != nil:
		out.State = openapi.RegistryStateStale
	}

	if s.Failure != nil {
		out.Problem = s.Failure.Error()
	}

	return out
}
