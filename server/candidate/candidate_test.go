package candidate

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
)

const agentText = `schema_version: "1.0.0"
metadata: {id: a, name: N, version: "1", description: D}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools:
    - {alias: pay, description: Pays.}
    - {alias: look, description: Looks.}
execution_policy: {id: agf.react, config: {instructions: I, model: m}}
`

// policyText returns a policy that asks about payments above a bound, and hides the card.
func policyText(bound int) string {
	return fmt.Sprintf(`schema_version: "1.0.0"
policy_ref: p
applies: implicit
rules:
  - id: large
    match: {targets: [pay]}
    approval: {condition: {args_match: {amount: {gt: %d}}}}
    require: {stages: [{group: desk, people: 1}], arguments: {redact: [card]}}
`, bound)
}

// world has live files and those of a candidate.
type world struct {
	t   testing.TB
	dir string
	cfg Config
	log *testwait.Buffer
}

func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), log: &testwait.Buffer{}}
	w.put("live/a.agf.yaml", agentText)
	w.put("rules/p.policy.yaml", policyText(100))
	for name, text := range files {
		w.put("next/"+name, text)
	}
	w.cfg = Config{
		Dir:    w.at("next"),
		Now:    time.Now,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Live: plans.Config{
			Agents:   []string{w.at("live")},
			Policies: []string{w.at("rules")},
		},
	}
	var err error
	if w.cfg.Plans, err = plans.Load(w.cfg.Live); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) at(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *world) put(name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.at(name)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.at(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// decides decides a call as the server does.
func (w *world) decides(c *Candidate, args string) {
	w.t.Helper()
	live, err := w.cfg.Plans.Plan(w.t.Context(), "", "a")
	if err != nil {
		w.t.Fatal(err)
	}
	call := &resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: resolve.Raw(args)}
	c.Decided(live, call, live.Plan.Decide(call).Outcome)
}

// drain compares the waiting calls.
func drain(c *Candidate) {
	for len(c.queue) > 0 {
		w := <-c.queue
		c.safely(func() { c.compare(w) })
		c.bytes.Add(-w.size)
	}
}

// counted returns the count of a pair of outcomes.
func counted(c *Candidate, live, next string) uint64 {
	all, _ := c.Counts()
	for _, one := range all {
		if one.Live == live && one.Candidate == next {
			return one.Calls
		}
	}
	return 0
}

// TestCallsAreDecidedByTheCandidateToo checks that calls are counted by both outcomes, and
// that those that would run without asking are listed in the form in which the live plan
// shows them.
func TestCallsAreDecidedByTheCandidateToo(t *testing.T) {
	loose := strings.ReplaceAll(policyText(1000), ", arguments: {redact: [card]}", "")
	w := newWorld(t, map[string]string{"p.policy.yaml": loose})
	c := New(w.cfg)
	for _, args := range []string{`{"amount":5}`, `{"amount":500,"card":"4111"}`, `{"amount":5000}`} {
		w.decides(c, args)
	}
	drain(c)
	s := c.State()
	if len(s.Problems) > 0 || len(s.Compared) != 1 || s.Agents != 1 || s.Digest == "" {
		t.Fatalf("%+v", s)
	}
	one := s.Compared[0]
	if m := one.Report.Matrix; one.Agent != "a" || m.Allow.Allow != 1 || m.Ask.Allow != 1 || m.Ask.Ask != 1 {
		t.Errorf("%s: %+v", one.Agent, m)
	}
	if len(one.Found) != 1 || one.Report.Unasked != 1 || one.Report.Rules[0].Rule != "large" ||
		one.Report.Groups[0].Group != "desk" {
		t.Fatalf("%+v", one)
	}
	if text := string(one.Found[0].Call); strings.Contains(text, "4111") || !strings.Contains(text, "500") {
		t.Errorf("what the live plan hides: %s", text)
	}
	if counted(c, "ask", "allow") != 1 || counted(c, "ask", "ask") != 1 || counted(c, "allow", "allow") != 1 {
		t.Error(c.Counts())
	}
}

// TestDenialsThatWouldGoUnasked checks that a call that a person denied is listed if the
// candidate would not ask, and is not counted twice.
func TestDenialsThatWouldGoUnasked(t *testing.T) {
	w := newWorld(t, map[string]string{"p.policy.yaml": policyText(1000)})
	c := New(w.cfg)
	for _, args := range []string{`{"amount":500}`, `{"amount":5000}`} {
		c.Denied(&approval.Request{
			ID:    "apr_1",
			Agent: approval.Agent{ID: "a"},
			Revisions: []approval.Revision{{
				Call: resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: resolve.Raw(args)},
			}},
		})
	}

	drain(c)
	r := c.State().Compared[0]
	if r.Report.Denials != 2 || r.Report.DenialsUnasked != 1 || r.Report.Calls != 0 {
		t.Errorf("%+v", r.Report)
	}
	if len(r.Found) != 1 || r.Found[0].Kind != "denied" || r.Found[0].Request != "apr_1" {
		t.Errorf("%+v", r.Found)
	}
}

