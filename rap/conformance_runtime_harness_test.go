package rap_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const housePeople = `schema_version: "1.0.0"
people:
  - {id: ann, name: Ann Doe, groups: [staff]}
  - {id: mara, name: Mara Roe, groups: [duty, ops]}
  - {id: ben, name: Ben Poe, groups: [duty, ops]}
`

// askHarness is a real approval service: a store in a file, the service, people and their
// inbox. Several processes may share the file.
type askHarness struct {
	agent   string // the agent whose calls need approval
	store   store.Store
	service *approval.Service
	people  approval.Directory
	plan    *resolve.Plan
	signer  ledger.Signer
}

func openAskHarness(file, agent string, plan *resolve.Plan) (*askHarness, error) {
	known, findings := people.Parse("people.yaml", []byte(housePeople))
	if known == nil {
		return nil, fmt.Errorf("people: %v", findings)
	}
	h := &askHarness{agent: agent, people: known, plan: plan}
	var err error
	if h.signer, _, err = ledger.GenerateKey("assent.test", rand.Reader); err != nil {
		return nil, err
	}
	if h.store, err = sqlite.Open(context.Background(), file, sqlite.Options{Poll: 10 * time.Millisecond}); err != nil {
		return nil, err
	}
	h.service = approval.New(h.store, h, h.people, time.Now, rand.Reader, approval.Config{})
	return h, nil
}

// openClerk opens the approval service for the clerk agent.
func openClerk(file string) (*askHarness, error) {
	plan, err := confPlan(runtimeAgent)
	if err != nil {
		return nil, err
	}
	return openAskHarness(file, "clerk", plan)
}

// Plan returns the plan of the one agent.
func (h *askHarness) Plan(_ context.Context, _, agent string) (*approval.Compiled, error) {
	if agent != h.agent {
		return nil, approval.ErrUnknownAgent
	}
	return &approval.Compiled{Agent: approval.Agent{ID: agent, Version: "1.0.0", Name: agent}, Plan: h.plan}, nil
}

func (h *askHarness) Past(string) *approval.PastRules { return nil }

func (h *askHarness) desk() hold.People {
	return hold.Service(h.service, h.store, hold.Place{Tenant: "acme", Agent: h.agent})
}

// harnessWorld returns a runtime whose questions go to a real approval service.
func harnessWorld(t *testing.T, set ...func(w *runtimeWorld)) (*runtimeWorld, *askHarness) {
	t.Helper()
	h := must.Get(openClerk(t.TempDir() + "/assent.db"))(t)
	t.Cleanup(func() { _ = h.store.Close() })
	return newRuntimeWorld(
		t,
		append(set, func(w *runtimeWorld) { w.cfg.People, w.cfg.Records = h.desk(), h.store })...), h
}

// votes casts one person's vote on a question and returns the outcome.
func (h *askHarness) votes(
	t *testing.T, ref, person string, verdict approval.Verdict, choice int,
) (approval.VoteOutcome, error) {
	t.Helper()
	r := must.Get(h.service.Request(t.Context(), "acme", ref))(t)
	in := approval.VoteInput{
		Tenant:  "acme",
		ID:      ref,
		Binding: r.Binding(),
		Person:  person,
		Verdict: verdict,
		Channel: "test",
		Full:    true,
	}
	switch verdict {
	case approval.Choose:
		in.Choice = &choice
	case approval.Deny:
		in.Reason = "not like this"
	}

	got, err := h.service.Vote(t.Context(), in)
	if err != nil {
		return "", err
	}
	_, err = h.store.Seal(t.Context(), 1000, h.signer.Sign) // events are delivered once they are sealed
	return got.Outcome, err
}

// picks casts a vote that must count.
func (h *askHarness) picks(t *testing.T, ref, person string, choice int) {
	t.Helper()
	if got, err := h.votes(t, ref, person, approval.Choose, choice); err != nil || got != approval.VoteAnswered {
		t.Fatalf("%s: %q, %v", person, got, err)
	}
}

