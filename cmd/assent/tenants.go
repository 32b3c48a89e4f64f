package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/candidate"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/value"
)

// tenant holds the parts of one tenant.
type tenant struct {
	files
	cfg    config.Tenant
	people directory.Base
	groups []string // that policies name
	// candidate holds the rules that calls are compared with. It is nil if there are none.
	candidate *candidate.Candidate
}

// tenants holds all tenants by name. It is the Planner of the service.
type tenants map[string]*tenant

func loadTenants(cfg config.Serve, log *slog.Logger) (tenants, error) {
	out := tenants{}
	for _, c := range cfg.Tenants {
		t, err := loadTenant(c, cfg.OnBrokenFiles == config.DenyBroken, callLimits(cfg.Limits), log)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", c.Name, err)
		}
		out[c.Name] = t
	}

	return out, nil
}

func loadTenant(
	cfg config.Tenant,
	denyBroken bool,
	limits value.Limits,
	log *slog.Logger,
) (t *tenant, err error) {
	t = &tenant{
		files:  files{tenant: cfg.Name, log: log},
		cfg:    cfg,
		groups: groupsOf(cfg.Policies),
	}
	log = log.With("tenant", cfg.Name)
	load := planConfig(cfg, limits)
	load.DenyBroken = denyBroken
	load.Logger = log
	if err := t.load(&load, cfg.Chosen); err != nil {
		return nil, err
	}
	t.compare(load)

	if cfg.People == "" {
		t.people, err = everybody(append(slices.Clone(t.groups), t.admins()))
		return t, err
	}
	if t.watch, err = directory.Watch(cfg.People, directory.WatchOptions{ClosedGroups: cfg.OIDC != nil,
		DenyBroken: denyBroken}); err != nil {
		return nil, err
	}
	t.people = t.watch
	if !cfg.Admins.FromSignIn {
		t.people = directory.Reserve(t.people, t.admins())
	}
	return t, nil
}

// planConfig returns the configuration of a tenant's plans without its decision configuration.
func planConfig(cfg config.Tenant, limits value.Limits) plans.Config {
	var points resolve.Semantics
	if cfg.AskUndeclared {
		points.Undeclared = resolve.UndeclaredAsk
	}
	return plans.Config{
		Agents:   cfg.Agents,
		Policies: cfg.Policies,
		Options: resolve.Options{
			Semantics:      points,
			Limits:         limits,
			TrustedServers: cfg.TrustedServers,
			CaseSensitive:  cfg.CaseSensitive,
		},
	}
}

// admins returns the group that may freeze, thaw and redeliver in the inbox.
func (t *tenant) admins() string { return cmp.Or(t.cfg.Admins.Group, "admins") }

// groupsOf lists the groups that policies name. It skips policies that can't be read, because the
// planner reports them.
func groupsOf(dirs []string) []string {
	names := map[string]bool{}
	for _, p := range policiesOf(dirs) {
		for i := range p.Rules {
			stages := slices.Clone(p.Rules[i].Require.Stages)
			for _, alternatives := range p.Rules[i].Require.AnyOf {
				stages = append(stages, slices.Concat(alternatives...)...)
			}
			for _, stage := range stages {
				names[stage.Group] = true
			}
			for _, e := range p.Rules[i].Require.Escalate {
				names[e.To] = true
			}
		}
	}

	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// everybody returns the directory of --dev without people.yaml: one approver named you, who is in
// every group.
func everybody(groups []string) (directory.Base, error) {
	var text strings.Builder
	text.WriteString("schema_version: \"1.0.0\"\nreaders: everybody\npeople:\n  - id: you\n    name: You\n    groups: [")
	for _, g := range groups {
		fmt.Fprintf(&text, "%q, ", g)
	}
	text.WriteString("]\n")
	d, findings := people.Parse("the people of --dev", []byte(text.String()))
	if d == nil {
		return nil, &directory.BrokenError{File: "the people of --dev", Findings: findings}
	}
	return d, nil
}

// Plan returns the plan of a tenant's agent.
func (ts tenants) Plan(ctx context.Context, name, agent string) (*approval.Compiled, error) {
	t, ok := ts[name]
	if !ok {
		return nil, fmt.Errorf("tenant %q is not served here: %w", name, approval.ErrUnknownAgent)
	}
	return t.plans.Plan(ctx, name, agent)
}

// Past returns what the rules of a tenant's agents read of past calls.
func (ts tenants) Past(name string) *approval.PastRules {
	if t, ok := ts[name]; ok {
		return t.plans.Past(name)
	}
	return nil
}

func (ts tenants) directories() directory.Tenants {
	out := directory.Tenants{}
	for name, t := range ts {
		out[name] = t.people
	}
	return out
}

// warnOfEmptyGroups warns about groups without members that policies or questions of tool servers
// name. Requests to them expire without an answer.
func (ts tenants) warnOfEmptyGroups(ctx context.Context, dir approval.Directory, log *slog.Logger) {
	for name, t := range ts {
		for _, group := range t.groups {
			t.warnOfEmptyGroup(ctx, dir, log, name, group, "a policy asks a group that nobody is in")
		}

		if t.cfg.RAP == nil {
			continue
		}
		for _, runtime := range t.cfg.RAP.Runtimes {
			for _, server := range runtime.Servers {
				for _, group := range server.AnsweredBy {
					t.warnOfEmptyGroup(
						ctx,
						dir,
						log.With("server", server.Name),
						name,
						group,
						"questions of a tool server go to a group that nobody is in",
					)
				}
			}
		}
	}
}

func (t *tenant) warnOfEmptyGroup(
	ctx context.Context, dir approval.Directory, log *slog.Logger, name, group, message string,
) {
	members, err := dir.Members(ctx, name, group)
	if err == nil && len(members) > 0 {
		return
	}
	hint := "add people to it in people.yaml"
	if t.cfg.OIDC != nil {
		hint = "add people to it in people.yaml, unless sign-ins bring it"
	}
	facts := []any{"tenant", name, "group", group, "hint", hint}
	if err != nil {
		facts = append(facts, "error", err)
	}
	log.Warn(message, facts...)
}

// providers returns the identity providers of the tenants.
func (ts tenants) providers() ([]auth.Provider, error) {
	var out []auth.Provider
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		o := ts[name].cfg.OIDC
		if o == nil {
			continue
		}
		secret := ""
		if o.ClientSecretFile != "" {
			var err error
			if secret, err = readSecret(o.ClientSecretFile); err != nil {
				return nil, fmt.Errorf("tenant %s: the client's secret: %w", name, err)
			}
		}

		out = append(out, auth.Provider{
			ID:           providerID(name),
			Title:        o.Name,
			Tenant:       name,
			Issuer:       o.Issuer,
			ClientID:     o.ClientID,
			ClientSecret: secret,
			Scopes:       o.Scopes,
			GroupsClaim:  o.GroupsClaim,
		})
	}

	return out, nil
}

