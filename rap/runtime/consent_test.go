package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
)

func TestAsksBeforeACallLeaves(t *testing.T) {
	w := newRTWorld(t)
	if c := w.invoke("a", "send", `{"to":"bob"}`); c.State != CallAsking {
		t.Fatalf("%+v", c)
	}
	ref := w.asked(1)
	w.shows("a", ref)
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 0 {
		t.Fatalf("sent %d times before anybody said yes", n)
	}
	if v := w.desk.Of(ref).Verdict; v.Message != "Send to bob?" || v.Call.Principal != "ann" || v.Call.Session != "t" ||
		v.Call.ToolDefinition == "" {
		t.Errorf("asked: %+v", v)
	}
	w.desk.Hold(hold.Held{Ref: ref, State: hold.Approved, By: "eve"})
	w.tool.waits("/run", 1)
	w.is("a", CallPending)
	if w.desk.Of(ref).Taken == "" {
		t.Error("the approval was not claimed")
	}
}

func TestDoesNotSendWhatIsNotApproved(t *testing.T) {
	for name, c := range map[string]struct {
		held  hold.Held
		claim error
		text  string
	}{
		"denied":       {held: hold.Held{State: hold.Denied, Reason: "not today"}, text: "not today"},
		"expired":      {held: hold.Held{State: hold.Expired}, text: "in time"},
		"cancelled":    {held: hold.Held{State: hold.Cancelled}, text: "withdrawn"},
		"responded":    {held: hold.Held{State: hold.Responded, Reason: "use mail"}, text: "use mail"},
		"unknown":      {held: hold.Held{State: "new"}, text: "denied"},
		"not claimed":  {held: hold.Held{State: hold.Approved}, claim: hold.ErrNotClaimed, text: "can't be used"},
		"edited badly": {held: hold.Held{State: hold.Approved, Arguments: []byte(`{"to":1}`)}, text: "not valid"},
		"edited, unreadable": {
			held: hold.Held{State: hold.Approved, Arguments: []byte(`{"to":"a","to":"b"}`)},
			text: "not valid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRTWorld(t)
			w.desk.ClaimErr = c.claim
			w.invoke("a", "send", `{"to":"bob"}`)
			ref := w.asked(1)
			c.held.Ref = ref
			w.desk.Hold(c.held)
			why := WhyDenied
			if strings.HasPrefix(name, "edited") {
				why = WhyInvalid
			}
			if got := w.ends("a", why); !strings.Contains(got.Outcome.Text, c.text) {
				t.Errorf("told %q", got.Outcome.Text)
			}
			w.settles()
			if n := len(w.tool.bodies("/run")) + len(w.tool.bodies("/cancel_tool_call")); n != 0 {
				t.Errorf("the tool server heard %d times", n)
			}
		})
	}
}

func TestSendsWhatAnApproverChanged(t *testing.T) {
	w := newRTWorld(t)
	w.invoke("a", "send", `{"to":"bob"}`)
	ref := w.asked(1)
	w.desk.Hold(hold.Held{Ref: ref, State: hold.Approved, Arguments: []byte(`{ "to": "carol" }`)})
	if got := w.tool.waits("/run", 1)[0]; !strings.Contains(got, `{ "to": "carol" }`) {
		t.Errorf("sent %s", got)
	}
	if got := w.desk.Of(ref).Verdict; string(got.Call.Args) != `{ "to": "carol" }` {
		t.Errorf("claimed for %s", got.Call.Args)
	}
	if c := w.invoke("a", "send", `{"to":"bob"}`); c.ID != "a" {
		t.Errorf("the same call again is %+v", c)
	}
}

