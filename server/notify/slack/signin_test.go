package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/store"
)

// directSlack implements the part of Slack's API that direct messages need.
type directSlack struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	opens    string            // user whose messages are always opened; if empty, those of the requested user
	messages map[string]string // texts and URLs of buttons, by channel and ts
	calls    []string
	refuse   bool
	lose     bool // lose the response after posting
}

func newDirectSlack(t *testing.T) *directSlack {
	f := &directSlack{t: t, messages: map[string]string{}}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)

	return f
}

func (f *directSlack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	f.calls = append(f.calls, method)
	w.Header().Set("Content-Type", "application/json")
	if f.refuse {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	out := map[string]any{"ok": true}
	channel, ts := r.FormValue("channel"), r.FormValue("ts")
	switch method {
	case "conversations.open":
		user := r.FormValue("users")
		if f.opens != "" {
			user = f.opens
		}
		out["channel"] = map[string]any{"id": "D" + user, "user": user}
	case "chat.postMessage":
		ts = fmt.Sprint("1.", len(f.messages)+1)
		f.keep(channel+" "+ts, r)
	case "chat.update":
		if f.messages[channel+" "+ts] == "" {
			out = map[string]any{"ok": false, "error": "message_not_found"}
			break
		}
		f.keep(channel+" "+ts, r)
	default:
		f.t.Errorf("it is asked for %s", method)
	}

	if method == "chat.postMessage" && f.lose {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if method != "conversations.open" {
		out["channel"], out["ts"] = channel, ts
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (f *directSlack) keep(at string, r *http.Request) {
	blocks, err := readBlocks([]byte(r.FormValue("blocks")), 50)
	if err != nil {
		f.t.Errorf("blocks: %v\n%s", err, r.FormValue("blocks"))
	}
	shown := r.FormValue("text") + "\n" + texts(blocks)
	for _, b := range blocks {
		for _, e := range b.Elements {
			shown += "\n[" + e.Text.Text + "](" + e.URL + ")"
		}
	}
	f.messages[at] = shown
}

// only returns the only message and its place.
func (f *directSlack) only() (at, shown string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.messages) != 1 {
		f.t.Fatalf("%d messages: %q", len(f.messages), f.messages)
	}
	for at, shown = range f.messages {
	}

	return at, shown
}

// bookOf contains one sign-in of one person.
type bookOf struct {
	mu     sync.Mutex
	asked  *signin.Asked
	person string
}

func (b *bookOf) SignIns(context.Context, string, string) (signin.Page, error) {
	return signin.Page{}, nil
}

func (b *bookOf) SignIn(_ context.Context, of, id string) (signin.Asked, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked == nil || of != tenant || id != b.asked.ID {
		return signin.Asked{}, "", approval.ErrNotFound
	}

	return *b.asked, b.person, nil
}

func (b *bookOf) set(asked *signin.Asked, person string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked, b.person = asked, person
}

const signInID = "sign_in_1"

func signInFor(link string) *signin.Asked {
	at := signin.At(link, func(address string) error {
		if strings.HasPrefix(address, "https://idp.example/") {
			return nil
		}
		return context.Canceled
	})

	return &signin.Asked{
		ID:        signInID,
		Agent:     agentID,
		Server:    "notes\u202e<!channel>",
		Operation: "read*all*",
		Host:      at.Host,
		Link:      at.Link,
		Since:     time.Unix(1_000, 0),
		Until:     time.Unix(100_000, 0),
	}
}

// signsIn returns an app and the only sign-in of its tenant.
func signsIn(t *testing.T, change ...func(*slack.Config)) (*directSlack, *bookOf, func(event string) error) {
	f, b := newDirectSlack(t), &bookOf{}
	change = append([]func(*slack.Config){func(c *slack.Config) {
		c.API = f.URL + "/api/"
		c.Guard = trusting(f.Server)
		c.SignIns = b
	}}, change...)
	w := newWorld(t, change...)

	return f, b, func(event string) error {
		return w.app.Send(t.Context(), store.Job{
			Tenant:   tenant,
			Attempt:  1,
			Delivery: approval.Delivery{Target: "slack", Event: event, Subject: signInID},
		})
	}
}

func sends(t *testing.T, send func(string) error, event string) {
	t.Helper()
	must.Do(t, send(event))
}

// TestSignInIsADirectMessage checks that only the Slack user of the person gets a message, with
// the host first. The message follows changes of the link, and is replaced at the end.
func TestSignInIsADirectMessage(t *testing.T) {
	f, b, send := signsIn(t)
	b.set(signInFor("https://idp.example/a?state=1"), "alice@acme.example")
	sends(t, send, signin.EventAsked)
	sends(t, send, signin.EventAsked) // as after a crash
	at, shown := f.only()
	if at != "DU0ALICE 1.1" { // never in a channel
		t.Errorf("it is in %s", at)
	}
	first, _, _ := strings.Cut(shown, "idp.example: the tool server notes")
	if strings.TrimSpace(first) != "A tool asks you to sign in" {
		t.Errorf("before the host stands %q", first)
	}
	holds(t, shown, "[Sign in at idp.example](https://idp.example/a?state=1)", `\u{202e}`, "&lt;!channel&gt;", "read*all*")

	next := signInFor("https://idp.example/b")
	next.Since = next.Since.Add(time.Second)
	b.set(next, "alice@acme.example")
	sends(t, send, signin.EventAsked)
	if _, shown := f.only(); !strings.Contains(shown, "(https://idp.example/b)") || strings.Contains(shown, "state=1") {
		t.Errorf("after another link:\n%s", shown)
	}

	b.set(nil, "")
	sends(t, send, signin.EventOver)
	sends(t, send, signin.EventOver)
	if _, shown := f.only(); !strings.Contains(shown, "no longer needed") || strings.Contains(shown, "idp.example") {
		t.Errorf("after its end:\n%s", shown)
	}
	n := slices.Index(f.calls, "chat.update")
	if n < 0 || slices.Index(f.calls[n:], "chat.postMessage") >= 0 {
		t.Errorf("calls %q", f.calls)
	}
}

// TestNobodyElseIsToldOfASignIn checks that no message is sent for people without a Slack user
// in this workspace, to users of other people, or to a channel.
func TestNobodyElseIsToldOfASignIn(t *testing.T) {
	for _, person := range []string{"carl@acme.example", "stranger@acme.example", "rita", ""} {
		f, b, send := signsIn(t)
		b.set(signInFor("https://idp.example/"), person)
		sends(t, send, signin.EventAsked)
		if len(f.messages) != 0 {
			t.Errorf("%q: %q", person, f.messages)
		}
	}

	f, b, send := signsIn(t)
	b.set(signInFor("https://idp.example/"), "alice@acme.example")
	f.opens = "U0BOB"
	if err := send(signin.EventAsked); err == nil || len(f.messages) != 0 {
		t.Errorf("with the messages of somebody else: %v, %q", err, f.messages)
	}
	f.opens = ""
	sends(t, send, signin.EventAsked)
	b.set(signInFor("https://idp.example/"), "bob@acme.example") // the directory has changed
	sends(t, send, signin.EventAsked)
	if got := f.messages["DU0ALICE 1.1"]; strings.Contains(got, "idp.example") {
		t.Errorf("alice still sees\n%s", got)
	}
	if got := f.messages["DU0BOB 1.2"]; !strings.Contains(got, "idp.example") {
		t.Errorf("bob sees %q", f.messages)
	}
}

// TestSignInHasAButtonUnderTheRuleAlone checks that there is no link to an unregistered host,
// to a URL that Slack doesn't accept, or if the configuration shows no arguments in Slack.
func TestSignInHasAButtonUnderTheRuleAlone(t *testing.T) {
	long := "https://idp.example/" + strings.Repeat("a", 3000)
	for _, c := range []struct {
		link     string
		hidden   bool
		host     string
		warnings int
	}{
		{"https://idp.example.evil.org/x", false, "idp.example.evil.org", 1},
		{"https://xn--dp-fla.example/x", false, "xn--dp-fla.example", 1},
		{"javascript:alert(1)", false, "An address that can't be shown", 1},
		{"https://mara:pw@idp.example/x", false, "An address that can't be shown", 1},
		{long, false, "idp.example", 0},
		{"https://idp.example/x", true, "idp.example", 0},
	} {
		f, b, send := signsIn(t, func(s *slack.Config) { s.Arguments = !c.hidden })
		b.set(signInFor(c.link), "alice@acme.example")
		sends(t, send, signin.EventAsked)
		_, shown := f.only()
		if !strings.Contains(shown, c.host+": the tool server") || strings.Contains(shown, "("+c.link) ||
			!strings.Contains(shown, "[Open in the inbox](https://assent.example/)") ||
			strings.Count(shown, "Do not sign in there") != c.warnings {
			t.Errorf("%.60s:\n%s", c.link, shown)
		}
	}
}

// TestSignInThatSlackDoesNotTakeIsSentAgain sends a message again if Slack rejected it, but not
// if its reader deleted it.
func TestSignInThatSlackDoesNotTakeIsSentAgain(t *testing.T) {
	f, b, send := signsIn(t)
	b.set(signInFor("https://idp.example/"), "alice@acme.example")
	f.refuse = true
	if err := send(signin.EventAsked); err == nil {
		t.Error("it is taken for sent")
	}
	f.refuse = false
	sends(t, send, signin.EventAsked)
	at, _ := f.only()
	delete(f.messages, at)
	b.set(nil, "")
	sends(t, send, signin.EventOver)
	if len(f.messages) != 0 {
		t.Errorf("%q", f.messages)
	}
}

// TestACrashWhilePostingASignIn checks that a message whose place was not stored is cancelled
// by another message.
func TestACrashWhilePostingASignIn(t *testing.T) {
	f, b, send := signsIn(t)
	b.set(signInFor("https://idp.example/"), "alice@acme.example")
	f.lose = true
	if err := send(signin.EventAsked); err == nil {
		t.Error("it is taken for sent")
	}
	f.lose = false
	b.set(nil, "")
	sends(t, send, signin.EventOver)
	sends(t, send, signin.EventOver)
	if got := f.messages["DU0ALICE 1.2"]; len(f.messages) != 2 || !strings.Contains(got, "no longer needed") {
		t.Errorf("%q", f.messages)
	}
}
