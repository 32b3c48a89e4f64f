// Package plans holds the plans of the agents in directories, compiled with their policies, and keeps them fresh.
//
// A file that is broken keeps its agent out, and every agent that it delegates to, since what it demands of them can't be known; others go on.
// Whoever delegates to an agent, directly or through others, holds it to its own approvals and policies too. There is one set of agents for
// all tenants.
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
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Config says where agents and policies are.
type Config struct {
	Agents   []string        // files, and directories of *.agf.yaml
	Policies []string        // directories of *.policy.yaml
	Registry policy.Registry // instead of Policies; one with a method Snapshot() *policy.Set may change
	Options  resolve.Options // Parent and AgentAlias are ignored
	Poll     time.Duration   // how often Run looks for changes; 0 means 2s
	Logger   *slog.Logger    // nil: nothing is logged
}

// UnusableError says why an agent that is known can't decide anything. All its calls are denied.
type UnusableError struct {
	Agent string // id; "" when the file doesn't even tell that
	File  string
	Why   []string // each with its place, file:line:column, where there is one
}

// Error tells the first reason, and how many follow.
func (e *UnusableError) Error() string {
	name := e.File
	if e.Agent != "" {
		name = "agent " + e.Agent
	}
	text := name + " can't be used"
	if len(e.Why) > 0 {
		text += ": " + e.Why[0]
	}
	if more := len(e.Why) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Plans is a Planner. It is safe for concurrent use.
type Plans struct {
	cfg Config

	reload sync.Mutex // one at a time; guards seen and edges
	seen   string     // fingerprint of what was loaded
	edges  map[string][]string

	mu  sync.RWMutex
	now *generation
}

// generation is one state of all files.
type generation struct {
	agents   map[string]*approval.Compiled
	unusable map[string]*UnusableError // by agent id
	nameless []*UnusableError          // of files that tell no id
}

// Load reads everything once. An error means that there is nothing to serve because of how it was started: a path that isn't there, or
// no agents at all. What is wrong with single files is told by Problems, and when their agents are asked for.
func Load(cfg Config) (*Plans, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Poll == 0 {
		cfg.Poll = 2 * time.Second
	}
	if cfg.Registry != nil && len(cfg.Policies) > 0 {
		return nil, errors.New("policies come from directories or from a registry, not from both")
	}
	p := &Plans{cfg: cfg, edges: map[string][]string{}, now: &generation{}}
	roots, err := findRoots(cfg.Agents)
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("no *.agf.yaml in %s: there is no agent to serve", strings.Join(cfg.Agents, ", "))
	}
	p.Reload()
	return p, nil
}

// Plan returns an agent's plan. An agent that no file has is approval.ErrUnknownAgent; one that is broken is an *UnusableError.
func (p *Plans) Plan(_ context.Context, _, agent string) (*approval.Compiled, error) {
	g := p.current()
	if c := g.agents[agent]; c != nil {
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

// Problems lists what can't be used, by agent, then files that don't tell whose they are.
func (p *Plans) Problems() []*UnusableError {
	g := p.current()
	var out []*UnusableError
	for _, id := range slices.Sorted(maps.Keys(g.unusable)) {
		out = append(out, g.unusable[id])
	}
	return append(out, g.nameless...)
}

// Check is for /readyz: it fails while some agent can't be used, and says which and why.
func (p *Plans) Check(context.Context) error {
	problems := p.Problems()
	if len(problems) == 0 {
		return nil
	}
	var errs []error
	for _, e := range problems[:min(len(problems), 5)] {
		errs = append(errs, e)
	}
	if more := len(problems) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// Run looks for changes until ctx ends, and loads everything again when there are some.
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

// Reload loads everything again if something changed, and reports whether it did. Calls that are being decided keep the plan that they began with.
func (p *Plans) Reload() bool {
	p.reload.Lock()
	defer p.reload.Unlock()
	registry := p.registry()
	l := loader{cfg: p.cfg, edges: p.edges, registry: registry}
	seen := l.fingerprint()
	if seen == p.seen {
		return false
	}
	next := l.load()
	p.edges, p.seen = l.edges, seen
	p.mu.Lock()
	before := p.now
	p.now = next
	p.mu.Unlock()
	p.tell(before, next)
	return true
}

// tell logs what a reload brought: every problem that was not there before, and how many agents there are.
func (p *Plans) tell(before, now *generation) {
	old := map[string]bool{}
	for _, e := range before.all() {
		old[e.Error()] = true
	}
	for _, e := range now.all() {
		if !old[e.Error()] {
			p.cfg.Logger.Error("an agent can't be used, its calls are denied", "agent", e.Agent, "file", e.File, "why", e.Why)
		}
	}
	p.cfg.Logger.Info("agents are loaded", "agents", len(now.agents), "unusable", len(now.unusable)+len(now.nameless))
}

func (g *generation) all() []*UnusableError {
	return append(slices.Collect(maps.Values(g.unusable)), g.nameless...)
}

// registry returns the policies as of now.
func (p *Plans) registry() policy.Registry {
	if p.cfg.Registry == nil {
		return nil
	}
	if changing, ok := p.cfg.Registry.(interface{ Snapshot() *policy.Set }); ok && p.cfg.Registry.Err() == nil {
		return changing.Snapshot()
	}
	return p.cfg.Registry
}
