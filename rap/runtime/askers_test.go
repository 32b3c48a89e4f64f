package runtime

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
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

func TestTheDeskIsAskedInTheNameOfWhoCalls(t *testing.T) {
	w := newRTWorld(t, anybody)
	all := []approval.Asker{{Token: "rt", Person: "mara"}, {Token: "rt", Person: "ben"}, {Token: "rt2"}}
	for i, who := range all {
		threads := w.as(w.r, who)
		for k, call := range []Invocation{rtInvocation("approval", "send", `{}`), rtInvocation("own", "wipe", `{}`)} {
			must.Get(threads.Invoke(t.Context(), call))(t)
			if got := w.desk.Of(w.asked(2*i + k + 1)).Asker; got != who { // though all of them call it the same
				t.Errorf("asked as %+v, want %+v", got, who)
			}
		}
	}

	w.settles()
	w.stop()
	w.start() // the records say who asks
	for i, ref := range w.desk.Refs() {
		if i%2 == 1 {
			w.desk.Says(ref, hold.Answer{State: hold.Chosen, Selected: 0, By: "zoe"})
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
		ref := w.desk.Refs()[2*i]
		w.until("its withdrawal", func() bool { return w.desk.Of(ref).Canceller == who })
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

	same := must.Get(New(w.cfg))(t)
	cfg := w.cfg
	cfg.Namespace = "another"
	other := must.Get(New(cfg))(t)
	in := &Invocation{Thread: "t", ID: "w1"}
	before := w.r.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	again := same.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	elsewhere := other.names.Sent(rtAsker(), in.Thread, in.ID, in.Ancestors)
	if before.ID != again.ID || before.Group != again.Group || before.ID == elsewhere.ID ||
		before.Group == elsewhere.Group {
		t.Errorf("sent as %+v, after a restart %+v, by another runtime %+v", before, again, elsewhere)
	}
}
