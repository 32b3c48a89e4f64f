package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/registry"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/mcp/pinfile"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/server/plans"
)

// checker collects the problems of a configuration and its files.
type checker struct {
	cfg   config.Serve
	found operate.Checked
}

func newChecker(cfg config.Serve) *checker {
	none := []operate.TenantProblem{}
	retention := ""
	if cfg.Retention > 0 {
		retention = policy.FormatDuration(cfg.Retention)
	}
	return &checker{
		cfg: cfg,
		found: operate.Checked{
			Retention: retention,
			Tenants:   []operate.CheckedTenant{},
			Problems:  none,
			Warnings:  none,
		},
	}
}

// checkServe reads everything that serve would read, and reports what is wrong with it. It opens no
// store and makes no network requests.
func checkServe(ctx context.Context, cfg config.Serve) operate.Checked {
	c := newChecker(cfg)
	if cfg.Dev {
		c.wrong("", "--dev", auth.CheckDev(cfg.Listen))
	}
	base, err := publicURL(cmp.Or(cfg.PublicURL, "http://"+cfg.Listen), nil)
	if c.wrong("", "", err); err == nil {
		_, err = newDelivery(cfg, base.String())
		c.wrong("", "", err)
	}
	for _, t := range cfg.Tenants {
		c.tenant(ctx, t)
	}
	return c.found
}

// wrong adds errors to the report. A nil error is ignored.
func (c *checker) wrong(tenant, what string, all ...error) {
	for _, err := range all {
		if err == nil {
			continue
		}
		text := err.Error()
		if what != "" {
			text = what + ": " + text
		}
		c.found.Problems = append(c.found.Problems, operate.TenantProblem{Tenant: tenant, Problem: text})
	}
}

func (c *checker) tenant(ctx context.Context, cfg config.Tenant) {
	quiet := slog.New(slog.DiscardHandler)
	f := files{tenant: cfg.Name, log: quiet}
	var err error
	load := planConfig(cfg, callLimits(c.cfg.Limits))
	load.Logger = quiet
	c.choices(cfg, &load)
	if f.plans, err = plans.Load(load); err != nil {
		c.wrong(cfg.Name, "agents", err)
	}

	if cfg.People != "" {
		f.watch, err = directory.Watch(cfg.People, directory.WatchOptions{ClosedGroups: cfg.OIDC != nil})
		c.people(cfg.Name, err)
	}

	if f.plans == nil {
		return
	}
	c.found.Tenants = append(c.found.Tenants, operate.CheckedTenant{Tenant: cfg.Name, Loaded: f.loaded(false)})
	for _, problem := range f.plans.Problems() {
		for _, why := range problem.Why {
			c.wrong(cfg.Name, "", errors.New(why))
		}
	}
	for _, found := range errorsOfPlans(f.plans) {
		c.wrong(cfg.Name, "", errors.New(fileerrors.Line(found)))
	}
	c.candidate(cfg, load, f.plans)
	c.groups(ctx, cfg, f.watch, f.plans)
	c.secrets(cfg, f.plans)
}

// choices warns about the risks that the decision configuration opts in to. A registry is not
// contacted; its local copy is checked instead.
func (c *checker) choices(cfg config.Tenant, load *plans.Config) {
	if cfg.Chosen == nil {
		return
	}
	var copied policy.Registry
	load.Decisions = &plans.Decisions{
		File: cfg.Chosen.File,
		Open: func(*resolve.Config) (plans.Sources, error) {
			return plans.Sources{Policies: cfg.Chosen.PolicyDirs(), Registry: copied}, nil
		},
	}
	warn := func(problem string) {
		c.found.Warnings = append(c.found.Warnings, operate.TenantProblem{Tenant: cfg.Name, Problem: problem})
	}
	if cfg.Chosen.ApproveOnTimeout {
		warn(cfg.Chosen.File + ": " + approvesOnTimeout)
	}
	_, err := registry.Open(cfg.Chosen, func(error) {})
	c.wrong(cfg.Name, "", err)
	if cfg.Chosen.Registry == nil {
		return
	}
	cached, err := registry.FromCache(cfg.Chosen)
	if err != nil {
		warn(cfg.Chosen.File + ": the policy registry is not asked by this check, and its copy can't be read: " +
			err.Error())
		return
	}
	copied = cached
}

// candidate reads the rules that calls would be compared with.
func (c *checker) candidate(cfg config.Tenant, load plans.Config, live *plans.Plans) {
	t := tenant{
		cfg:   cfg,
		files: files{plans: live, log: load.Logger},
	}
	if t.compare(load); t.candidate == nil {
		return
	}
	for _, problem := range t.candidate.Files().Problems {
		c.wrong(cfg.Name, partCandidate, errors.New(problem))
	}
}

// people reports all errors of people.yaml, while the start reports only the first one.
func (c *checker) people(tenant string, err error) {
	broken, ok := errors.AsType[*directory.BrokenError](err)
	if !ok {
		c.wrong(tenant, "", err)
		return
	}
	for i := range broken.Findings {
		if broken.Findings[i].Stops {
			c.wrong(tenant, "", &directory.BrokenError{File: broken.File, Findings: broken.Findings[i : i+1]})
		}
	}
}

