// Package plans holds the plans of the agents in directories, compiled
// with their policies by the owner's decision configuration, and keeps
// them fresh.
//
// A file that can't be used as it stands leaves what was in force in
// force: the last good copy of an agent's file, compiled with the
// policies and the parents of today, and the last good set of policies.
// That is told loudly, by Problems, and nothing is loosened by it. An
// agent whose file was never read well has no plan, and neither has an
// agent that only such a file names, since what that demands can't be
// known. With Config.DenyBroken the last good copies decide nothing. A
// file that is deleted is gone, and so is its agent. There is one set
// of agents for all tenants.
package plans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Config says where agents and policies are.
type Config struct {
	Agents     []string        // files, and directories of *.agf.yaml
	Policies   []string        // directories of *.policy.yaml
	Registry   policy.Registry // beside Policies, see Fetched; one of another kind stands instead of them
	Options    resolve.Options // Parent and AgentAlias are ignored
	Decisions  *Decisions      // stands instead of Policies, Registry and what it says of Options; nil: none
	Poll       time.Duration   // how often Run looks for changes; 0 means 2s
	DenyBroken bool            // deny what files that can't be used would decide; else their last good copies do
	Logger     *slog.Logger    // nil: nothing is logged
}

// Fetched is a registry that changes by itself, as policyhttp.Registry
// does. While its Err is set every call is denied at once; what it says
// of a last good copy is a Problem.
type Fetched interface {
	policy.Registry
	// Snapshot returns the policies of one moment.
	Snapshot() *policy.Set
	// Findings tells how it stands; one of policy.RuleStale says that
	// the policies in use are a last good copy.
	Findings() []diag.Finding
}

// The parts that files belong to.
const (
	Agents   = "agents"
	Policies = "policies"
	// Configuration is that of decisions.
	Configuration = "configuration"
)

// Problem is a file of an agent, the set of policies, or the decision
// configuration, that can't be used as it stands.
type Problem struct {
	Part  string   // Agents, Policies or Configuration
	Agent string   // id of the agent, "" where it is not known
	File  string   // or directory
	Why   []string // each with its place, file:line:column, where there is one
	Kept  bool     // the last good copy decides; else what it is about is denied
}

// String tells the first reason, how many follow, and what that means.
func (p Problem) String() string {
	name := p.File
	if p.Agent != "" {
		name = "agent " + p.Agent
	}
	text := name + " can't be used: " + first(p.Why)
	if p.Kept {
		return text + "; its last good copy decides"
	}
	return text
}

// key is equal for problems that are the same.
func (p Problem) key() string {
	return fmt.Sprintf("%q", []any{p.Part, p.Agent, p.File, p.Why, p.Kept})
}

func first(why []string) string {
	switch len(why) {
	case 0:
		return "no reason was given"
	case 1:
		return why[0]
	}

	return fmt.Sprintf("%s (and %d more)", why[0], len(why)-1)
}

// Part is what is in force of the agents, of the policies, or of the
// decision configuration.
type Part struct {
	Name     string // Agents, Policies or Configuration
	Digest   string // "sha256:…" over the files in force; "" for a Registry
	Count    int    // agents that can be used, policies, or 1
	Problems []Problem
}

// UnusableError says why an agent that is known can't decide anything.
// All its calls are denied.
type UnusableError struct {
	Agent string // id; "" when the file doesn't even tell that
	File  string
	Why   []string // each with its place, file:line:column, where there is one
}

// Error tells the first reason, and how many follow.
func (e *UnusableError) Error() string {
	return Problem{Agent: e.Agent, File: e.File, Why: e.Why}.String()
}

// Plans is a Planner. It is safe for concurrent use.
type Plans struct {
	cfg Config

	reload  sync.Mutex // one at a time; guards what stands below, up to mu
	agents  *reader    // what was read of agents
	rules   *reader    // what was read of policies
	watched []watched  // what was seen of registries

	mu  sync.RWMutex
	now *generation
}