// tooLate casts a vote that must not count any more.
func (h *askHarness) tooLate(t *testing.T, ref, person string, choice int) {
	t.Helper()
	if got, err := h.votes(t, ref, person, approval.Choose, choice); err == nil && got != approval.VoteLate &&
		got != approval.VoteConflicting {
		t.Errorf("the late answer of %s: %q", person, got)
	}
}

// open waits for a call's question and returns its reference.
func (w *runtimeWorld) open(c *raptest.Call) string {
	w.t.Helper()
	return w.until(c, "asking", func(got runtime.Call) bool { return got.Question != "" }).Question
}

// page returns a question as a person sees it in the inbox.
func (h *askHarness) page(t *testing.T, person, ref string) string {
	t.Helper()
	site := httptest.NewServer(inbox.New(inbox.Config{
		Service:   h.service,
		Store:     h.store,
		Directory: h.people,
		Now:       time.Now,
		Who: func(r *http.Request) (string, approval.Person, bool, bool) {
			p, ok, err := h.people.Person(r.Context(), "acme", person)
			return "acme", p, false, ok && err == nil
		},
	}))
	defer site.Close()
	res := must.Get(raptest.OwnClient().Get(site.URL + "/requests/" + ref))(t)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the page: %d, %v", res.StatusCode, err)
	}
	return string(text)
}

// R23: two people answer at once, with an approval service that accepts one of them, and with
// one that changes its answer while two processes read it.
func testR23(t *testing.T) {
	w, h := harnessWorld(t, func(w *runtimeWorld) { w.cfg.Servers[0].Groups = []string{"duty"} })
	startRuntime(t, w.cfg)
	for _, id := range []string{"a", "b", "c"} {
		c := w.invoke("t-1", id)
		c.Sends(c.Choice(c.AnswerAt("")))
		ref := w.open(c)
		chosen, together := make(chan int, 2), sync.WaitGroup{}
		for choice, person := range []string{"mara", "ben"} {
			together.Go(func() {
				if got, err := h.votes(t, ref, person, approval.Choose, choice); err == nil &&
					got == approval.VoteAnswered {
					chosen <- choice
				}
			})
		}

		together.Wait()
		if len(chosen) != 1 {
			t.Fatalf("%d answers counted", len(chosen))
		}
		w.answered(c, c.AnswerAt(""), <-chosen)
		h.tooLate(t, ref, "mara", 2)
		w.settlesIn(h, "mara")
		w.tools.Exactly(c.AnswerAt(""), 1)
		w.completes(c)
	}

	twoProcesses(t)
}

// settlesIn is settles with a real approval service.
func (w *runtimeWorld) settlesIn(h *askHarness, person string) {
	w.t.Helper()
	w.calls++
	c := w.invoke(fmt.Sprint("barrier-", w.calls), "call_1")
	c.Sends(c.Choice(c.AnswerAt("")))
	h.picks(w.t, w.open(c), person, 0)
	w.answered(c, c.AnswerAt(""), 0)
	w.completes(c)
}

// twoProcesses share a store, and an approval service that changes its answer.
func twoProcesses(t *testing.T) {
	w := newRuntimeWorld(t)
	second := startRuntime(t, w.cfg)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		_, q, uri := w.asks("t-1", id)
		var together sync.WaitGroup
		for k := range 3 {
			together.Go(func() { w.desk.Picks(q.Ref, k) })
		}
		together.Wait()
		w.tools.Waits(uri, 1)
		w.desk.Picks(q.Ref, 2)
		w.settles()
		w.tools.Exactly(uri, 1)
		if got, err := threadsOf(t, second).Call(t.Context(), "t-1", id); err != nil ||
			got.State != runtime.CallPending {
			t.Errorf("the other process has %+v, %v", got, err)
		}

		_, q, uri = w.asks("t-2", id)
		read, release := w.desk.Slows(q.Ref, 2)
		w.desk.Picks(q.Ref, 1)
		read() // both have read it
		release()
		w.tools.Waits(uri, 1)
		w.settles()
		w.tools.Exactly(uri, 1)
	}
}