// groups reports stages that the people of people.yaml can't fill, and warns about other groups
// that policies name and that have no members. With an identity provider both are warnings, because
// sign-ins may add people.
func (c *checker) groups(ctx context.Context, cfg config.Tenant, watch *directory.Watched, agents *plans.Plans) {
	if watch == nil || watch.Err() != nil {
		return
	}
	if d, err := watch.Directory(); err == nil && d.EverybodyReads() {
		c.found.Warnings = append(c.found.Warnings, operate.TenantProblem{
			Tenant:  cfg.Name,
			Problem: cfg.People + ": readers: everybody lets all people read all requests with their arguments",
		})
	}
	t := tenant{cfg: cfg}
	short, err := t.shortStages(ctx, watch)
	c.wrong(cfg.Name, "", err)
	ofOwners, err := t.shortOfOwners(ctx, watch, agents)
	c.wrong(cfg.Name, "", err)
	short = append(short, ofOwners...)
	reported := map[string]bool{}
	for _, s := range short {
		switch {
		case cfg.OIDC == nil:
			c.wrong(cfg.Name, "", errors.New(s.String()))
			reported[s.Group] = true
		case !s.empty:
			c.found.Warnings = append(c.found.Warnings, operate.TenantProblem{
				Tenant:  cfg.Name,
				Problem: s.String() + ", unless sign-ins bring them",
			})
		}
	}
	for _, group := range groupsOf(cfg.Policies) {
		if reported[group] {
			continue
		}
		if members, err := watch.Members(ctx, cfg.Name, group); err != nil || len(members) == 0 {
			c.found.Warnings = append(c.found.Warnings, operate.TenantProblem{
				Tenant:  cfg.Name,
				Problem: fmt.Sprintf("a policy asks the group %q, which nobody is in by people.yaml", group),
			})
		}
	}
}

// secrets reads the secret files and the other files that the configuration names.
func (c *checker) secrets(cfg config.Tenant, agents *plans.Plans) {
	if cfg.OIDC != nil {
		providers, err := tenants{cfg.Name: {cfg: cfg}}.providers()
		if err == nil {
			err = auth.CheckProviders(c.cfg.PublicURL, c.cfg.Dev, providers)
		}
		c.wrong(cfg.Name, "sign-in", err)
	}

	for _, t := range targetsOf(cfg) {
		c.wrong(cfg.Name, t.label(), t.Check(readSecret)...)
	}
	if cfg.RAP != nil {
		c.rap(cfg, agents)
	}
	for _, g := range cfg.MCP {
		c.mcp(cfg.Name, g, agents)
	}
}

// mcp checks the parts of an MCP gateway. It starts no server.
func (c *checker) mcp(tenant string, g mcpconfig.Served, agents *plans.Plans) {
	what := "mcp: gateway " + g.Name
	if _, err := agents.Plan(context.Background(), tenant, g.Agent); err != nil {
		c.wrong(tenant, what, noAgent(err))
	}
	for _, u := range g.Upstream {
		_, _, err := mcpUpstream(u, mcpOwn{grace: c.cfg.Drain}, slog.New(slog.DiscardHandler))
		c.wrong(tenant, what+": server "+u.Alias, err)
	}
	_, err := pinfile.Read(c.cfg.PinsOf(g))
	c.wrong(tenant, what+": pins", err)
}

// rap checks the parts of runtimes and gateways.
func (c *checker) rap(cfg config.Tenant, agents *plans.Plans) {
	for _, r := range cfg.RAP.Runtimes {
		_, err := agents.Plan(context.Background(), cfg.Name, r.Agent)
		if err != nil {
			err = noAgent(err)
		}
		_, servers := rapServers(r.Servers)
		c.wrong(cfg.Name, "rap: runtime of "+r.Agent, err, servers)
	}

	for _, g := range cfg.RAP.Gateways {
		_, err := agents.Plan(context.Background(), cfg.Name, g.Agent)
		if err != nil {
			err = noAgent(err)
		}
		_, callers := rapCallers(g.Callers)
		_, operations := rapOperations(g.Operations)
		_, upstream := rapServers(g.Upstream)
		c.wrong(cfg.Name, "rap: gateway "+g.Name, err, callers, operations, upstream)
	}
}

// checkOIDC reads the metadata of the configured identity providers.
func checkOIDC(ctx context.Context, cfg config.Serve) (operate.Checked, error) {
	c := newChecker(cfg)
	all := tenants{}
	for _, t := range cfg.Tenants {
		all[t.Name] = &tenant{cfg: t}
	}
	providers, err := all.providers()
	if err != nil {
		return c.found, err
	}
	for _, p := range providers {
		c.provider(ctx, p)
	}
	return c.found, nil
}

func (c *checker) provider(ctx context.Context, p auth.Provider) {
	offer, err := auth.Look(ctx, p, c.cfg.PublicURL, nil)
	if err != nil {
		c.wrong(p.Tenant, p.Issuer, err)
		return
	}
	c.found.Tenants = append(c.found.Tenants, operate.CheckedTenant{
		Tenant: p.Tenant,
		Provider: &operate.CheckedProvider{
			Issuer:     p.Issuer,
			Algorithms: offer.Algorithms,
			UserInfo:   offer.UserInfo,
			Scopes:     offer.Scopes,
			ClockOff:   offer.ClockAhead.String(),
			Register:   []string{offer.Redirect, offer.SignedOut},
		},
	})
	for _, problem := range offer.Problems {
		c.wrong(p.Tenant, p.Issuer, errors.New(problem))
	}
	for _, hint := range offer.Hints {
		c.found.Warnings = append(c.found.Warnings, operate.TenantProblem{Tenant: p.Tenant, Problem: hint})
	}
}
