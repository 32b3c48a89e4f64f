package rap_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
)

// stillAsks checks that a call that got invalid messages can still ask, be answered and
// complete.
func (w *runtimeWorld) stillAsks(c *raptest.Call) {
	w.t.Helper()
	w.settles()
	w.nothingShown(c)
	w.tools.Exactly(c.AnswerAt(""), 0)
	w.pending(c)
	c.Sends(c.Choice(c.AnswerAt("")))
	w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 1)
	w.answered(c, c.AnswerAt(""), 1)
	w.completes(c)
}

func testR11(t *testing.T) {
	w := newRuntimeWorld(t)
	c := w.invoke("t-1", "call_1")
	m := c.Choice(c.AnswerAt("")).With("default", 0)
	before := w.refusals()
	c.Refused("missing", m.Without("choices"))
	c.Refused("empty", m.With("choices", []string{}))
	c.Refused("no strings", m.With("choices", []int{1, 2}))

	if w.refusals() == before {
		t.Error("nothing was logged")
	}
	w.stillAsks(c)
}

func testR12(t *testing.T) {
	w := newRuntimeWorld(t)
	c := w.invoke("t-1", "call_1")
	m := c.Choice(c.AnswerAt(""))
	c.Refused("missing", m.Without("default"))
	c.Refused("one too many", m.With("default", 3))
	c.Refused("negative", m.With("default", -1))
	w.stillAsks(c)
}

// trap is an address that must receive no connection.
type trap struct {
	origin string
	came   atomic.Int32
}

func newTrap(t *testing.T) *trap {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	tr := &trap{origin: "http://" + l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tr.came.Add(1)
			_ = conn.Close()
		}
	}()
	return tr
}

func testR15(t *testing.T) {
	w := newRuntimeWorld(t)
	trap := newTrap(t)
	c := w.invoke("t-1", "call_1")
	m := c.Choice(c.AnswerAt(""))
	c.Refused("no prompt", m.Without("prompt"))
	c.Refused("no address", m.Without("response_url"))
	own := strings.TrimPrefix(w.tools.URL, "http://")
	for _, address := range []string{ // TestCheck of package peer covers more
		trap.origin + "/a",
		"http://" + own + "@" + strings.TrimPrefix(trap.origin, "http://") + "/a",
		"https://" + own + "/a",
		"http://rebind.example:80/a",
		"//" + own + "/a",
		"",
	} {
		c.Refused(address, m.With("response_url", address))
		c.Refused(address+" with a token", m.With("response_url", address+raptest.Secret))
	}
	w.stillAsks(c)
	if n := trap.came.Load(); n != 0 {
		t.Errorf("%d connections came to an address that is not the tool's", n)
	}
	w.other.Exactly("answer", 0)
	for _, r := range w.tools.Requests("answer") {
		if !strings.HasSuffix(r.URI, raptest.Secret) {
			t.Errorf("posted to %s", r.URI)
		}
	}
}

func testR17(t *testing.T) {
	w := newRuntimeWorld(t)
	done := w.invoke("t-1", "done")
	w.completes(done)
	a, b := w.invoke("t-1", "call_1"), w.invoke("t-2", "call_2")
	before := w.refusals()
	for name, ids := range map[string][2]string{
		"unknown group":        {"t-9", "call_1"},
		"the asker's names":    {"t-1", "call_1"},
		"the asker's id":       {a.SentGroup, "call_1"},
		"the asker's group":    {"t-1", a.SentID},
		"unknown id":           {"t-1", "call_9"},
		"id of another thread": {"t-1", "call_2"},
		"another call":         {"t-2", "call_2"},
		"a finished call":      {"t-1", "done"},
		"empty group":          {"", "call_1"},
		"empty id":             {"t-1", ""},
		"case":                 {"T-1", "call_1"},
	} {
		for _, m := range []raptest.Message{
			a.Choice(a.AnswerAt("")),
			a.Result("injected"),
			a.Oauth("https://signin.example/"),
		} {
			gentlyRefused(t, name, a.Send(m.With("group_id", ids[0]).With("id", ids[1])))
		}
	}

	if w.refusals() == before {
		t.Error("nothing was logged")
	}
	gentlyRefused(t, "a question of a finished call", done.Send(done.Choice(done.AnswerAt(""))))
	gentlyRefused(t, "a result of a finished call", done.Send(done.Result("injected")))
	for _, field := range []string{"group_id", "id"} {
		for _, m := range []raptest.Message{a.Choice(a.AnswerAt("")), a.Result("injected")} {
			a.Refused("no "+field, m.Without(field))
			a.Refused(field+" is a number", m.With(field, 1))
		}
	}

	w.settles()
	w.endedWith(done, "Done: t-1/done")
	for _, c := range []*raptest.Call{a, b, done} {
		w.nothingShown(c)
	}
	if got := w.pending(a); got.SignIn != "" {
		t.Errorf("a sign-in of another call: %+v", got)
	}
	w.pending(b)
	w.completes(a)
	w.completes(b)
}

// gentlyRefused checks for 4xx or 200: the status must not reveal that a callback had no
// effect.
func gentlyRefused(t *testing.T, what string, status int) {
	t.Helper()
	if status != http.StatusOK && status/100 != 4 {
		t.Errorf("%s: answered with %d", what, status)
	}
}

