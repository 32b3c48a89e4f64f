// Package candidate decides live calls a second time, by the files of a
// candidate, and counts what would change (docs/guides/candidate.md).
// It is beside the decisions, never in them: whoever decides leaves a
// call in a bounded queue and goes on. When the queue is full the call
// is counted and forgotten.
package candidate

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/lint/replay"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
)

// Config says what is compared with what.
type Config struct {
	Dir    string       // of the candidate's agents and policies
	Live   plans.Config // what the live plans are made of
	Plans  *plans.Plans // the live ones
	Now    func() time.Time
	Logger *slog.Logger
}

// Bounds of what waits to be compared.
const (
	mostWaiting = 1024
	mostBytes   = 16 << 20 // of arguments
)

// poll is how often the candidate's files are looked at.
const poll = 2 * time.Second

// waiting is a call that is to be compared.
type waiting struct {
	agent   string
	live    *approval.Compiled // nil: a person denied the call
	call    *resolve.Call
	outcome resolve.Outcome
	denied  string // the request that was denied
	size    int64
}

// Candidate compares what a tenant's plans decide with what those of a
// candidate would.
type Candidate struct {
	cfg     Config
	queue   chan waiting
	bytes   atomic.Int64
	dropped atomic.Uint64 // since the process began
	broken  atomic.Uint64 // calls that could not be compared since the comparison itself broke

	counts [3][4]atomic.Uint64 // by live and candidate outcome; the last: it has none

	mu       sync.Mutex // guards what stands below
	files    files
	since    time.Time
	lost     uint64 // dropped, when the comparison began
	compared map[string]*comparison
}

// comparison is that of one agent.
type comparison struct {
	live, next *approval.Compiled
	since      time.Time
	matrix     *replay.Live
	missed     int // calls that the candidate has no plan for
	why        string
}

// noPlan stands in the place of an outcome.
const noPlan = 3

// New reads the candidate's files. What is wrong with them is told by
// Problems: a candidate that can't be read compares nothing.
func New(cfg Config) *Candidate {
	c := &Candidate{
		cfg:      cfg,
		queue:    make(chan waiting, mostWaiting),
		compared: map[string]*comparison{},
	}
	c.reload()
	return c
}

// Decided takes a call to compare. It is called on the way to the
// answer, so it only puts the call into the queue, if there is room.
func (c *Candidate) Decided(live *approval.Compiled, call *resolve.Call, outcome resolve.Outcome) {
	c.put(waiting{agent: live.Agent.ID, live: live, call: call, outcome: outcome})
}

// Denied takes a call that people denied.
func (c *Candidate) Denied(r *approval.Request) {
	call := r.Current().Call
	c.put(waiting{agent: r.Agent.ID, call: &call, denied: r.ID})
}

func (c *Candidate) put(w waiting) {
	if w.agent == approval.AdministrationAgent {
		return // administrators' acts have no files
	}
	w.size = int64(len(w.call.Args) + len(w.call.ParentInput))
	if c.bytes.Add(w.size) > mostBytes || !c.enqueue(w) {
		c.bytes.Add(-w.size)
		c.dropped.Add(1)
	}
}

// enqueue reports whether there was room.
func (c *Candidate) enqueue(w waiting) bool {
	select {
	case c.queue <- w:
		return true
	default:
		return false
	}
}

// Run compares until ctx ends. What waits then is forgotten.
func (c *Candidate) Run(ctx context.Context) {
	t := time.NewTicker(poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.safely(c.reload)
		case w := <-c.queue:
			c.safely(func() { c.compare(w) })
			c.bytes.Add(-w.size)
		}
	}
}

// safely keeps what breaks here from everything else.
func (c *Candidate) safely(work func()) {
	defer func() {
		if what := recover(); what != nil && c.broken.Add(1) == 1 {
			c.tellPanic(what)
		}
	}()
	work()
}

func (c *Candidate) tellPanic(what any) {
	c.cfg.Logger.Error(
		"the comparison with the candidate broke; decisions are not touched by it",
		"panic", fmt.Sprint(what), "stack", string(debug.Stack()),
	)
}

// compare decides one call by both plans.
func (c *Candidate) compare(w waiting) {
	at := c.comparison(w.agent)
	switch {
	case at == nil || w.live != nil && !same(w.live, at.live):
		c.count(w, noPlan) // decided by a plan of before
	case at.matrix == nil:
		c.count(w, noPlan)
		c.locked(func() { at.missed++ })
	default:
		seen := at.matrix.Weigh(w.call, c.cfg.Now().UTC())
		c.count(w, int(seen.New()))
		c.locked(func() { at.add(w, seen) })
	}
}