func TestForgetsApprovalsOfToolsThatChanged(t *testing.T) {
	w := newRTWorld(t)
	w.invoke("a", "send", `{"to":"bob"}`)
	ref := w.asked(1)
	w.shows("a", ref)
	w.tool.Offers(fmt.Sprintf(strings.ReplaceAll(rtManifest, `"sends"`, `"sends it"`), w.tool.URL))
	w.stop()
	w.start() // discards the session's tools
	w.desk.Hold(hold.Held{Ref: ref, State: hold.Approved, Arguments: []byte(`{"to":"carol"}`)})
	if c := w.ends("a", WhyInvalid); !strings.Contains(c.Outcome.Text, "changed") {
		t.Errorf("told %q", c.Outcome.Text)
	}
}

func TestDecidesAgain(t *testing.T) {
	deny := strings.ReplaceAll(
		rtAgent,
		"    - {alias: send, approval: {message_template: \"Send to {{tool_args.to}}?\"}}\n",
		"",
	)
	allow := strings.ReplaceAll(rtAgent, `, approval: {message_template: "Send to {{tool_args.to}}?"}`, "")
	t.Run("denies by now", func(t *testing.T) {
		w := newRTWorld(t)
		w.invoke("a", "send", `{"to":"bob"}`)
		ref := w.asked(1)
		w.shows("a", ref)
		w.sets(func() { w.plan = rtPlan(t, deny) })
		w.desk.Hold(hold.Held{Ref: ref, State: hold.Approved})
		w.ends("a", WhyDenied)
		w.until("withdrawn", func() bool { return w.desk.Of(ref).Withdrawn == 1 })
		if n := len(w.tool.bodies("/run")); n != 0 {
			t.Errorf("sent %d times", n)
		}
	})
	t.Run("allows by now", func(t *testing.T) {
		w := newRTWorld(t)
		w.desk.FailWith(errors.New("the desk is away"))
		w.invoke("a", "send", `{"to":"bob"}`)
		w.until("tried", func() bool { return w.logged("the desk is away") })
		w.sets(func() { w.plan = rtPlan(t, allow) })
		w.pass(time.Minute)
		w.tool.waits("/run", 1)
		if n := len(w.desk.Refs()); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("asks by now", func(t *testing.T) {
		w := newRTWorld(t)
		w.tool.Answers("/run", http.StatusServiceUnavailable)
		w.cfg.Servers[0].Peer.Backoff = 10 * time.Minute
		w.stop()
		w.start()
		w.invoke("a", "read", `{}`)
		w.tool.waits("/run", 1)
		w.sets(func() {
			w.plan = rtPlan(t, strings.ReplaceAll(rtAgent, "{alias: read}", `{alias: read, approval: true}`))
		})
		w.settles()
		w.pass(10 * time.Minute)
		w.shows("a", w.asked(1))
		if n := len(w.tool.bodies("/run")); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestAsksAboutDestructiveTools(t *testing.T) {
	for name, c := range map[string]struct {
		answer hold.Answer
		sent   bool
	}{
		"run it":    {hold.Answer{State: hold.Chosen, Selected: 0, By: "ann"}, true},
		"don't":     {hold.Answer{State: hold.Chosen, Selected: 1}, false},
		"dismissed": {hold.Answer{State: hold.Dismissed, Selected: 0}, false},
		"no index":  {hold.Answer{State: hold.Chosen, Selected: -1}, false},
		"expired":   {hold.Answer{State: hold.Expired}, false},
		"denied":    {hold.Answer{State: hold.Denied, Reason: "frozen"}, false},
		"no state":  {hold.Answer{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRTWorld(t, func(c *Config) { c.Servers[0].Groups = []string{"ops"} })
			if c := w.invoke("a", "wipe", `{}`); c.State != CallAsking {
				t.Fatalf("%+v", c)
			}
			ref := w.asked(1)
			q := w.desk.Of(ref).Question
			if q.Default != 1 || q.Choices[1] != destroysDont || q.Server != "files" || q.Groups[0] != "ops" ||
				!q.Call.Annotations["destructiveHint"] {
				t.Errorf("asked %+v", q)
			}
			if len(q.Call.Annotations) != 1 {
				t.Errorf("hints that loosen were believed: %v", q.Call.Annotations)
			}
			w.desk.Says(ref, c.answer)
			if c.sent {
				w.is("a", CallPending)
			} else {
				w.ends("a", WhyDenied)
			}
			if n := len(w.tool.bodies("/run")); n != map[bool]int{true: 1}[c.sent] {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestTrustsWhereItIsTold(t *testing.T) {
	w := newRTWorld(t, func(c *Config) { c.Servers[0].TrustDestructive = true })
	w.invoke("a", "wipe", `{}`)
	w.is("a", CallPending)
}

func TestWithoutADesk(t *testing.T) {
	w := newRTWorld(t, func(c *Config) { c.People = nil })
	for _, operation := range []string{"send", "wipe"} {
		if c := w.invoke(operation, operation, `{}`); c.Why != WhyDenied {
			t.Errorf("%s: %+v", operation, c)
		}
	}
	w.sent("a")
	w.accepts("a", w.choice("a", "1"))
	w.ends("a", WhyUnanswered)
	w.tool.waits("/cancel_tool_call", 1)
}

func TestAllowsNothingByAnError(t *testing.T) {
	w := newRTWorld(t)
	w.invoke("approval", "send", `{"to":"bob"}`)
	approval := w.asked(1)
	w.invoke("own", "wipe", `{}`)
	own := w.asked(2)
	w.shows("approval", approval)
	w.shows("own", own)
	w.settles()
	w.desk.FailWith(errors.New("the desk is away"))
	w.until("tried", func() bool { return strings.Count(w.text(), "the desk is away") >= 2 })
	w.desk.Hold(hold.Held{Ref: approval, State: hold.Approved})
	w.desk.Says(own, hold.Answer{State: hold.Chosen})
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 0 {
		t.Errorf("sent %d times", n)
	}
	w.desk.FailWith(nil)
	w.pass(2 * time.Minute)
	w.is("approval", CallPending)
	w.is("own", CallPending)
}

func TestWhoseDeskForgot(t *testing.T) {
	w := newRTWorld(t)
	w.invoke("approval", "send", `{"to":"bob"}`)
	w.invoke("own", "wipe", `{}`)
	w.sent("a")
	w.accepts("a", w.choice("a", "1"))
	w.asked(3)
	w.settles()
	w.desk.Set(func() { w.desk.Shown = nil })
	w.desk.Tell("")
	w.ends("approval", WhyDenied)
	w.ends("own", WhyDenied)
	w.ends("a", WhyUnanswered)
}

// rtVague is an approval service that approves without returning references.
type rtVague struct{ *raptest.Desk }

func (d rtVague) As(approval.Asker) hold.Requests { return d }

func (rtVague) Ask(context.Context, string, hold.Question) (string, error) { return "", nil }

func (rtVague) Open(context.Context, string, hold.Verdict) (hold.Held, error) {
	return hold.Held{State: hold.Approved}, nil
}

func TestWantsReferences(t *testing.T) {
	w := newRTWorld(t, func(c *Config) { c.People = rtVague{raptest.NewDesk(t)} })
	w.invoke("approval", "send", `{"to":"bob"}`)
	w.invoke("own", "wipe", `{}`)
	w.sent("asks")
	w.accepts("asks", w.choice("asks", "1"))
	w.until("tried", func() bool { return strings.Count(w.text(), "no reference") >= 3 })
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
	w.is("approval", CallAsking)
	w.is("own", CallAsking)
}

func TestGivesUpAsking(t *testing.T) {
	w := newRTWorld(t)
	w.desk.FailWith(errors.New("the desk is away"))
	w.invoke("approval", "send", `{"to":"bob"}`)
	w.invoke("own", "wipe", `{}`)
	w.settles()
	w.pass(2 * time.Hour)
	w.ends("approval", WhyTimeout)
	w.ends("own", WhyTimeout)
	if n := len(w.tool.bodies("/cancel_tool_call")); n != 0 {
		t.Errorf("cancelled %d times what never left", n)
	}
}

func TestWaitsAsLongAsApprovalsMay(t *testing.T) {
	w := newRTWorld(t)
	w.invoke("a", "send", `{"to":"bob"}`)
	ref := w.asked(1)
	w.shows("a", ref)
	w.desk.Hold(hold.Held{Ref: ref, State: hold.Pending, Expires: w.now().Add(48 * time.Hour)})
	w.settles()
	w.pass(47 * time.Hour)
	w.settles()
	w.desk.Hold(hold.Held{Ref: ref, State: hold.Approved})
	w.is("a", CallPending)
	w.pass(time.Hour + time.Minute) // the call's own hour begins when it is sent
	w.ends("a", WhyTimeout)
	w.tool.waits("/cancel_tool_call", 1)
}

func (w *rtWorld) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// People see what the agent says about a call in the approval request and in questions, and it
// is never sent to the tool server.
func TestPeopleSeeWhatTheAgentSays(t *testing.T) {
	w := newRTWorld(t)
	says := []info.Item{{Label: "Why", Text: "the ticket wants it"}}
	in := Invocation{Thread: "t", ID: "a", Operation: "send", Arguments: json.RawMessage(`{"to":"bob"}`), Context: says}
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	ref := w.asked(1)
	if got := w.desk.Of(ref).Verdict.Context; !slices.Equal(got, says) {
		t.Errorf("the approval says %v", got)
	}
	in.ID, in.Operation = "b", "wipe"
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	ref = w.asked(2)
	if got := w.desk.Of(ref).Question.Context; !slices.Equal(got, says) {
		t.Errorf("the question says %v", got)
	}

	in.ID, in.Operation = "c", "read"
	in.Arguments = json.RawMessage(`{"path":"x"}`)
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	if got := w.tool.waits("/run", 1)[0]; strings.Contains(got, "ticket") {
		t.Errorf("the tool server was told %s", got)
	}
}

func TestRefusesWhatAnAgentMayNotSay(t *testing.T) {
	w := newRTWorld(t)
	_, err := w.mine.Invoke(t.Context(), Invocation{
		Thread:    "t",
		ID:        "a",
		Operation: "read",
		Context:   []info.Item{{Label: "Ticket", Link: "http://tickets.example/7"}},
	})
	var wrong *info.Error
	if !errors.As(err, &wrong) || wrong.Path != "context.0.link" {
		t.Errorf("error %v", err)
	}
}

// The approval service of an upstream server approves nothing and has no requests.
func TestRelayDeskApprovesNothing(t *testing.T) {
	d := newRelay()
	if held, err := d.Open(t.Context(), "k", hold.Verdict{}); err == nil {
		t.Errorf("%v", held)
	}
	if err := d.Claim(t.Context(), "ref", "k", hold.Verdict{}); err == nil {
		t.Error("a run was given away")
	}
	ref := must.Get(d.Ask(t.Context(), "q", hold.Question{Within: -2 * relayKept}))(t)
	must.Get(d.Ask(t.Context(), "q2", hold.Question{Within: time.Hour}))(t)
	if _, err := d.Answer(t.Context(), ref); !errors.Is(err, hold.ErrNoRequest) {
		t.Errorf("what expired is known: %v", err)
	}
}

func TestUpstreamMustBeThere(t *testing.T) {
	for name, url := range map[string]string{
		"nobody":     "http://127.0.0.1:1",
		"no address": "",
		"far":        "http://tools.example",
	} {
		_, err := Upstream(t.Context(), UpstreamConfig{
			Common:      rap.Common{Records: rap.NewMemory(), Namespace: "up", Key: bytes.Repeat([]byte{9}, 32)},
			Server:      Server{Name: "back", Peer: peer.Config{URL: url, Timeout: time.Second, Attempts: 1}},
			CallbackURL: "http://127.0.0.1:2",
		})
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
