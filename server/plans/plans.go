// Package plans holds the plans of the agents in directories, compiled with their policies
// according to the owner's decision configuration, and reloads them.
//
// If a file can't be used, the previous state stays in force: the last good copy of an
// agent's file, compiled with the current policies and parents, and the last good set of
// policies. This permits nothing more than before, and Problems reports it. An agent whose
// file was never valid has no plan. Neither has an agent that only such a file names,
// because the file's requirements are unknown. With Config.DenyBroken, the last good copies
// are not used. If a file is deleted, its agent is removed. All tenants share one set of
// agents.
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

// Config names the files of agents and policies.
type Config struct {
	Agents     []string        // files, and directories of *.agf.yaml
	Policies   []string        // directories of *.policy.yaml
	Registry   policy.Registry // in addition to Policies if it is a Fetched, otherwise instead of them
	Options    resolve.Options // Parent and AgentAlias are ignored
	Decisions  *Decisions      // replaces Policies, Registry and parts of Options; may be nil
	Poll       time.Duration   // how often Run looks for changes; 0 means 2s
	DenyBroken bool            // deny if a file can't be used; otherwise its last good copy is used
	Logger     *slog.Logger    // if nil, nothing is logged
}

// Fetched is a registry that changes by itself, like policyhttp.Registry. While Err returns
// an error, every call is denied. A finding about a last good copy becomes a Problem.
type Fetched interface {
	policy.Registry
	// Snapshot returns the current policies as a set that does not change.
	Snapshot() *policy.Set
	// Findings returns the registry's findings. One of policy.RuleStale means that the
	// policies in use are a last good copy.
	Findings() []diag.Finding
}

// The parts that files belong to.
const (
	Agents   = "agents"
	Policies = "policies"
	// Configuration is the part of the decision configuration.
	Configuration = "configuration"
)

// Problem is a part that can't be used in its current form: an agent's file, the set of
// policies, or the decision configuration.
type Problem struct {
	Part  string   // Agents, Policies or Configuration
	Agent string   // id of the agent, "" where it is not known
	File  string   // or directory
	Why   []string // each with its place, file:line:column, where there is one
	Kept  bool     // the last good copy is used; otherwise calls that it concerns are denied
}

// String returns the first reason, the number of others, and the consequence.
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

// Part is the state in force of the agents, the policies, or the decision configuration.
type Part struct {
	Name     string // Agents, Policies or Configuration
	Digest   string // "sha256:…" over the files in force; empty for a Registry
	Count    int    // agents that can be used, policies, or 1
	Problems []Problem
}

// UnusableError says why a known agent can't be used. All its calls are denied.
type UnusableError struct {
	Agent string // id; empty if it can't be read
	File  string
	Why   []string // each with its place, file:line:column, where there is one
}

// Error returns the first reason, and the number of others.
func (e *UnusableError) Error() string {
	return Problem{Agent: e.Agent, File: e.File, Why: e.Why}.String()
}

// Plans implements approval.Planner. It is safe for concurrent use.
type Plans struct {
	cfg Config

	reload  sync.Mutex // one at a time; guards the fields below, up to mu
	agents  *reader    // what was read for agents
	rules   *reader    // what was read for policies
	watched []watched  // state of the registries

	mu  sync.RWMutex
	now *generation
}

// Load reads everything once. It returns an error if there is nothing to serve: if a path
// does not exist, or there are no agents at all. Errors in single files are reported by
// Problems, and by Plan for their agents.
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

// Plan returns an agent's plan. The error is approval.ErrUnknownAgent if no file has the
// agent, and an *UnusableError if its file is broken.
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

// Past returns what the rules of all agents read of past calls.
func (p *Plans) Past(string) *approval.PastRules { return p.current().past }

func (p *Plans) current() *generation {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.now
}

// Agents lists the ids of the agents that can be used, in order.
func (p *Plans) Agents() []string { return slices.Sorted(maps.Keys(p.current().agents)) }

// Problems lists the parts that can't be used in their current form.
func (p *Plans) Problems() []Problem { return slices.Clone(p.current().problems) }

// Errors lists the findings in the files in force that agf-validate reports as errors, as
// far as reading the files finds them. The files are usable: a call that depends on a
// doubtful reading needs an approval.
func (p *Plans) Errors() []diag.Finding { return slices.Clone(p.current().errors) }

// File is a file that decides, in the directory that its sub-agents must be in.
type File struct{ Dir, Path string }

// Files lists the current files of agents that are in force, without last good copies.
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

// Options returns the options that plans are compiled with, without those for parents.
func (p *Plans) Options() resolve.Options { return p.current().choice.options }

// PolicyDirs lists the directories that policies are read from.
func (p *Plans) PolicyDirs() []string { return slices.Clone(p.current().choice.from.Policies) }

// Err returns the problems of a part as an error, or nil if there are none.
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

// mostTold is the maximal number of problems in one error.
const mostTold = 5

// Parts returns the states in force of the agents, of the policies, and of the decision
// configuration, if there is one.
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

// Run looks for changes until ctx ends, and reloads everything after a change.
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

// Reload loads everything again if something changed, and reports whether it did. Calls
// that are being decided keep their plan. A file counts as changed if its content changed.
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

// load puts the current files in force.
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

// tell logs the changes of a reload: new problems, problems that are over, and the number
// of agents.
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

// missing lists the problems of one list that the other does not have.
func missing(from, in []Problem) []Problem {
	known := map[string]bool{}
	for _, p := range in {
		known[p.key()] = true
	}
	return slices.DeleteFunc(slices.Clone(from), func(p Problem) bool { return known[p.key()] })
}

// snapshot returns the current policies of a registry. It returns nil if there is no
// registry.
func snapshot(registry policy.Registry) policy.Registry {
	if changing, ok := registry.(interface{ Snapshot() *policy.Set }); ok && registry.Err() == nil {
		return changing.Snapshot()
	}
	return registry
}

// stale returns the finding that a last good copy is used, or nil if the registry is up to
// date.
func stale(registry Fetched) *diag.Finding {
	findings := registry.Findings()
	i := slices.IndexFunc(findings, func(f diag.Finding) bool { return f.Rule == policy.RuleStale })
	if i < 0 {
		return nil
	}

	return &findings[i]
}

// seen returns a text that changes when the registry does.
func seen(registry policy.Registry) string {
	if registry == nil {
		return ""
	}
	if fetched, ok := registry.(Fetched); ok { // the texts of its errors contain an age
		return fmt.Sprintf("%p %t %t", snapshot(registry), fetched.Err() != nil, stale(fetched) != nil)
	}
	return fmt.Sprintf("%p %v", snapshot(registry), registry.Err())
}