// add counts a call in the matrix. The errors are those of writing,
// which goes into memory.
func (at *comparison) add(w waiting, seen replay.Weighed) {
	if w.denied != "" {
		_ = at.matrix.Deny(seen, w.denied)
		return
	}
	_ = at.matrix.Add(seen)
}

func same(a, b *approval.Compiled) bool { return a.Plan.Version() == b.Plan.Version() }

func (c *Candidate) locked(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// count counts a call. A denial by a person is no further call.
func (c *Candidate) count(w waiting, next int) {
	if w.denied == "" {
		c.counts[w.outcome][next].Add(1)
	}
}

// comparison is that of the plans in force, which begins anew when one
// of them has changed; nil: the agent has no live plan any more.
func (c *Candidate) comparison(agent string) *comparison {
	ctx := context.Background() // no plan is waited for
	live, err := c.cfg.Plans.Plan(ctx, "", agent)
	next, why := c.files.plan(ctx, agent)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.compared[agent]
	switch {
	case err != nil:
		delete(c.compared, agent)
		return nil
	case at == nil:
		at = newComparison(agent, live, next, c.since)
	case at.next != next || at.why != why || !same(at.live, live):
		at = newComparison(agent, live, next, c.cfg.Now().UTC())
	}

	at.why = why
	c.compared[agent] = at
	return at
}

func newComparison(agent string, live, next *approval.Compiled, since time.Time) *comparison {
	at := &comparison{live: live, next: next, since: since}
	if next != nil {
		at.matrix = replay.NewLive(agent, live.Plan, next.Plan)
	}
	return at
}

// reload looks at the candidate's files. When they have changed
// everything is compared anew.
func (c *Candidate) reload() {
	next, changed := c.files.reload(&c.cfg)
	if !changed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = next
	c.since = c.cfg.Now().UTC()
	c.lost = c.dropped.Load()
	clear(c.compared)
	log := c.cfg.Logger.With("candidate", c.cfg.Dir)
	for _, problem := range next.problems {
		log.Warn(
			"the candidate can't be compared as it stands; decisions are not touched by it",
			"why",
			problem,
		)
	}

	log.Info("a candidate is compared with what decides", "digest", next.digest, "agents", next.agents,
		"problems", len(next.problems))
}

// State is how the comparison stands.
type State struct {
	Since    time.Time // of the candidate's files as they are
	Digest   string    // of these
	Agents   int       // that can be compared
	Problems []string  // each with its place, file:line:column, where there is one
	Dropped  uint64    // calls since then that there was no room for
	Compared []Compared
}

// Compared is the comparison of one agent.
type Compared struct {
	Agent  string
	Since  time.Time
	Missed int    // calls that were not compared
	Why    string // the candidate has no plan; "" it has
	Report *replay.Report
	Found  []replay.Found
}

// State tells how the comparison stands, agents in the order of their
// ids.
func (c *Candidate) State() State {
	s := c.Files()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Dropped = c.dropped.Load() - c.lost
	for _, agent := range slices.Sorted(maps.Keys(c.compared)) {
		s.Compared = append(s.Compared, c.compared[agent].state(agent))
	}
	return s
}

func (at *comparison) state(agent string) Compared {
	one := Compared{Agent: agent, Since: at.since, Missed: at.missed, Why: at.why}
	if at.matrix != nil {
		one.Report, one.Found = at.matrix.Report()
	}
	return one
}

// Files tells which files there are, without the comparison.
func (c *Candidate) Files() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{
		Since:    c.since,
		Digest:   c.files.digest,
		Agents:   c.files.agents,
		Problems: slices.Clone(c.files.problems),
	}
}

// Err is what is wrong with the candidate's files; nil when all of them
// can be compared.
func (c *Candidate) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.err()
}

// Count is how many calls of a live outcome had one by the candidate.
type Count struct {
	Live, Candidate string // Candidate is "none" where it has no plan
	Calls           uint64
}

// Counts are all counts since the process began, and how many calls
// were dropped.
func (c *Candidate) Counts() (all []Count, dropped uint64) {
	names := [4]string{
		resolve.Deny:  resolve.Deny.String(),
		resolve.Ask:   resolve.Ask.String(),
		resolve.Allow: resolve.Allow.String(),
		noPlan:        "none",
	}
	for i := range len(c.counts) * len(names) {
		live, next := i/len(names), i%len(names)
		all = append(all, Count{
			Live:      names[live],
			Candidate: names[next],
			Calls:     c.counts[live][next].Load(),
		})
	}

	return all, c.dropped.Load() + c.broken.Load()
}
