package hold_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// fragile is a real store whose ledger can fail for a time.
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

func (f *fragile) Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error) {
	f.mu.Lock()
	err := f.lost
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}

	return f.Store.Leaves(ctx, tenant, from, limit)
}

// newAssent starts an Assent that accepts unknown principals.
func newAssent(t testing.TB, cfg assenttest.Config) *assenttest.Assent {
	t.Helper()
	cfg.Service.AcceptUnknown = func(string) bool { return true }

	return assenttest.New(t, cfg)
}

// withFragileLog starts an Assent that runs, with a fragile store.
func withFragileLog(t *testing.T) (a *assenttest.Assent, log *fragile) {
	a = newAssent(t, assenttest.Config{
		Runs: true,
		Store: func(s store.Store) store.Store {
			log = &fragile{Store: s}
			return log
		},
	})
	return a, log
}

// seat holds the Requests of one asker of an agent.
type seat struct {
	hold.Requests
	people   hold.People
	readsAll bool // the asker's token may read everything of the tenant
}

func (s seat) Watch(ctx context.Context, changed func(ref string)) error {
	return s.people.Watch(ctx, changed)
}

// seatOf returns the seat of the asker with this token or program name.
func seatOf(people hold.People, token string) seat {
	return seat{Requests: people.As(approval.Asker{Token: token}), people: people}
}

// inProcess returns the seat of a program that uses a service in this process.
func inProcess(a *assenttest.Assent, program, agentID string) seat {
	return seatOf(hold.Service(a.Service, a.Store, hold.Place{
		Tenant: "acme",
		Agent:  agentID,
		Inbox:  a.URL + "/",
	}), program)
}

// atServer returns a function that creates the seat of a token with these scopes at a server.
func atServer(scopes ...string) func(a *assenttest.Assent, token, agentID string) seat {
	return func(a *assenttest.Assent, token, agentID string) seat {
		clients := map[string]*client.Client{token: a.Client(store.Token{Name: token, Scopes: scopes})}
		out := seatOf(client.People(agentID, clients), token)
		out.readsAll = len(scopes) > 1

		return out
	}
}

// side creates the seat of an asker.
type side func(a *assenttest.Assent, token, agentID string) seat

// sides returns the implementations of People, which must all behave in the same way.
func sides() map[string]side {
	return map[string]side{
		"service":         inProcess,
		"client, polling": atServer("request"),
		"client, events":  atServer("request", "read"),
	}
}

// sideTest is a test with one implementation of People.
type sideTest func(t *testing.T, a *assenttest.Assent, of func(token, agentID string) seat)

// onAllSides runs a test with every implementation, each with its own running Assent.
func onAllSides(t *testing.T, test sideTest) {
	t.Helper()
	onSides(t, assenttest.Config{Runs: true}, sides(), test)
}

// onBothSides runs a test with a service and with a server, both of which process due requests only
// when the test calls Tick.
func onBothSides(t *testing.T, test sideTest) {
	t.Helper()
	some := sides()
	delete(some, "client, events") // it also reads requests of others
	onSides(t, assenttest.Config{}, some, test)
}

func onSides(t *testing.T, cfg assenttest.Config, sides map[string]side, test sideTest) {
	t.Helper()
	for name, one := range sides {
		t.Run(name, func(t *testing.T) {
			a := newAssent(t, cfg)
			test(t, a, func(token, agentID string) seat { return one(a, token, agentID) })
		})
	}
}

// asks returns the verdict of a plan that asks about a call of a tool.
func asks(tool, args string) hold.Verdict {
	return hold.Verdict{
		Decision: resolve.Decision{Outcome: resolve.Ask},
		Call: &resolve.Call{
			Kind:           resolve.Tool,
			Tool:           tool,
			Args:           []byte(args),
			Principal:      "client-7",
			Session:        "s-1",
			ToolDefinition: "sha256:abc",
		},
	}
}

// motd returns a question to mara.
func motd() hold.Question {
	return hold.Question{
		Call: &resolve.Call{
			Kind:      resolve.Tool,
			Tool:      "write",
			Args:      []byte(`{ "path": "/etc/motd" }`),
			Principal: "mara@example.com",
			Session:   "t-1",
		},
		Server:  "files",
		Prompt:  "Write <b>/etc/motd</b>?",
		Choices: []string{"Yes for session", "", "No"},
		Default: 2,
	}
}

// chooses answers a question with a choice of a person.
func chooses(a *assenttest.Assent, id, person string, choice int) {
	a.T.Helper()
	a.Votes(
		id,
		person,
		approval.Choose,
		approval.VoteAnswered,
		func(in *approval.VoteInput) { in.Choice = &choice },
	)
}

// heard collects the references that Watch reports during the test.
type heard struct {
	t    *testing.T
	refs chan string
	stop func() error
}

func watching(t *testing.T, s seat) *heard {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &heard{t: t, refs: make(chan string, 10_000)}
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx, func(ref string) { w.refs <- ref }) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = w.stop() })
	w.until("the start", func(ref string) bool { return ref == "" })

	return w
}

// until reads reports until holds returns true for one of them.
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

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
