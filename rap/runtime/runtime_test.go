package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

func TestIsTheSameCallAgain(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	if c := w.invoke("a", "read", `{"path":"/a"}`); c.State != CallPending {
		t.Errorf("the same call is %+v", c)
	}
	for name, edit := range map[string]func(*Invocation){
		"arguments": func(in *Invocation) { in.Arguments = json.RawMessage(`{"path": "/a"}`) },
		"operation": func(in *Invocation) { in.Operation = "send" },
		"user":      func(in *Invocation) { in.User = "bob" },
		"ancestors": func(in *Invocation) { in.Ancestors = []string{"root"} },
		"call_id":   func(in *Invocation) { in.CallID = new("x") },
	} {
		in := rtInvocation("a", "read", `{"path":"/a"}`)
		edit(&in)
		if _, err := w.mine.Invoke(t.Context(), in); !errors.Is(err, ErrOtherCall) {
			t.Errorf("%s: want ErrOtherCall, got %v", name, err)
		}
	}

	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
	if _, err := w.mine.Call(t.Context(), "t", "b"); !errors.Is(err, ErrNoCall) {
		t.Errorf("want ErrNoCall, got %v", err)
	}
}

func TestIsInvokedByManyAtOnce(t *testing.T) {
	w := newRTWorld(t)
	other, stop := w.process()
	defer stop()
	var all sync.WaitGroup
	for _, r := range []*Runtime{w.r, other, w.r, other, w.r, other} {
		all.Go(func() {
			for _, args := range []string{`{}`, `{"path":"/a"}`} {
				if _, err := w.as(r, rtAsker()).Invoke(t.Context(), rtInvocation("a", "read", args)); err != nil &&
					!errors.Is(err, ErrOtherCall) {
					t.Error(err)
				}
			}
		})
	}

	all.Wait()
	w.is("a", CallPending)
	w.settles(other)
	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestForgetsAfterADay(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	token := w.kept("a").Part.Token
	w.accepts("a", rtResult("a", "one"))
	w.ends("a", "")
	w.pass(keepEnded + time.Minute)
	if code := w.posts(token, string(rtResult("a", "one").Append(nil))); code != http.StatusNotFound {
		t.Errorf("a result a day later is answered with %d", code)
	}
	if _, err := w.mine.Call(t.Context(), "t", "a"); !errors.Is(err, ErrNoCall) {
		t.Errorf("want ErrNoCall, got %v", err)
	}
	w.invoke("a", "read", `{"path":"/b"}`)
	w.is("a", CallPending)
	if w.kept("a").Part.Token == token {
		t.Error("the callback URL is the old one")
	}
}

func TestRefusesInvocations(t *testing.T) {
	w := newRTWorld(t)
	for name, in := range map[string]Invocation{
		"no thread":    {ID: "a", Operation: "read"},
		"no id":        {Thread: "t", Operation: "read"},
		"bad thread":   {Thread: "\xff", ID: "a", Operation: "read"},
		"bad user":     {Thread: "t", ID: "a", Operation: "read", User: "\xff"},
		"bad call id":  {Thread: "t", ID: "a", Operation: "read", CallID: new("\xff")},
		"bad ancestor": {Thread: "t", ID: "a", Operation: "read", Ancestors: []string{"\xff"}},
	} {
		if _, err := w.mine.Invoke(t.Context(), in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}

	for id, c := range map[string]struct {
		operation, args string
		why             Why
	}{
		"unknown":         {"nothing", `{}`, WhyInvalid},
		"wrong type":      {"read", `{"path":1}`, WhyInvalid},
		"no object":       {"read", `[]`, WhyInvalid},
		"twice":           {"read", `{"path":"a","path":"b"}`, WhyInvalid},
		"broken":          {"read", `{`, WhyInvalid},
		"not in the file": {"hidden", `{}`, WhyDenied},
	} {
		if got := w.invoke(id, c.operation, c.args); got.State != CallDone || got.Why != c.why || !got.Failed ||
			!strings.HasPrefix(got.Outcome.Text, "Error: ") {
			t.Errorf("%s: %+v", id, got)
		}
	}

	if n := len(w.tool.bodies("/run")); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

// Keys that differ only by case folding are refused: the agent's rules would read the one, and
// a tool written in Go the other.
func TestRuntimeSendsNoKeysThatFoldAlike(t *testing.T) {
	w := newRTWorld(t)
	for id, args := range map[string]string{
		"a": `{"path":"fine","PATH":"evil"}`,
		"b": `{"path":"fine","o":{"ſ":1,"s":2}}`,
	} {
		got := w.invoke(id, "wipe", args)
		if got.State != CallDone || got.Why != WhyDenied ||
			!strings.Contains(got.Outcome.Text, "differ in upper and lower case alone") {
			t.Errorf("%s: %+v", args, got)
		}
	}

	if n := len(w.tool.bodies("/run")); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

func TestWithoutRules(t *testing.T) {
	w := newRTWorld(t)
	w.sets(func() { w.broken = errors.New("the file is being written") })
	if _, err := w.mine.Invoke(t.Context(), rtInvocation("a", "read", `{}`)); err == nil {
		t.Error("invoked without rules")
	}
	w.sets(func() { w.plan, w.broken = nil, nil })
	if _, err := w.mine.Invoke(t.Context(), rtInvocation("a", "read", `{}`)); err == nil {
		t.Error("invoked without a plan")
	}
	w.sets(func() { w.plan = rtPlan(t, rtAgent) })
	w.invoke("a", "read", `{}`)
	w.is("a", CallPending)
}

func TestConfig(t *testing.T) {
	good := newRTWorld(t).cfg
	for name, edit := range map[string]func(*Config){
		"records":         func(c *Config) { c.Records = nil },
		"room":            func(c *Config) { c.Namespace = "" },
		"plan":            func(c *Config) { c.Plan = nil },
		"key":             func(c *Config) { c.Key = c.Key[:31] },
		"no callback URL": func(c *Config) { c.CallbackURL = "" },
		"relative":        func(c *Config) { c.CallbackURL = "/x" },
		"ftp": func(c *Config) {
			c.CallbackURL = "ftp://x"
		},
		"query": func(c *Config) {
			c.CallbackURL = "http://x/?a=b"
		},
		"user":        func(c *Config) { c.CallbackURL = "http://u@x/" },
		"unnamed":     func(c *Config) { c.Servers = []Server{{Peer: c.Servers[0].Peer}} },
		"named twice": func(c *Config) { c.Servers = append([]Server{c.Servers[0]}, c.Servers...) },
		"without URL": func(c *Config) { c.Servers = []Server{{Name: "x"}} },
		"bad URL": func(c *Config) {
			s := c.Servers[0]
			s.Peer.URL = "ftp://x"
			c.Servers = []Server{s}
		},
		"plain http": func(c *Config) {
			s := c.Servers[0]
			s.Peer.URL = "http://tools.example"
			c.Servers = []Server{s}
		},
		"fragment URL": func(c *Config) { c.CallbackURL = "http://x/#f" },
	} {
		cfg := good
		edit(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}

	good.Now = nil
	good.Log = nil
	good.Record = nil
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func TestWaits(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	other, err := New(w.cfg) // another process
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := w.mine.Wait(ctx, "t", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := w.mine.Wait(t.Context(), "t", "b"); !errors.Is(err, ErrNoCall) {
		t.Errorf("want ErrNoCall, got %v", err)
	}
	got := make(chan Call, 2)
	for _, r := range []*Runtime{w.r, other} {
		go func() {
			c, _ := w.as(r, rtAsker()).Wait(t.Context(), "t", "a")
			got <- c
		}()
	}

	w.accepts("a", rtResult("a", "Error: no"))
	for range 2 {
		if c := <-got; c.State != CallDone || !c.Failed || c.Synthetic {
			t.Errorf("waited for %+v", c)
		}
	}
	w.until("nobody locks", func() bool {
		w.r.threads.mu.Lock()
		defer w.r.threads.mu.Unlock()
		return len(w.r.threads.held) == 0
	})
}

func TestOutcomes(t *testing.T) {
	text := "text"
	for name, c := range map[string]struct {
		result wire.Result
		failed bool
		items  int
		text   string
	}{
		"text":             {wire.Result{Text: &text}, false, 0, "text"},
		"an error":         {wire.Result{Text: new("Error: no")}, true, 0, "Error: no"},
		"content wins":     {wire.Result{Text: new("Error: no"), Content: []wire.Content{{Text: "yes"}}}, false, 1, ""},
		"an error item":    {wire.Result{Text: &text, Content: []wire.Content{{Text: "Error: no"}}}, true, 1, ""},
		"an empty content": {wire.Result{Text: &text, Content: []wire.Content{}}, false, 0, ""},
	} {
		o := outcomeOf(&c.result)
		if failed(&o) != c.failed || len(o.Content) != c.items || o.Text != c.text {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// leftOf counts the records of each kind in a namespace.
func leftOf(t testing.TB, records store.Records, namespace string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, kind := range []string{"calls", "refs", "threads", "events", "views", "users", "sign_ins"} {
		found := must.Get(records.ListRecords(t.Context(), namespace+"/"+kind, "", "", 100))(t)
		out[kind] = len(found)
	}

	return out
}

// Calls of a process that is gone are deleted in time, whether or not they had ended, and
// whether or not a runtime still works in their namespace.
func TestForgetsWhatAnEarlierProcessKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assent.db")
	open := func() store.Store {
		return must.Get(sqlite.Open(t.Context(), path, sqlite.Options{}))(t)
	}
	db := open()
	w := newRTWorld(t, func(c *Config) {
		c.Records = db
		c.Person = func(context.Context, string) (string, bool, error) { return "ann", true, nil }
	})
	w.sent("ended")
	w.accepts("ended", rtResult("ended", "done"))
	w.subscribes("told")
	w.accepts("told", rtEvent("told", "on"))
	w.accepts("told", rtView("log", "{}"))
	w.sent("open")
	w.accepts("open", w.choice("open", "1"))
	w.asked(1)
	w.settles()
	w.stop()
	must.Do(t, db.Close())

	db = open() // in a process without a runtime for the agent
	t.Cleanup(func() { _ = db.Close() })
	for _, c := range []struct {
		after time.Duration
		calls int
	}{{keepEnded - time.Hour, 3}, {keepEnded + time.Hour, 2}} {
		must.Do(t, db.SweepRecords(t.Context(), w.now().Add(c.after)))
		if left := leftOf(t, db, "clerk"); left["calls"] != c.calls {
			t.Errorf("after %s: %v, want %d calls", c.after, left, c.calls)
		}
	}

	must.Do(t, db.SweepRecords(t.Context(), w.now().Add(keepLive+w.cfg.CallWithin+2*time.Hour)))
	for kind, n := range leftOf(t, db, "clerk") {
		if n > 0 {
			t.Errorf("%d %s are kept for ever", n, kind)
		}
	}
	w.cfg.Records = db
	w.start()
}

// The next process ends the calls of one that is gone, and deletes them in time.
func TestEndsWhatAnEarlierProcessLeft(t *testing.T) {
	w := newRTWorld(t)
	w.sent("a")
	w.stop()
	w.pass(2 * time.Hour) // while no process was running
	w.start()
	w.ends("a", WhyTimeout)
	w.stop()
	w.pass(keepEnded)
	w.start()
	w.until("forgotten", func() bool { return leftOf(t, w.cfg.Records, "clerk")["calls"] == 0 })
}