// TestABrokenCandidateSaysWhere checks that a broken candidate compares nothing, and that
// everything starts over after it is fixed.
func TestABrokenCandidateSaysWhere(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"p.policy.yaml:3:10: ":        {"p.policy.yaml": strings.Replace(policyText(9), "implicit", "sometimes", 1)},
		"expected *.agf.yaml":         {"notes.txt": "none"},
		"no such file":                nil,
		"live decision configuration": {"p.policy.yaml": policyText(9), "decisions.yaml": "{}"},
		"b.agf.yaml:1:1: ":            {"b.agf.yaml": "schema_version: \"1.0.0\"\nmetadata: x\n"},
	} {
		w := newWorld(t, files)
		c := New(w.cfg)
		w.decides(c, `{"amount":500}`)
		drain(c)
		s := c.State()
		if c.Err() == nil || len(s.Problems) == 0 || !strings.Contains(s.Problems[0], name) {
			t.Errorf("%s: %v", name, s.Problems)
		}
		if !strings.Contains(w.log.String(), name) {
			t.Errorf("%s: the log says\n%s", name, w.log.String())
		}
		if counted(c, "ask", "none") != 1 || s.Compared[0].Report != nil || s.Compared[0].Missed != 1 ||
			s.Compared[0].Why == "" {
			t.Errorf("%s: %+v", name, s.Compared)
		}

		must.Do(t, os.RemoveAll(w.at("next")))
		w.put("next/p.policy.yaml", policyText(1000))
		c.reload()
		w.decides(c, `{"amount":500}`)
		drain(c)
		now := c.State()
		if c.Err() != nil || !now.Since.After(s.Since) || now.Compared[0].Report.Matrix.Ask.Allow != 1 {
			t.Errorf("%s: mended: %v %+v", name, c.Err(), now)
		}
	}
}

// TestChangesBeginAnew changes the candidate's files and the live ones. Comparisons whose
// files stay the same must go on.
func TestChangesBeginAnew(t *testing.T) {
	w := newWorld(t, map[string]string{"p.policy.yaml": policyText(1000)})
	c := New(w.cfg)
	calls := func() int {
		w.decides(c, `{"amount":500}`)
		drain(c)
		return c.State().Compared[0].Report.Calls
	}
	calls()
	c.reload()
	if n := calls(); n != 2 {
		t.Errorf("unchanged: %d", n)
	}
	w.put("next/p.policy.yaml", policyText(200))
	c.reload()
	if n := calls(); n != 1 || c.State().Compared[0].Report.Unasked != 0 {
		t.Errorf("the candidate changed: %+v", c.State().Compared)
	}
	before := c.State().Compared[0].Since
	w.put("rules/p.policy.yaml", policyText(150))
	w.cfg.Plans.Reload()
	if n := calls(); n != 1 || !c.State().Compared[0].Since.After(before) {
		t.Errorf("the live files changed: %+v", c.State().Compared)
	}
}

// TestAgentsOfACandidate checks that the candidate's agents replace all live agents, with
// the live policies.
func TestAgentsOfACandidate(t *testing.T) {
	asks := strings.Replace(agentText, "Pays.", "Pays., approval: true", 1)
	w := newWorld(t, map[string]string{"sub/a.agf.yaml": asks})
	c := New(w.cfg)
	w.decides(c, `{"amount":5}`)
	drain(c)
	if m := c.State().Compared[0].Report.Matrix; m.Allow.Ask != 1 {
		t.Errorf("%+v", m)
	}
	w.put("next/sub/a.agf.yaml", strings.Replace(asks, "id: a,", "id: b,", 1))
	c.reload()
	w.decides(c, `{"amount":5}`)
	drain(c)
	if one := c.State().Compared[0]; !strings.Contains(one.Why, "no agent with this id") || one.Missed != 1 {
		t.Errorf("%+v", one)
	}
}

