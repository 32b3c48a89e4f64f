// Package assenttest runs the whole asking side for tests, all of it
// real: a store in a file, plans compiled from files, people, a
// service, and a server with an inbox on a loopback port.
package assenttest

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// Tenant is the tenant that all tests use.
const Tenant = "acme"

//go:embed testdata
var testdata embed.FS

// Files are agents, policies and people: the agents desk and other
// trade, the agents files and other-files write files; mara, ben and
// kim are risk, and ben is ops too.
func Files(t testing.TB) fs.FS {
	t.Helper()
	files, err := fs.Sub(testdata, "testdata")
	must(t, err)

	return files
}

// Config configures an asking side. The zero value is one on Files in which deadlines are handled
// only when the test calls Later.
type Config struct {
	Files fs.FS // agents/*.agf.yaml, policies/*.policy.yaml and people.yaml; nil: Files
	Runs  bool  // time acts and the ledger is sealed by themselves, every few milliseconds

	Store   func(store.Store) store.Store // puts something around the store
	Service approval.Config
	Server  func(*server.Config) // changes the configuration of the server
}

// Assent is a running asking side. It ends with the test.
type Assent struct {
	T       testing.TB
	Dir     string
	Clock   *Clock
	Store   store.Store
	Plans   *plans.Plans
	People  approval.Directory
	Service *approval.Service
	Signer  ledger.Signer
	Server  *server.Server
	URL     string
	Stop    func() // ends the server

	// secrets are the secrets of tokens by name. A name identifies an asker, and has one live
	// token.
	secrets map[string]string
}

// New starts an asking side.
func New(t testing.TB, cfg Config) *Assent {
	t.Helper()
	a := &Assent{
		T:       t,
		Dir:     t.TempDir(),
		Clock:   &Clock{},
		secrets: map[string]string{},
	}
	if cfg.Files == nil {
		cfg.Files = Files(t)
	}
	must(t, os.CopyFS(a.Dir, cfg.Files))
	var err error
	a.Signer, _, err = ledger.GenerateKey("assent.test", rand.Reader)
	must(t, err)
	a.open(cfg)
	a.serve(cfg)
	t.Cleanup(func() {
		a.Stop()
		a.Store.Close()
	})

	return a
}

// open opens the store, and makes the service on it.
func (a *Assent) open(cfg Config) {
	a.T.Helper()
	at := sqlite.Options{Now: a.Clock.Now, Poll: tick}
	opened, err := sqlite.Open(a.T.Context(), filepath.Join(a.Dir, "assent.db"), at)
	must(a.T, err)
	a.Store = opened
	if cfg.Store != nil {
		a.Store = cfg.Store(opened)
	}
	text, err := os.ReadFile(filepath.Join(a.Dir, "people.yaml"))
	must(a.T, err)
	known, findings := people.Parse("people.yaml", text)
	if known == nil {
		a.T.Fatal(findings)
	}
	a.People = known
	a.Plans, err = plans.Load(plans.Config{
		Agents:   []string{filepath.Join(a.Dir, "agents")},
		Policies: []string{filepath.Join(a.Dir, "policies")},
		Options:  resolve.Options{AllowTimeoutApprove: true},
	})
	must(a.T, err)
	a.Service = approval.New(a.Store, a.Plans, a.People, a.Clock.Now, rand.Reader, cfg.Service)
}

// tick is the interval at which deadlines are handled.
const tick = 20 * time.Millisecond

// serve starts the server, with an inbox in which mara is signed in.
func (a *Assent) serve(cfg Config) {
	a.T.Helper()
	config := server.Config{
		Channels:  []string{"inbox", "slack"},
		Service:   a.Service,
		Store:     a.Store,
		Directory: a.People,
		Signer:    a.Signer,
		Now:       a.Clock.Now,
		Inbox:     a.inbox(),
		Timing:    server.Timing{Tick: tick, Seal: tick},
	}
	if cfg.Server != nil {
		cfg.Server(&config)
	}
	a.Server = server.New(config)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(a.T, err)
	a.URL = "http://" + listener.Addr().String()
	front := server.HTTPServer(a.Server)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := front.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.T.Errorf("the server: %v", err)
		}
	})
	if cfg.Runs {
		all.Go(func() {
			if err := a.Server.Run(ctx); err != nil {
				a.T.Errorf("Run: %v", err)
			}
		})
	}

	a.Stop = sync.OnceFunc(func() {
		cancel()
		front.Close()
		all.Wait()
	})
}

