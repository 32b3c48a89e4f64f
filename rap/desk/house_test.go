package desk

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

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

const agentText = `schema_version: "1.0.0"
metadata: {id: AGENT, name: Files, version: "1.0.0", description: Writes files for the tests.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  local_tools:
    - {alias: write, description: Writes.}
    - {alias: pay, description: Pays., approval: true}
execution_policy: {id: agf.react, config: {instructions: Write., model: any}}
`

const peopleText = `schema_version: "1.0.0"
people:
  - {id: mara, also: [mara@example.com]}
  - {id: ben, groups: [ops]}
groups: {ops: {description: People who run it.}}
`

// house is the asking side, all of it real: a store in a file, plans and people from files, and a server on a loopback port that works.
type house struct {
	t     testing.TB
	clock *clock
	store *fragile
	svc   *approval.Service
	url   string
	stop  func()
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

// fragile is a real store whose ledger can be lost for a time.
type fragile struct {
	store.Store
	mu   sync.Mutex
	lost error
}

func (f *fragile) lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = err
}

func (f *fragile) Leaves(ctx context.Context, tenant string, from int64, limit int) ([]store.Entry, error) {
	f.mu.Lock()
	err := f.lost
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Store.Leaves(ctx, tenant, from, limit)
}

func newHouse(t testing.TB) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, clock: &clock{}, secrets: map[string]string{}}
	for _, id := range []string{"files", "other"} {
		must(t, os.WriteFile(filepath.Join(dir, id+".agf.yaml"), []byte(strings.Replace(agentText, "AGENT", id, 1)), 0o600))
	}
	opened, err := sqlite.Open(t.Context(), filepath.Join(dir, "assent.db"), sqlite.Options{Now: h.clock.Now, Poll: 20 * time.Millisecond})
	must(t, err)
	h.store = &fragile{Store: opened}
	known, findings := people.Parse("people.yaml", []byte(peopleText))
	if known == nil {
		t.Fatal(findings)
	}
	loaded, err := plans.Load(plans.Config{Agents: []string{dir}})
	must(t, err)
	h.svc = approval.New(h.store, loaded, known, h.clock.Now, rand.Reader, approval.Config{})
	h.serve(known)
	t.Cleanup(func() { h.stop(); h.store.Close() })
	return h
}

func (h *house) serve(known approval.Directory) {
	h.t.Helper()
	signer, _, err := ledger.GenerateKey("assent.test", rand.Reader)
	must(h.t, err)
	s := server.New(server.Config{Service: h.svc, Store: h.store, Directory: known, Signer: signer, Now: h.clock.Now,
		Timing: server.Timing{Tick: 20 * time.Millisecond, Seal: 20 * time.Millisecond}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(h.t, err)
	h.url = "http://" + listener.Addr().String()
	front := server.HTTPServer(s)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := front.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			h.t.Errorf("the server: %v", err)
		}
	})
	all.Go(func() {
		if err := s.Run(ctx); err != nil {
			h.t.Errorf("Run: %v", err)
		}
	})
	h.stop = sync.OnceFunc(func() {
		cancel()
		front.Close()
		all.Wait()
	})
}

// client is one of the API with a token of its own.
func (h *house) client(runtime string, scopes ...string) *client.Client {
	h.t.Helper()
	if h.secrets[runtime] == "" {
		h.secrets[runtime] = h.token(runtime, scopes)
	}
	c, err := client.New(h.url, h.secrets[runtime], client.Options{Attempts: 2, Pause: time.Millisecond, MaxPause: 10 * time.Millisecond})
	must(h.t, err)
	return c
}

func (h *house) token(runtime string, scopes []string) (secret string) {
	h.t.Helper()
	secret, hash, err := tokens.NewSecret(rand.Reader)
	must(h.t, err)
	must(h.t, h.store.PutToken(h.t.Context(), store.Token{
		ID: "tok_" + hash[:12], Hash: hash, Tenant: "acme", Name: runtime, Scopes: scopes, Created: h.clock.Now().UTC(), Expires: h.clock.Now().AddDate(9, 0, 0).UTC(),
	}))

	return secret
}

// seat is a desk as one asker has it, who watches it too.
type seat struct {
	hold.Requests
	desk hold.People
}

func seatAt(d hold.People, token string) seat { return seat{d.As(approval.Asker{Token: token}), d} }

func (s seat) Watch(ctx context.Context, changed func(ref string)) error {
	return s.desk.Watch(ctx, changed)
}

// sides are the ways to a desk, which must not differ.
func sides() map[string]func(h *house, runtime, agentID string) seat {
	polling := func(h *house, runtime, agentID string) seat {
		d := Client(agentID, map[string]*client.Client{runtime: h.client(runtime, "request")}).(*clientDesk)
		d.poll = 50 * time.Millisecond
		return seatAt(d, runtime)
	}
	return map[string]func(h *house, runtime, agentID string) seat{
		"service": func(h *house, runtime, agentID string) seat {
			return seatAt(Service(h.svc, h.store, Place{Tenant: "acme", Agent: agentID}), runtime)
		},
		"client, polling": polling,
		"client, events": func(h *house, runtime, agentID string) seat {
			return seatAt(Client(agentID, map[string]*client.Client{runtime: h.client(runtime, "request", "read")}), runtime)
		},
	}
}

// onAllSides runs a test against every desk, each with a house of its own.
func onAllSides(t *testing.T, test func(t *testing.T, h *house, of func(runtime, agentID string) seat)) {
	t.Helper()
	for name, side := range sides() {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			test(t, h, func(runtime, agentID string) seat { return side(h, runtime, agentID) })
		})
	}
}

// motd is a question to mara.
func motd() hold.Question {
	return hold.Question{
		Call:   &resolve.Call{Kind: resolve.Tool, Tool: "write", Args: []byte(`{ "path": "/etc/motd" }`), Principal: "mara@example.com", Session: "t-1"},
		Server: "files", Prompt: "Write <b>/etc/motd</b>?", Choices: []string{"Yes for session", "", "No"}, Default: 2,
	}
}

func (h *house) vote(id, person string, verdict approval.Verdict, choice int) {
	h.t.Helper()
	r, err := h.svc.Request(context.Background(), "acme", id)
	must(h.t, err)
	in := approval.VoteInput{Tenant: "acme", ID: id, Binding: r.Binding(), Person: person, Verdict: verdict, Full: true, Channel: "test"}
	if verdict == approval.Choose {
		in.Choice = &choice
	}
	out, err := h.svc.Vote(context.Background(), in)
	if err != nil || out.Outcome != approval.VoteAnswered && out.Outcome != approval.VoteApproved {
		h.t.Fatalf("got %+v, %v", out, err)
	}
}

// heard collects what a desk tells, while the test lasts.
type heard struct {
	t    *testing.T
	refs chan string
	stop func() error
}

func watching(t *testing.T, d seat) *heard {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &heard{t: t, refs: make(chan string, 10_000)}
	done := make(chan error, 1)
	go func() { done <- d.Watch(ctx, func(ref string) { w.refs <- ref }) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = w.stop() })
	w.until("the start", func(ref string) bool { return ref == "" })
	return w
}

// until takes what the desk tells until something comes to hold.
func (w *heard) until(what string, holds func(ref string) bool) {
	w.t.Helper()
	over := time.NewTimer(15 * time.Second)
	defer over.Stop()
	for {
		select {
		case ref := <-w.refs:
			if holds(ref) {
				return
			}
		case <-over.C:
			w.t.Fatalf("waited in vain: %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
