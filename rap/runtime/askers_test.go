package runtime

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/wire"
)

// anybody lets everybody ask, as the runtimes of a service do.
func anybody(c *Config) { c.Only = approval.Asker{} }

func TestNobodyCallsWithoutAName(t *testing.T) {
	w := newRTWorld(t, anybody)
	for name, who := range map[string]approval.Asker{
		"nobody":        {},
		"a person only": {Person: "mara"},
		"for somebody":  {Token: "rt", Principal: "mara"},
		"no name":       {Token: "r\x00t"},
		"no text":       {Token: "r\xfft"},
	} {
		if threads, err := w.r.As(who); err == nil || threads != nil {
			t.Errorf("%s may call", name)
		}
	}

	only := newRTWorld(t)
	if _, err := only.r.As(approval.Asker{Token: "another"}); err == nil {
		t.Error("another one calls through the runtime of somebody")
	}
	in := rtInvocation("a", "read", `{}`)
	in.User = "mara\u200b"
	if _, err := w.mine.Invoke(t.Context(), in); err == nil {
		t.Error("a call is made for somebody whom nobody could be called")
	}
}

// askedBy is in whose name something was asked.
func (d *rtDesk) askedBy(ref string) approval.Asker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.askers[ref]
}

func TestTheDeskIsAskedInTheNameOfWhoCalls(t *testing.T) {
	w := newRTWorld(t, anybody)
	all := []approval.Asker{{Token: "rt", Person: "mara"}, {Token: "rt", Person: "ben"}, {Token: "rt2"}}
	for i, who := range all {
		threads := w.as(w.r, who)
		for k, call := range []Invocation{rtInvocation("approval", "send", `{}`), rtInvocation("own", "wipe", `{}`)} {
			if _, err := threads.Invoke(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			if got := w.desk.askedBy(w.asked(2*i + k + 1)); got != who { // though all of them call it the same
				t.Errorf("asked as %+v, want %+v", got, who)
			}
		}
	}

	w.settles()
	w.stop()
	w.start() // the records say who asks
	for i, ref := range w.desk.refs() {
		if i%2 == 1 {
			w.desk.says(ref, hold.Answer{State: hold.Chosen, Selected: 0, By: "zoe"})
		}
	}

	w.tool.waits("/run", len(all))
	for i, who := range all {
		threads := w.as(w.r, who)
		if c, err := threads.Call(t.Context(), "t", "own"); err != nil || c.State == CallAsking {
			t.Errorf("%+v, %v", c, err)
		}
		if err := threads.Cancel(t.Context(), "t", "approval", ""); err != nil {
			t.Error(err)
		}
		ref := w.desk.refs()[2*i]
		w.until("its withdrawal", func() bool {
			w.desk.mu.Lock()
			defer w.desk.mu.Unlock()
			return w.desk.cancellers[ref] == who
		})
	}
}

func TestCallsAreNamedForTheirThreadAndAsker(t *testing.T) {
	w := newRTWorld(t, anybody)
	long := strings.Repeat("x", 8000)
	sent := map[string]string{} // by wire name
	for _, who := range []approval.Asker{
		{Token: "rt"},
		{Token: "rt", Person: "mara"},
		{Token: "rt2"},
		{Token: "rt2", Person: "m"},
	} {
		for _, thread := range []string{"t", "t2", "2:rt0:t", long, long + "y"} {
			for _, id := range []string{"w1", "w2", long} {
				names := w.r.names.Sent(who, thread, id, []string{"root"})
				if other, taken := sent[names.ID]; taken {
					t.Errorf("%+v %.8s %.8s is sent as %s is", who, thread, id, other)
				}
				sent[names.ID] = who.Token + who.Person + thread + id
				if len(names.ID) > 40 || len(names.Group) > 40 || len(names.Ancestors) != 1 ||
					names.Ancestors[0] == names.Group ||
					names.Ancestors[0] == "root" {
					t.Errorf("sent as %+v", names)
				}
			}
		}
	}

	same, err := New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg := w.cfg
	cfg.Namespace = "another"
	other, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	in := &Invocation{Thread: "t", ID: "w1"}
	before := w.r.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	again := same.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	elsewhere := other.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	if before.ID != again.ID || before.Group != again.Group || before.ID == elsewhere.ID ||
		before.Group == elsewhere.Group {
		t.Errorf("sent as %+v, after a restart %+v, by another runtime %+v", before, again, elsewhere)
	}
}

// What is sent is kept: a thread's parents, a call's answer and its end
// go out under the names of its invocation.
func TestEverythingGoesOutUnderTheNamesOfTheInvocation(t *testing.T) {
	w := newRTWorld(t, anybody)
	in := rtInvocation("w1", "read", `{}`)
	in.Thread, in.Ancestors = "child", []string{"t"}
	if _, err := w.mine.Invoke(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	var invoked wire.Invocation
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	invoked, err := wire.ParseInvocation([]byte(w.tool.waits("/run", 1)[0]))
	must(err)
	root := w.r.names.Sent(rtAsker(), "t", "w1", nil)
	if len(invoked.Ancestors) != 1 || invoked.Ancestors[0] != root.Group || invoked.GroupID == root.Group ||
		invoked.ID == root.ID {
		t.Errorf("sent %+v; the same id in the parent's thread is %+v", invoked, root)
	}
	token := invoked.CallbackURL[strings.LastIndex(invoked.CallbackURL, "/")+1:]
	for _, own := range []*wire.Result{
		{GroupID: "child", ID: "w1"},
		{GroupID: invoked.GroupID, ID: "w1"},
		{GroupID: "child", ID: invoked.ID},
	} {
		own.Text = new(string)
		if code := w.posts(token, string(own.Append(nil))); code != 404 {
			t.Errorf("the asker's names at the callback: %d", code)
		}
	}

	ask := &wire.Choice{
		GroupID:     invoked.GroupID,
		ID:          invoked.ID,
		Prompt:      "?",
		Choices:     []string{"Yes"},
		ResponseURL: w.tool.URL + "/answers/1",
	}
	if code := w.posts(token, string(ask.Append(nil))); code != 200 {
		t.Fatal(code)
	}
	w.desk.says(w.asked(1), hold.Answer{State: hold.Chosen, By: "ann"})
	answer, err := wire.ParseAnswer([]byte(w.tool.waits("/answers/1", 1)[0]))
	if must(err); answer.ID != invoked.ID {
		t.Errorf("answered %+v", answer)
	}
	must(w.mine.Cancel(t.Context(), "child", "w1", ""))
	cancelled, err := wire.ParseCancelCall([]byte(w.tool.waits("/cancel_tool_call", 1)[0]))
	if must(err); cancelled.ThreadID != invoked.GroupID || cancelled.ToolCallID != invoked.ID {
		t.Errorf("cancelled %+v", cancelled)
	}
	must(w.mine.CloseThread(t.Context(), "child"))
	closed, err := wire.ParseCloseThread([]byte(w.tool.waits("/close_thread", 1)[0]))
	if must(err); closed.ThreadID != invoked.GroupID {
		t.Errorf("closed %+v", closed)
	}
	c, err := w.mine.Call(t.Context(), "child", "w1")
	if must(err); c.Thread != "child" || c.ID != "w1" {
		t.Errorf("the asker reads %+v", c)
	}
	if text, err := json.Marshal(c); err != nil || strings.Contains(string(text), invoked.GroupID) {
		t.Errorf("the asker reads %s, %v", text, err)
	}
}