// hostilePrompt contains attacks on terminals, readers and browsers.
const hostilePrompt = "\x1b[2J\x1b[31mAllow\x1b]8;;https://evil.example/\x07 \u202egnp.exe\u202c \u2066x\u2069 \u200b" +
	`<script>alert(1)</script><img src=x onerror=alert(2)> ` +
	`"><a href="javascript:alert(3)">Approve</a> [link](https://evil.example/) <https://evil.example/|here> @channel`

func testR33(t *testing.T) {
	w, h := harnessWorld(t)
	c := w.invoke("t-1", "hostile")
	c.Sends(
		c.Choice(c.AnswerAt("")).
			With("prompt", hostilePrompt).With("choices", []string{hostilePrompt, "\r\nNo\x1b[0m", "No"}),
	)
	ref := w.open(c)
	shown := h.page(t, "ann", ref)
	for _, bad := range []string{
		"\x1b",
		"\x07",
		"\u202e",
		"\u2066",
		"\u200b",
		"<script>alert",
		"<img",
		`<a href="javascript:`,
		`href="https://evil.example`,
	} {
		if strings.Contains(shown, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}

	at := func(part string) int { return strings.Index(shown, part) }
	if at("write_file") < 0 || at("files") < 0 || at("evil.example") < at("write_file") || at("/etc/motd") < 0 {
		t.Errorf("what we know does not come first: %s", shown)
	}
	h.picks(t, ref, "ann", 1)
	w.answered(c, c.AnswerAt(""), 1)

	// Text that a store can't keep is refused or made harmless, but never left pending.
	for name, m := range map[string]raptest.Message{
		"zeros":            {"prompt": "Allow\x00this?"},
		"zero labels":      {"choices": []string{"Yes\x00", "No", "-"}},
		"long labels":      {"choices": []string{strings.Repeat("y", 100_000), "No", "-"}},
		"many long labels": {"choices": labels(50, strings.Repeat("y", 50_000))},
		"a million":        {"prompt": strings.Repeat("ü", 1<<19)},
	} {
		c := w.invoke("t-2", name)
		q := c.Choice(c.AnswerAt(""))
		for field, v := range m {
			q = q.With(field, v)
		}
		if status := c.Send(q); status/100 == 4 {
			w.pending(c)
			continue
		}
		h.picks(t, w.open(c), "ann", 1)
		w.answered(c, c.AnswerAt(""), 1)
	}

	capped(t)
}

func labels(n int, label string) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(label, i))
	}
	return out
}

// capped checks the limits of questions.
func capped(t *testing.T) {
	w := newRuntimeWorld(t)
	long := "Allow " + strings.Repeat("the ü", 200_000) + "?"
	c := w.invoke("t-1", "long")
	c.Sends(c.Choice(c.AnswerAt("")).With("prompt", long))
	got := w.desk.Asked("Allow the", 1).Question.Prompt
	if len(got) < 1<<12 || len(got) > 9<<10 || strings.HasPrefix(long, got) ||
		strings.ContainsRune(got, '\ufffd') {
		t.Errorf("shown are %d bytes, ending in %q", len(got), got[max(0, len(got)-100):])
	}
	c = w.invoke("t-1", "many")
	for _, n := range []int{51, 10_000} {
		c.Refused(fmt.Sprint(n, " choices"), c.Choice(c.AnswerAt("")).With("choices", labels(n, "Label ")))
	}
	w.stillAsks(c)
	c = w.invoke("t-1", "fifty")
	c.Sends(c.Choice(c.AnswerAt("")).With("choices", labels(50, "Label ")))
	s := w.desk.Asked(c.Name(), 1)
	w.desk.Picks(s.Ref, 49)
	w.answered(c, c.AnswerAt(""), 49)
}