func (a *Assent) inbox() http.Handler {
	return inbox.New(inbox.Config{
		Service:   a.Service,
		Store:     a.Store,
		Directory: a.People,
		Now:       a.Clock.Now,
		Who: func(r *http.Request) (string, approval.Person, bool, bool) {
			p, ok, err := a.People.Person(r.Context(), Tenant, "mara")
			return Tenant, p, false, ok && err == nil
		},
	})
}

// Client returns a client with a token of its own, which is made at the
// first call for its name.
func (a *Assent) Client(tok store.Token) *client.Client {
	a.T.Helper()
	if a.secrets[tok.Name] == "" {
		a.secrets[tok.Name] = a.Token(tok)
	}
	opt := client.Options{
		Attempts: 2,
		Pause:    time.Millisecond,
		MaxPause: 10 * time.Millisecond,
		Poll:     tick,
	}
	c, err := client.New(a.URL, a.secrets[tok.Name], opt)
	must(a.T, err)

	return c
}

// Token puts a token into the store, and returns its secret.
func (a *Assent) Token(tok store.Token) string {
	a.T.Helper()
	secret, hash, err := tokens.NewSecret(rand.Reader)
	must(a.T, err)
	tok.ID = "tok_" + hash[:12]
	tok.Hash = hash
	tok.Tenant = Tenant
	tok.Created = a.Clock.Now().UTC()
	tok.Expires = a.Clock.Now().AddDate(9, 0, 0).UTC()
	must(a.T, a.Store.PutToken(a.T.Context(), tok))

	return secret
}

// Vote gives one person's answer to the current version of a request. change may modify the answer.
func (a *Assent) Vote(
	id, person string, verdict approval.Verdict, change func(*approval.VoteInput),
) (approval.VoteOutcome, error) {
	r, err := a.Service.Request(context.Background(), Tenant, id)
	if err != nil {
		return "", err
	}
	in := approval.VoteInput{
		Tenant:    Tenant,
		ID:        id,
		IfVersion: r.Version,
		Binding:   r.Binding(),
		Person:    person,
		Verdict:   verdict,
		Full:      true,
		Channel:   "test",
	}
	if verdict == approval.Deny {
		in.Reason = "not like this"
	}
	if change != nil {
		change(&in)
	}
	voted, err := a.Service.Vote(context.Background(), in)
	if err != nil {
		return "", err
	}

	return voted.Outcome, nil
}

// Votes is like Vote, but fails the test unless the outcome is the expected one.
func (a *Assent) Votes(
	id, person string, verdict approval.Verdict, want approval.VoteOutcome, change func(*approval.VoteInput),
) {
	a.T.Helper()
	got, err := a.Vote(id, person, verdict, change)
	if err != nil || got != want {
		a.T.Fatalf("%s said %s: got %q, %v, want %q", person, verdict, got, err, want)
	}
}

// Edit approves a request with other arguments.
func (a *Assent) Edit(id, person, args string) error {
	r, err := a.Service.Request(context.Background(), Tenant, id)
	if err != nil {
		return err
	}
	_, err = a.Service.Edit(context.Background(), approval.EditInput{
		Tenant:    Tenant,
		ID:        id,
		IfVersion: r.Version,
		Binding:   r.Binding(),
		Person:    person,
		Args:      args,
		Channel:   "test",
		Full:      true,
	})

	return err
}

// Later moves the clock forward and handles deadlines.
func (a *Assent) Later(d time.Duration) {
	a.T.Helper()
	a.Clock.Add(d)
	_, err := a.Service.Tick(a.T.Context())
	must(a.T, err)
}

// Rewrite changes a file and loads the agents again.
func (a *Assent) Rewrite(file, old, now string) {
	a.T.Helper()
	name := filepath.Join(a.Dir, file)
	src, err := os.ReadFile(name)
	must(a.T, err)
	text := strings.Replace(string(src), old, now, 1)
	if text == string(src) {
		a.T.Fatalf("%s does not hold %q", file, old)
	}
	must(a.T, os.WriteFile(name, []byte(text), 0o600))
	if !a.Plans.Reload() {
		a.T.Fatal("the change went unnoticed")
	}
}

// Clock is a time that a test may move forward. It is safe for
// concurrent use.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return time.Now().Add(c.ahead)
}

// Add moves the time forward.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