// Load reads everything once. An error means that there is nothing to
// serve because of how it was started: a path that isn't there, or no
// agents at all. What is wrong with single files is told by Problems,
// and when their agents are asked for.
func Load(cfg Config) (*Plans, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Poll == 0 {
		cfg.Poll = 2 * time.Second
	}
	if _, fetched := cfg.Registry.(Fetched); cfg.Registry != nil && !fetched && len(cfg.Policies) > 0 {
		return nil, errors.New("policies come from directories or from a registry, not from both")
	}
	p := &Plans{cfg: cfg, now: &generation{}}
	l := p.load()
	if i := slices.IndexFunc(l.problems, func(p Problem) bool { return p.Part == Configuration }); i >= 0 {
		return nil, errors.New(first(l.problems[i].Why))
	}
	if len(l.unread) > 0 {
		return nil, errors.New(first(l.problems[0].Why))
	}
	if len(l.members) == 0 {
		return nil, fmt.Errorf("no *.agf.yaml in %s: there is no agent to serve", strings.Join(cfg.Agents, ", "))
	}
	p.tell(&generation{}, p.now)
	return p, nil
}

// Plan returns an agent's plan. An agent that no file has is
// approval.ErrUnknownAgent; one that is broken is an *UnusableError.
func (p *Plans) Plan(_ context.Context, _, agent string) (*approval.Compiled, error) {
	g := p.current()
	if c := g.agents[agent]; c != nil {
		if fetched, ok := g.choice.from.Registry.(Fetched); ok && fetched.Err() != nil {
			return nil, &UnusableError{
				Agent: agent,
				File:  g.paths[agent],
				Why:   []string{fetched.Err().Error()},
			}
		}

		return c, nil
	}

	if e := g.unusable[agent]; e != nil {
		return nil, e
	}
	err := fmt.Errorf("%w: %q", approval.ErrUnknownAgent, agent)
	if len(g.nameless) > 0 {
		err = fmt.Errorf("%w; perhaps because %w", err, g.nameless[0])
	}
	return nil, err
}

func (p *Plans) current() *generation {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.now
}

// Agents lists the ids of the agents that can be used, in order.
func (p *Plans) Agents() []string { return slices.Sorted(maps.Keys(p.current().agents)) }

// Problems lists what can't be used as it stands.
func (p *Plans) Problems() []Problem { return slices.Clone(p.current().problems) }

// Errors lists what agf-validate calls errors in the files that decide,
// as far as reading them tells. They leave the files usable: calls are
// asked about where a reading is in doubt.
func (p *Plans) Errors() []diag.Finding { return slices.Clone(p.current().errors) }

// File is a file that decides, below the directory that its sub-agents
// stay in.
type File struct{ Dir, Path string }

// Files lists the files of the agents that decide as they stand.
func (p *Plans) Files() []File {
	members := p.current().members
	var out []File
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if m := members[name]; m.agent != nil && !m.kept {
			out = append(out, File{m.root.dir, m.root.file})
		}
	}
	return out
}

// Options are those that plans are compiled under, but for parents.
func (p *Plans) Options() resolve.Options { return p.current().choice.options }

// PolicyDirs lists the directories that policies are read from.
func (p *Plans) PolicyDirs() []string { return slices.Clone(p.current().choice.from.Policies) }