// providerID converts a tenant's name to a part of an address.
func providerID(name string) string {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.TrimLeft(id, "-")
}

// readSecret reads a secret from a file. Its errors don't contain the secret.
func readSecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if s := strings.TrimSpace(string(text)); s != "" {
		return s, nil
	}
	return "", fmt.Errorf("%s is empty", file)
}

// record writes to the ledger which files are in force.
func (ts tenants) record(ctx context.Context, record recorder) error {
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		if err := ts[name].record(ctx, record); err != nil {
			return fmt.Errorf("tenant %s: record which files are in force: %w", name, err)
		}
	}
	return nil
}

// run reloads the files of all tenants when they change.
func (ts tenants) run(ctx context.Context, record recorder) {
	var all sync.WaitGroup
	for _, t := range ts {
		all.Go(func() { t.follow(ctx, record) })
		if t.candidate != nil {
			all.Go(func() { t.candidate.Run(ctx) })
		}
	}

	all.Wait()
}

// fileErrors returns the errors of agf-validate in the files of all tenants that leave the files
// usable.
func (ts tenants) fileErrors() []diag.Finding {
	var all []diag.Finding
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		all = fileerrors.Merge(all, errorsOfPlans(ts[name].plans))
	}
	return all
}

// startWithErrors logs the errors of files, or returns them as an error if strict is set.
func startWithErrors(found []diag.Finding, strict bool, log *slog.Logger) error {
	if strict {
		return fileerrors.Refuse(found)
	}
	for _, f := range found {
		log.Warn("a file has an error: "+fileerrors.Line(f), "file", f.File, "rule", f.Rule)
	}
	return nil
}

func errorsOfPlans(p *plans.Plans) []diag.Finding {
	var agents []fileerrors.Agent
	for _, f := range p.Files() {
		agents = append(agents, fileerrors.Agent{Dir: f.Dir, Path: f.Path})
	}
	return fileerrors.Merge(fileerrors.Find(agents, p.PolicyDirs(), p.Options()), p.Errors())
}

// err returns what is wrong with the files of a part, for all tenants.
func (ts tenants) err(part string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		if err := ts[name].err(part); err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// loaded implements server.Config.Loaded.
func (ts tenants) loaded(name string) []openapi.Loaded {
	if name != "" {
		if t, ok := ts[name]; ok {
			return append(t.loaded(true), t.candidateLoaded(true)...)
		}
		return nil
	}

	var all [][]openapi.Loaded
	for _, name := range slices.Sorted(maps.Keys(ts)) {
		all = append(all, append(ts[name].loaded(false), ts[name].candidateLoaded(false)...))
	}
	return together(all)
}

// unusableAgents counts the agents whose current file can't be used.
func (ts tenants) unusableAgents() int {
	n := 0
	for _, t := range ts {
		for _, p := range t.plans.Problems() {
			if p.Part == plans.Agents {
				n++
			}
		}
	}

	return n
}

// adminsOf returns the group of a tenant that may freeze, thaw and redeliver in the inbox.
func (ts tenants) adminsOf(name string) string {
	if t, ok := ts[name]; ok {
		return t.admins()
	}
	return ""
}

// permitAge returns how long an approval of a tenant waits to be used, or 0 for the default.
func (ts tenants) permitAge(name string) time.Duration {
	t, ok := ts[name]
	switch {
	case !ok:
		return 0
	case t.plans.Chosen() != nil:
		return t.plans.Chosen().PermitAge
	}

	return t.cfg.PermitAge
}
