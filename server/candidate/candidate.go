// Package candidate decides live calls a second time, with the files of a candidate, and
// counts what would change (docs/guides/candidate.md). It never affects decisions: the code
// that decides puts a call into a bounded queue and goes on. If the queue is full, the call
// is counted as dropped.
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

// Config names the files that are compared.
type Config struct {
	Dir    string       // of the candidate's agents and policies
	Live   plans.Config // configuration of the live plans
	Plans  *plans.Plans // the live ones
	Now    func() time.Time
	Logger *slog.Logger
}

// Limits of the calls that wait to be compared.
const (
	mostWaiting = 1024
	mostBytes   = 16 << 20 // of arguments
)

// poll is the interval at which the candidate's files are checked for changes.
const poll = 2 * time.Second

// waiting is a call that waits to be compared.
type waiting struct {
	agent   string
	live    *approval.Compiled // nil if a person denied the call
	call    *resolve.Call
	at      time.Time // when it was decided
	outcome resolve.Outcome
	denied  string // the request that was denied
	size    int64
}

// Candidate compares the decisions of a tenant's plans with those of a candidate.
type Candidate struct {
	cfg     Config
	queue   chan waiting
	bytes   atomic.Int64
	dropped atomic.Uint64 // since the process began
	broken  atomic.Uint64 // calls that could not be compared because the comparison panicked

	counts [3][4]atomic.Uint64 // by live and candidate outcome; the last index is noPlan

	mu       sync.Mutex // guards the fields below
	files    files
	since    time.Time
	lost     uint64 // dropped, when the comparison began
	compared map[string]*comparison
}

// comparison is the comparison of one agent.
type comparison struct {
	live, next *approval.Compiled
	since      time.Time
	matrix     *replay.Live
	missed     int // calls that the candidate has no plan for
	why        string
}

// noPlan is used instead of an outcome if the candidate has no plan.
const noPlan = 3

// New reads the candidate's files. State reports their problems: a candidate that can't be
// read compares nothing.
func New(cfg Config) *Candidate {
	c := &Candidate{
		cfg:      cfg,
		queue:    make(chan waiting, mostWaiting),
		compared: map[string]*comparison{},
	}
	c.reload()
	return c
}

// Decided queues a call to be compared. It is called before the answer is sent, so it only
// puts the call into the queue, or drops it if the queue is full.
func (c *Candidate) Decided(live *approval.Compiled, call *resolve.Call, outcome resolve.Outcome) {
	c.put(waiting{agent: live.Agent.ID, live: live, call: call, at: c.cfg.Now(), outcome: outcome})
}

// Denied queues a call that people denied.
func (c *Candidate) Denied(r *approval.Request) {
	call := r.Current().Call
	c.put(waiting{agent: r.Agent.ID, call: &call, at: c.cfg.Now(), denied: r.ID})
}

func (c *Candidate) put(w waiting) {
	if w.agent == approval.AdministrationAgent {
		return // administrative acts have no files
	}
	w.size = int64(len(w.call.Args) + len(w.call.ParentInput))
	if c.bytes.Add(w.size) > mostBytes || !c.enqueue(w) {
		c.bytes.Add(-w.size)
		c.dropped.Add(1)
	}
}

// enqueue reports whether the call fitted into the queue.
func (c *Candidate) enqueue(w waiting) bool {
	select {
	case c.queue <- w:
		return true
	default:
		return false
	}
}

// Run compares calls until ctx ends. Calls that still wait are dropped.
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

// safely recovers from panics, so that they affect nothing else.
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

// compare decides one call with both plans.
func (c *Candidate) compare(w waiting) {
	at := c.comparison(w.agent)
	switch {
	case at == nil || w.live != nil && !same(w.live, at.live):
		c.count(w, noPlan) // decided by an older plan
	case at.matrix == nil:
		c.count(w, noPlan)
		c.locked(func() { at.missed++ })
	default:
		call := *w.call
		call.At, call.History, call.HistoryKnown = w.at, nil, false // like DecideAt
		seen := at.matrix.Weigh(&call, c.cfg.Now().UTC())
		c.count(w, int(seen.New()))
		c.locked(func() { at.add(w, seen) })
	}
}

// add counts a call in the matrix. It ignores write errors, because the matrix writes to
// memory.
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

// count counts a call. A denial by a person was counted already.
func (c *Candidate) count(w waiting, next int) {
	if w.denied == "" {
		c.counts[w.outcome][next].Add(1)
	}
}

// comparison returns the comparison of the current plans. It begins a new one if a plan has
// changed, and returns nil if the agent no longer has a live plan.
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

// reload checks the candidate's files. If they have changed, all comparisons start over.
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

// State is the current result of the comparison.
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
	Why    string // why the candidate has no plan; empty if it has one
	Report *replay.Report
	Found  []replay.Found
}

// State returns the current result, with agents in the order of their ids.
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

// Files returns the state of the files, without the comparison.
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

// Err returns the problems of the candidate's files, or nil if all of them can be compared.
func (c *Candidate) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.err()
}

// Count is the number of calls with a pair of outcomes, live and by the candidate.
type Count struct {
	Live, Candidate string // Candidate is "none" where it has no plan
	Calls           uint64
}

// Counts returns all counts since the process began, and the number of dropped calls.
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