// TestNobodyWaitsForTheCandidate checks that while the comparison hangs, calls are queued
// up to the limits, and further ones are dropped and counted.
func TestNobodyWaitsForTheCandidate(t *testing.T) {
	w := newWorld(t, map[string]string{"p.policy.yaml": policyText(1000)})
	c := New(w.cfg)
	hangs, held := make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	c.cfg.Now = func() time.Time {
		if asked.Add(1) == 2 { // the first is that of the decision
			close(held)
			<-hangs
		}
		return time.Now()
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	w.decides(c, `{}`)
	<-held
	for range mostWaiting + 5 {
		w.decides(c, `{}`)
	}
	if s := c.State(); s.Dropped != 5 {
		t.Errorf("%d were dropped", s.Dropped)
	}
	close(hangs)
	testwait.Until(t, "all are compared", func() bool { return c.bytes.Load() == 0 })
	stop()
	<-ended
	if n := counted(c, "ask", "ask"); n != mostWaiting+1 {
		t.Errorf("%d were compared", n)
	}

	huge := `{"note":"` + strings.Repeat("x", 7<<19) + `"}`
	for range 5 {
		w.decides(c, huge)
	}
	if s := c.State(); s.Dropped != 6 || len(c.queue) != 4 {
		t.Errorf("huge ones: %d dropped, %d wait", s.Dropped, len(c.queue))
	}
}

// TestAPanicStaysInTheComparison checks that a panic is logged once and counted, and the
// next call is compared.
func TestAPanicStaysInTheComparison(t *testing.T) {
	w := newWorld(t, map[string]string{"p.policy.yaml": policyText(1000)})
	c := New(w.cfg)
	w.decides(c, `{}`)
	w.decides(c, `{}`)
	c.cfg.Now = func() time.Time { panic("the clock is gone") }
	drain(c)
	if _, lost := c.Counts(); lost != 2 || strings.Count(w.log.String(), "the clock is gone") != 1 {
		t.Errorf("%d lost\n%s", lost, w.log.String())
	}
	c.cfg.Now = time.Now
	w.decides(c, `{}`)
	drain(c)
	if n := c.State().Compared[0].Report.Calls; n != 1 {
		t.Errorf("%d compared", n)
	}
}

// TestRunEndsAndLeavesNothing fails if a goroutine remains in the bubble.
func TestRunEndsAndLeavesNothing(t *testing.T) {
	w := newWorld(t, map[string]string{"p.policy.yaml": policyText(1000)})
	synctest.Test(t, func(t *testing.T) {
		c := New(w.cfg)
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx)
		w.put("next/p.policy.yaml", policyText(50))
		<-time.After(2 * poll)
		synctest.Wait()
		if !strings.Contains(w.log.String(), "a candidate is compared") || len(c.State().Problems) > 0 {
			t.Error(w.log.String())
		}
		stop()
	})
}

// TestTheRequestPathPutsACallIntoAQueue checks that this allocates nothing.
func TestTheRequestPathPutsACallIntoAQueue(t *testing.T) {
	w := newWorld(t, map[string]string{"p.policy.yaml": policyText(1000)})
	c := New(w.cfg)
	live, _ := w.cfg.Plans.Plan(t.Context(), "", "a")
	call := &resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: resolve.Raw(`{"amount":5}`)}
	if n := testing.AllocsPerRun(2*mostWaiting, func() { c.Decided(live, call, resolve.Allow) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkDecided measures the cost on the request path, with free places in the queue and
// without.
func BenchmarkDecided(b *testing.B) {
	w := newWorld(b, map[string]string{"p.policy.yaml": policyText(1000)})
	live, _ := w.cfg.Plans.Plan(b.Context(), "", "a")
	call := &resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: resolve.Raw(`{"amount":5}`)}
	for name, room := range map[string]bool{"room": true, "full": false} {
		b.Run(name, func(b *testing.B) {
			c := New(w.cfg)
			for b.Loop() {
				c.Decided(live, call, resolve.Allow)
				if room {
					c.bytes.Add(-(<-c.queue).size)
				}
			}
		})
	}
}
