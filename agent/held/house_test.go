package held_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/held"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// house is the asking side, all of it real: a store in a file, plans compiled from files, people, and a server on a loopback port.
type house struct {
	t      testing.TB
	dir    string
	clock  *clock
	store  store.Store
	plans  *plans.Plans
	people approval.Directory
	svc    *approval.Service
	url    string
	stop   func() // ends the server
	// secrets of tokens that were made, by name: a name is who asks, and has one live token.
	secrets map[string]string
}

// clock is a time that a test may move forward.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), clock: &clock{}}
	must(t, os.CopyFS(h.dir, os.DirFS("testdata")))
	var err error
	h.store, err = sqlite.Open(t.Context(), filepath.Join(h.dir, "assent.db"), sqlite.Options{Now: h.clock.Now})
	must(t, err)
	src, err := os.ReadFile(filepath.Join(h.dir, "people.yaml"))
	must(t, err)
	known, findings := people.Parse("people.yaml", src)
	if known == nil {
		t.Fatal(findings)
	}
	h.people = known
	h.plans, err = plans.Load(plans.Config{
		Agents: []string{filepath.Join(h.dir, "agents")}, Policies: []string{filepath.Join(h.dir, "policies")},
		Options: resolve.Options{AllowTimeoutApprove: true},
	})
	must(t, err)
	h.svc = approval.New(h.store, h.plans, h.people, h.clock.Now, rand.Reader, approval.Config{AcceptUnknown: func(string) bool { return true }})
	h.serve()
	t.Cleanup(func() { h.stop(); h.store.Close() })
	return h
}

// serve starts the server, with an inbox in which mara is signed in.
func (h *house) serve() {
	h.t.Helper()
	signer, _, err := ledger.GenerateKey("assent.test", rand.Reader)
	must(h.t, err)
	pages := inbox.New(inbox.Config{Service: h.svc, Store: h.store, Directory: h.people, Now: h.clock.Now, Who: func(r *http.Request) (string, approval.Person, bool, bool) {
		p, ok, err := h.people.Person(r.Context(), "acme", "mara")
		return "acme", p, false, ok && err == nil
	}})
	s := server.New(server.Config{Service: h.svc, Store: h.store, Directory: h.people, Signer: signer, Now: h.clock.Now, Inbox: pages})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(h.t, err)
	h.url = "http://" + listener.Addr().String()
	front := server.HTTPServer(s)
	done := make(chan error, 1)
	go func() { done <- front.Serve(listener) }()
	h.stop = sync.OnceFunc(func() {
		front.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			h.t.Errorf("the server: %v", err)
		}
	})
}

// client is one of the API with a token of its own.
func (h *house) client(tok store.Token) *client.Client {
	h.t.Helper()
	if h.secrets == nil {
		h.secrets = map[string]string{}
	}
	if h.secrets[tok.Name] == "" {
		h.secrets[tok.Name] = h.put(tok)
	}
	c, err := client.New(h.url, h.secrets[tok.Name], client.Options{Attempts: 2, Pause: time.Millisecond, MaxPause: time.Millisecond})
	must(h.t, err)

	return c
}

func (h *house) put(tok store.Token) (secret string) {
	h.t.Helper()
	secret, hash, err := tokens.NewSecret(rand.Reader)
	must(h.t, err)
	tok.ID, tok.Hash, tok.Tenant = "tok_"+hash[:12], hash, "acme"
	tok.Created, tok.Expires = h.clock.Now().UTC(), h.clock.Now().AddDate(9, 0, 0).UTC()
	must(h.t, h.store.PutToken(h.t.Context(), tok))

	return secret
}

// The two holders, which must not differ.
func sides() map[string]func(h *house, runtime, agentID string) hold.Holder {
	return map[string]func(h *house, runtime, agentID string) hold.Holder{
		"service": func(h *house, runtime, agentID string) hold.Holder {
			return held.Service(h.svc, held.Identity{Tenant: "acme", Asker: approval.Asker{Token: runtime}, Agent: agentID, Inbox: h.url + "/"})
		},
		"client": func(h *house, runtime, agentID string) hold.Holder {
			return held.Client(h.client(store.Token{Name: runtime, Scopes: []string{"request"}}), agentID)
		},
	}
}

// onBothSides runs a test against either holder, each with a house of its own.
func onBothSides(t *testing.T, test func(t *testing.T, h *house, of func(runtime, agentID string) hold.Holder)) {
	t.Helper()
	for name, side := range sides() {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			test(t, h, func(runtime, agentID string) hold.Holder { return side(h, runtime, agentID) })
		})
	}
}

// asks is the verdict of a plan that asks about a call of a tool.
func asks(tool, args string) hold.Verdict {
	return hold.Verdict{
		Decision: resolve.Decision{Outcome: resolve.Ask},
		Call:     &resolve.Call{Kind: resolve.Tool, Tool: tool, Args: []byte(args), Principal: "client-7", Session: "s-1", ToolDefinition: "sha256:abc"},
	}
}

// answer is one person's word on a request as it is; sign changes it.
func (h *house) answer(id, person string, verdict approval.Verdict, sign func(*approval.VoteInput)) (approval.VoteOutcome, error) {
	r, err := h.svc.Request(context.Background(), "acme", id)
	if err != nil {
		return "", err
	}
	in := approval.VoteInput{Tenant: "acme", ID: id, IfVersion: r.Version, Binding: r.Binding(), Person: person, Verdict: verdict, Full: true, Channel: "test"}
	if verdict == approval.Deny {
		in.Reason = "not like this"
	}
	if sign != nil {
		sign(&in)
	}
	v, err := h.svc.Vote(context.Background(), in)
	if err != nil {
		return "", err
	}
	return v.Outcome, nil
}

// votes is answer where it must count.
func (h *house) votes(id, person string, verdict approval.Verdict, want approval.VoteOutcome, sign func(*approval.VoteInput)) {
	h.t.Helper()
	got, err := h.answer(id, person, verdict, sign)
	if err != nil || got != want {
		h.t.Fatalf("%s said %s: got %q, %v, want %q", person, verdict, got, err, want)
	}
}

func (h *house) edit(id, person, args string) error {
	r, err := h.svc.Request(context.Background(), "acme", id)
	if err != nil {
		return err
	}
	_, err = h.svc.Edit(context.Background(), approval.EditInput{
		Tenant: "acme", ID: id, IfVersion: r.Version, Binding: r.Binding(), Person: person, Args: args, Channel: "test", Full: true,
	})
	return err
}

// later lets time pass and act.
func (h *house) later(d time.Duration) {
	h.t.Helper()
	h.clock.add(d)
	_, err := h.svc.Tick(h.t.Context())
	must(h.t, err)
}

// rewrite changes a file of the house and loads the agents again.
func (h *house) rewrite(file, old, now string) {
	h.t.Helper()
	name := filepath.Join(h.dir, file)
	src, err := os.ReadFile(name)
	must(h.t, err)
	text := strings.Replace(string(src), old, now, 1)
	if text == string(src) {
		h.t.Fatalf("%s does not hold %q", file, old)
	}
	must(h.t, os.WriteFile(name, []byte(text), 0o600))
	if !h.plans.Reload() {
		h.t.Fatal("the change went unnoticed")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