func testR18(t *testing.T) {
	w := newRuntimeWorld(t)
	a := w.invoke("t-1", "call_1")
	b := w.invoke("t-2", "call_1")
	finished := w.invoke("t-1", "call_0")
	w.completes(finished)
	base, token := w.cfg.CallbackURL, strings.TrimPrefix(a.CallbackURL, w.cfg.CallbackURL+"/")
	if len(token) < 22 {
		t.Errorf("%d characters can't hold 128 bits", len(token))
	}
	for name, address := range map[string]string{
		"none":               base,
		"an empty one":       base + "/",
		"a cut one":          a.CallbackURL[:len(a.CallbackURL)-1],
		"a longer one":       a.CallbackURL + "A",
		"another path":       a.CallbackURL + "/more",
		"one character":      base + "/" + flip(token),
		"of nobody":          base + "/" + strings.Repeat("A", len(token)),
		"of another call":    b.CallbackURL,
		"of a finished call": finished.CallbackURL,
		"as a query":         base + "/?token=" + token,
		"lower case":         base + "/" + strings.ToLower(token) + "a",
	} {
		view := a.View("diff", map[string]any{"x": 1})
		for _, m := range []raptest.Message{
			a.Choice(a.AnswerAt("")),
			a.Result("injected"),
			a.Oauth("https://signin.example/"),
			view,
		} {
			status := raptest.PostTo(t, address, "application/json", m.Text(t))
			ownThread := m["type"] == "view_update" && name == "of a finished call"
			if status/100 != 4 && !ownThread {
				t.Errorf("%s with a token that is %s: answered with %d", m["type"], name, status)
			}
		}
	}

	w.settles()
	w.nothingShown(a)
	w.nothingShown(b)
	w.pending(b)
	if got := w.pending(a); got.SignIn != "" {
		t.Errorf("got %+v", got)
	}
	w.stillAsks(a)
}

func flip(token string) string {
	last := token[len(token)-1]
	if last == 'A' {
		return token[:len(token)-1] + "B"
	}
	return token[:len(token)-1] + "A"
}

func testR27(t *testing.T) {
	w := newRuntimeWorld(t)
	given := "c-1"
	for sent, callID := range map[string]*string{"with": &given, "without": nil} {
		for echo, change := range map[string]func(raptest.Message) raptest.Message{
			"absent": func(m raptest.Message) raptest.Message { return m },
			"null":   func(m raptest.Message) raptest.Message { return m.With("call_id", nil) },
			"there":  func(m raptest.Message) raptest.Message { return m.With("call_id", given) },
		} {
			c := w.invokes(runtime.Invocation{
				Thread:    "t-1",
				ID:        sent + "-" + echo,
				CallID:    callID,
				Operation: "write_file",
				Arguments: []byte(`{}`),
			})
			if (c.CallID == nil) != (callID == nil) || (callID != nil && *c.CallID != given) {
				t.Errorf("%s: sent call_id %v", sent, c.CallID)
			}
			c.Sends(change(c.Choice(c.AnswerAt(""))))
			w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 0)
			w.answered(c, c.AnswerAt(""), 0)
			c.Sends(change(c.Result("fine")))
			w.endedWith(c, "fine")
		}
	}
}

func testR28(t *testing.T) {
	w := newRuntimeWorld(t)
	c := w.invoke("t-1", "call_1")
	m := c.Choice(c.AnswerAt(""))
	c.Refused("an unknown type", m.With("type", "User_Choice"))
	for _, method := range []string{
		http.MethodGet,
		http.MethodPut,
		http.MethodDelete,
		http.MethodPatch,
		http.MethodHead,
	} {
		if status := raptest.Send(
			t,
			method,
			c.CallbackURL,
			"application/json",
			strings.NewReader(m.Text(t)),
		); status != http.StatusMethodNotAllowed {
			t.Errorf("%s: answered with %d, want 405", method, status)
		}
	}

	for _, contentType := range []string{
		"text/plain",
		"application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x",
		"application/jsonp",
		"application/json; charset=utf-16",
	} {
		if status := c.Raw(contentType, m.Text(t)); status/100 != 4 {
			t.Errorf("%s: answered with %d, want 4xx", contentType, status)
		}
	}

	big := m.With("prompt", strings.Repeat("a", 10<<20)).Text(t)
	for name, body := range map[string]io.Reader{
		"of a known length": strings.NewReader(big),
		"in pieces":         io.MultiReader(strings.NewReader(big)),
	} {
		if status := raptest.Send(
			t,
			http.MethodPost,
			c.CallbackURL,
			"application/json",
			body,
		); status != http.StatusRequestEntityTooLarge {
			t.Errorf("10 MB %s: answered with %d, want 413", name, status)
		}
	}

	good := strings.TrimSpace(m.Text(t))
	for name, body := range map[string]string{
		"half":            good[:len(good)/2],
		"more after it":   good + "{}",
		"a default twice": strings.Replace(good, `"default":2`, `"default":2,"default":0`, 1),
	} {
		if status := c.Raw("application/json", body); status/100 != 4 {
			t.Errorf("%s: answered with %d, want 4xx", name, status)
		}
	}
	w.stillAsks(c)

	c = w.invoke("t-2", "call_1")
	c.Sends(
		c.Choice(c.AnswerAt("")).
			With("x-extra", map[string]any{"deep": []int{1}}).With("severity", "high").With("selected", 0),
	)
	w.desk.Picks(w.desk.Asked(c.Name(), 1).Ref, 1)
	w.answered(c, c.AnswerAt(""), 1)
	if status := c.Raw(
		"application/json; charset=utf-8",
		c.Result("fine").With("extra", true).Text(t),
	); status != http.StatusOK {
		t.Errorf("answered with %d", status)
	}

	w.endedWith(c, "fine")
}