// Err is what is wrong with the files of a part, nil when they are in
// force as they stand.
func (p *Plans) Err(part string) error {
	var errs []error
	for _, problem := range p.Problems() {
		if problem.Part == part {
			errs = append(errs, errors.New(problem.String()))
		}
	}
	if more := len(errs) - mostTold; more > 0 {
		errs = append(errs[:mostTold], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// mostTold is how many problems one error tells.
const mostTold = 5

// Parts tells what is in force of the agents, of the policies, and of
// the decision configuration, if there is one.
func (p *Plans) Parts() []Part {
	g := p.current()
	parts := []Part{
		{
			Name:   Agents,
			Digest: g.digest,
			Count:  len(g.agents),
		},
		{
			Name:   Policies,
			Digest: g.policies.digest,
			Count:  g.policies.count,
		},
	}
	if g.choice.config != nil {
		parts = append(parts, Part{
			Name:   Configuration,
			Digest: g.choice.config.Digest(),
			Count:  1,
		})
	}

	for i := range parts {
		for _, problem := range g.problems {
			if problem.Part == parts[i].Name {
				parts[i].Problems = append(parts[i].Problems, problem)
			}
		}
	}

	return parts
}

// Run looks for changes until ctx ends, and loads everything again when
// there are some.
func (p *Plans) Run(ctx context.Context) error {
	t := time.NewTicker(p.cfg.Poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			p.Reload()
		}
	}
}

// Reload loads everything again if something changed, and reports
// whether it did. Calls that are being decided keep the plan that they
// began with. A file has changed when its content has.
func (p *Plans) Reload() bool {
	p.reload.Lock()
	defer p.reload.Unlock()
	changed := func(w watched) bool { return w.seen != seen(w.registry) }
	if !p.agents.changed() && !p.rules.changed() && !slices.ContainsFunc(p.watched, changed) {
		return false
	}
	before := p.now
	p.load()
	p.tell(before, p.now)
	return true
}

// load puts what the files say in force.
func (p *Plans) load() *loader {
	l := &loader{cfg: p.cfg, before: p.now, agents: newReader(), rules: newReader()}
	next := l.load()
	l.agents.forget()
	l.rules.forget()
	p.agents = l.agents
	p.rules = l.rules
	p.watched = l.watched
	p.mu.Lock()
	p.now = next
	p.mu.Unlock()
	p.retain()
	return l
}

// tell logs what a reload brought: every problem that was not there
// before, those that are over, and how many agents there are.
func (p *Plans) tell(before, now *generation) {
	for _, problem := range missing(now.problems, before.problems) {
		facts := []any{"part", problem.Part, "agent", problem.Agent, "file", problem.File, "why", problem.Why}
		if problem.Kept {
			p.cfg.Logger.Warn("a file can't be used, its last good copy decides", facts...)
		} else {
			p.cfg.Logger.Error("a file can't be used, what it is about is denied", facts...)
		}
	}

	for _, f := range now.errors {
		if !slices.ContainsFunc(before.errors, func(b diag.Finding) bool {
			return b.Rule == f.Rule && b.File == f.File && b.Range == f.Range
		}) {
			at := fmt.Sprintf("%s:%d:%d", f.File, f.Range.Start.Line, f.Range.Start.Column)
			p.cfg.Logger.Warn("a file has an error: "+at+": "+f.Message, "file", f.File, "rule", f.Rule)
		}
	}
	for _, problem := range missing(before.problems, now.problems) {
		p.cfg.Logger.Info(
			"a problem with a file is over",
			"part",
			problem.Part,
			"agent",
			problem.Agent,
			"file",
			problem.File,
		)
	}

	p.cfg.Logger.Info("agents and policies are loaded", "agents", len(now.agents), "agents_digest", now.digest,
		"policies", now.policies.count, "policies_digest", now.policies.digest, "problems", len(now.problems))
}

// missing lists the problems of one list that the other has not.
func missing(from, in []Problem) []Problem {
	known := map[string]bool{}
	for _, p := range in {
		known[p.key()] = true
	}
	return slices.DeleteFunc(slices.Clone(from), func(p Problem) bool { return known[p.key()] })
}

// snapshot returns the policies of a registry as of now; nil when there
// is none.
func snapshot(registry policy.Registry) policy.Registry {
	if changing, ok := registry.(interface{ Snapshot() *policy.Set }); ok && registry.Err() == nil {
		return changing.Snapshot()
	}
	return registry
}

// stale is the finding that says that a last good copy decides; nil:
// the registry is as it was fetched last.
func stale(registry Fetched) *diag.Finding {
	findings := registry.Findings()
	i := slices.IndexFunc(findings, func(f diag.Finding) bool { return f.Rule == policy.RuleStale })
	if i < 0 {
		return nil
	}

	return &findings[i]
}

// seen changes when the registry does.
func seen(registry policy.Registry) string {
	if registry == nil {
		return ""
	}
	if fetched, ok := registry.(Fetched); ok { // its errors tell an age
		return fmt.Sprintf("%p %t %t", snapshot(registry), fetched.Err() != nil, stale(fetched) != nil)
	}
	return fmt.Sprintf("%p %v", snapshot(registry), registry.Err())
}
