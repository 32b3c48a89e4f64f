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

func (f *fragile) Leaves(
	ctx context.Context,
	tenant string,
	from int64,
	limit int,
) ([]ledger.SealedEntry, error) {
	f.mu.Lock()
	err := f.lost
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}

	return f.Store.Leaves(ctx, tenant, from, limit)
}

// newAssent starts an asking side whose principals needn't be known.
func newAssent(t testing.TB, cfg assenttest.Config) *assenttest.Assent {
	t.Helper()
	cfg.Service.AcceptUnknown = func(string) bool { return true }

	return assenttest.New(t, cfg)
}

// withFragileLog starts one that runs, over a fragile store.
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

// seat is what one asker of an agent has of the people.
type seat struct {
	hold.Requests
	people   hold.People
	readsAll bool // the asker's token reads everything of the tenant
}

func (s seat) Watch(ctx context.Context, changed func(ref string)) error {
	return s.people.Watch(ctx, changed)
}

// seatOf seats the asker of a token, or of a program, in front of people.
func seatOf(people hold.People, token string) seat {
	return seat{Requests: people.As(approval.Asker{Token: token}), people: people}
}

// inProcess seats a program in front of a service.
func inProcess(a *assenttest.Assent, program, agentID string) seat {
	return seatOf(hold.Service(a.Service, a.Store, hold.Place{
		Tenant: "acme",
		Agent:  agentID,
		Inbox:  a.URL + "/",
	}), program)
}

// atServer seats a token with these scopes in front of a server.
func atServer(scopes ...string) func(a *assenttest.Assent, token, agentID string) seat {
	return func(a *assenttest.Assent, token, agentID string) seat {
		clients := map[string]*client.Client{token: a.Client(store.Token{Name: token, Scopes: scopes})}
		out := seatOf(client.People(agentID, clients), token)
		out.readsAll = len(scopes) > 1

		return out
	}
}

// side seats an asker in front of people.
type side func(a *assenttest.Assent, token, agentID string) seat

// sides are the ways to people, which must not differ.
func sides() map[string]side {
	return map[string]side{
		"service":         inProcess,
		"client, polling": atServer("request"),
		"client, events":  atServer("request", "read"),
	}
}

// sideTest is a test over one of the ways to people.
type sideTest func(t *testing.T, a *assenttest.Assent, of func(token, agentID string) seat)

// onAllSides runs a test for every way, each with an asking side of its
// own that runs by itself.
func onAllSides(t *testing.T, test sideTest) {
	t.Helper()
	onSides(t, assenttest.Config{Runs: true}, sides(), test)
}

// onBothSides runs a test for a service and for a server whose time
// acts only when the test says so.
func onBothSides(t *testing.T, test sideTest) {
	t.Helper()
	some := sides()
	delete(some, "client, events") // which reads what others asked too
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

// asks is the verdict of a plan that asks about a call of a tool.
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

// motd is a question to mara.
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

// chooses has a person answer a question.
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

// heard collects what is watched, while the test lasts.
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

// until takes what is told until something comes to hold.
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
