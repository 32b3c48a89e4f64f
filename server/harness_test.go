package server_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// harness is a complete server on a loopback port, with a real store in a file and real
// agents, policies and people.
type harness struct {
	t      *testing.T
	dir    string
	store  *fragile
	people approval.Directory
	plans  *plans.Plans
	svc    *approval.Service
	signer ledger.Signer
	srv    *server.Server
	url    string
	log    *testwait.Buffer
	clock  *assenttest.Clock
	stop   func()
	marks  int                  // entries that size made
	tools  func(*server.Config) // gives a server the runtime of withTools
}

// fragile is a real store that can be made to fail.
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

func (f *fragile) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

func (f *fragile) Update(ctx context.Context, tenant string, fn func(approval.Tx) error) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Update(ctx, tenant, fn)
}

func (f *fragile) Freezes(ctx context.Context, tenant string) ([]approval.Freeze, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.Store.Freezes(ctx, tenant)
}

func (f *fragile) Ping(ctx context.Context) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Ping(ctx)
}

func (f *fragile) Seal(ctx context.Context, limit int, sign func(ledger.Checkpoint) ([]byte, error)) (int, error) {
	if err := f.err(); err != nil {
		return 0, err
	}
	return f.Store.Seal(ctx, limit, sign)
}

// newHarness starts a server that ends with the test.
func newHarness(t *testing.T, change ...func(*server.Config)) *harness {
	t.Helper()
	h := &harness{t: t, dir: t.TempDir(), log: &testwait.Buffer{}, clock: &assenttest.Clock{}}
	must(t, os.CopyFS(h.dir, os.DirFS("testdata")))
	secret := ""
	var err error
	if h.signer, secret, err = ledger.GenerateKey("assent.test", rand.Reader); err != nil || secret == "" {
		t.Fatal(err)
	}
	h.open()
	h.start(change...)
	t.Cleanup(func() {
		h.stop()
		h.store.Close()
	})
	return h
}

// open opens the store and the services that use it.
func (h *harness) open() {
	h.t.Helper()
	s, err := sqlite.Open(h.t.Context(), filepath.Join(h.dir, "assent.db"), sqlite.Options{Now: h.clock.Now})
	must(h.t, err)
	h.store = &fragile{Store: s}
	src, err := os.ReadFile(filepath.Join(h.dir, "people.yaml"))
	must(h.t, err)
	known, findings := people.Parse("people.yaml", src)
	if known == nil {
		h.t.Fatal(findings)
	}
	h.people = known
	h.plans, err = plans.Load(
		plans.Config{
			Agents:   []string{filepath.Join(h.dir, "agents")},
			Policies: []string{filepath.Join(h.dir, "policies")},
		},
	)
	must(h.t, err)
	all := &administration.Planner{Next: h.plans, Admins: admins}
	h.svc = approval.New(h.store, all, h.people, h.clock.Now, rand.Reader, approval.Config{})
}

// start starts a server over the open store; stop ends it.
func (h *harness) start(change ...func(*server.Config)) {
	h.t.Helper()
	cfg := server.Config{
		Channels:  []string{"inbox", "slack"},
		Service:   h.svc,
		Store:     h.store,
		Directory: h.people,
		Signer:    h.signer,
		Now:       h.clock.Now,
		Logger:    slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Checks: []server.Check{{
			Name:     "agents",
			Check:    func(context.Context) error { return h.plans.Err(plans.Agents) },
			Degrades: true,
		}},
		Administration: &administration.Desk{Service: h.svc, Directory: h.people, Admins: admins},
		PublicURL:      "https://assent.example",
		Timing: server.Timing{
			Tick:      20 * time.Millisecond,
			Seal:      20 * time.Millisecond,
			Heartbeat: 100 * time.Millisecond,
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	h.srv = server.New(cfg)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(h.t, err)
	h.url = "http://" + listener.Addr().String()
	front := server.HTTPServer(h.srv)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = front.Serve(listener) })
	all.Go(func() {
		if err := h.srv.Run(ctx); err != nil && h.store.err() == nil {
			h.t.Errorf("Run: %v", err)
		}
	})
	h.stop = sync.OnceFunc(func() {
		cancel()
		http.DefaultClient.CloseIdleConnections() // those that were never used count as busy for five seconds
		if err := front.Shutdown(testwait.Context(h.t)); err != nil {
			h.t.Errorf("the server did not drain: %v", err)
			front.Close()
		}
		all.Wait()
	})
}

// token stores a token and returns its secret.
func (h *harness) token(tok store.Token) string {
	h.t.Helper()
	secret, hash, err := tokens.NewSecret(rand.Reader)
	must(h.t, err)
	tok.ID, tok.Hash = "tok_"+hash[:12], hash
	if tok.Tenant == "" {
		tok.Tenant = "acme"
	}
	if tok.Name == "" {
		tok.Name = "name-" + hash[:6]
	}
	if tok.Created.IsZero() {
		tok.Created = h.clock.Now().UTC()
	}
	if tok.Expires.IsZero() {
		tok.Expires = h.clock.Now().Add(time.Hour).UTC()
	}
	h.free(tok)
	must(h.t, h.store.PutToken(h.t.Context(), tok))
	return secret
}

// free ends the live tokens with the name of tok, because names of live tokens are unique.
func (h *harness) free(tok store.Token) {
	h.t.Helper()
	all, err := h.store.Tokens(h.t.Context(), tok.Tenant)
	must(h.t, err)
	for _, other := range all {
		if other.Name != tok.Name || other.Revoked != nil {
			continue
		}
		must(h.t, h.store.RevokeToken(h.t.Context(), tok.Tenant, other.ID, h.clock.Now()))
	}
}

func (h *harness) runtime() string {
	return h.token(store.Token{Name: "rt", Scopes: []string{"decide", "request"}})
}

func (h *harness) voter(person string) string {
	return h.token(store.Token{Name: "cli-" + person, Person: person, Scopes: []string{"read", "vote"}})
}

// admins returns the group of administrators of every tenant.
func admins(string) string { return "admins" }

// administer asks for an act of administration, has both administrators approve it, and
// performs it.
func (h *harness) administer(path, token, body string) *answer {
	h.t.Helper()
	h.approve(h.do("POST", path, token, body).must(202).request("request").ID, "ada", "abe")

	return h.do("POST", path, token, body)
}

// approveAct has both administrators approve the request in err.
func (h *harness) approveAct(err error) {
	h.t.Helper()
	var asked *client.AskedError
	if !errors.As(err, &asked) {
		h.t.Fatalf("nobody was asked: %v", err)
	}
	h.approve(asked.Request.ID, "ada", "abe")
}

// approve has people approve a request.
func (h *harness) approve(id string, people ...string) {
	h.t.Helper()
	for _, person := range people {
		h.vote(h.voter(person), h.request(id), "approve").must(200)
	}
}

// request reads a request from the store.
func (h *harness) request(id string) *approval.Request {
	h.t.Helper()
	r, err := h.store.Request(h.t.Context(), "acme", id)
	must(h.t, err)

	return r
}

func (h *harness) admin() string {
	return h.token(store.Token{Name: "root", Scopes: []string{"admin", "read"}})
}

// answer is the server's response.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	text   string
}

// longest is the limit for one exchange: a stream in place of an expected error would never
// end.
const longest = 2 * time.Minute

// do makes one exchange, and checks the answer against openapi.yaml.
func (h *harness) do(method, path, token, body string, headers ...string) *answer {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), longest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	must(h.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Del(headers[i])
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}

	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(h.t, err)
	a := &answer{t: h.t, status: resp.StatusCode, header: resp.Header, text: string(text)}
	holdToContract(h.t, method, req.URL.Path, a)
	return a
}

// must fails the test unless the status is as expected.
func (a *answer) must(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.text)
	}
	return a
}

// get returns a value in a JSON answer by its path.
func (a *answer) get(path ...string) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		a.t.Fatalf("%v: %s", err, a.text)
	}
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}

	return v
}

func (a *answer) str(path ...string) string {
	a.t.Helper()
	s, _ := a.get(path...).(string)
	return s
}

// request decodes the request at a path in the answer.
func (a *answer) request(path ...string) *approval.Request {
	a.t.Helper()
	text, err := json.Marshal(a.get(path...))
	must(a.t, err)
	r := &approval.Request{}
	if err := json.Unmarshal(text, r); err != nil {
		a.t.Fatalf("%v: %s", err, text)
	}
	return r
}

// look reads a request.
func (h *harness) look(token string, r *approval.Request) *answer {
	h.t.Helper()
	return h.do("GET", "/v1/requests/"+r.ID, token, "")
}

// opens asks whether a call may run.
func (h *harness) opens(token, body string, headers ...string) *answer {
	h.t.Helper()
	return h.do("POST", "/v1/agents/desk/requests", token, body, headers...)
}

func (h *harness) ask(token, args string) *approval.Request {
	h.t.Helper()
	return h.opens(token, `{"call":{"kind":"tool","tool":"trade","args":`+args+`}}`).
		must(http.StatusCreated).
		request("request")
}

// vote answers a request in its current version.
func (h *harness) vote(token string, r *approval.Request, verdict string) *answer {
	h.t.Helper()
	body := `{"verdict":"` + verdict + `","binding":"` + r.Binding() + `","shown_fully":true`
	if verdict == "deny" {
		body += `,"reason":"not like this"`
	}
	body += "}"
	return h.do("POST", "/v1/requests/"+r.ID+"/votes", token, body, "If-Match", version(r))
}

func version(r *approval.Request) string {
	text, _ := json.Marshal(r.Version)
	return `"` + string(text) + `"`
}

// consume sends the call of an approved request.
func (h *harness) consume(token string, r *approval.Request, key string) *answer {
	h.t.Helper()
	return h.do("POST", "/v1/requests/"+r.ID+"/consume", token, `{"binding":"`+r.Binding()+`","key":"`+key+`"}`)
}

func (h *harness) client(token string) *client.Client {
	h.t.Helper()
	c, err := client.New(h.url, token, client.Options{Pause: time.Millisecond, MaxPause: 50 * time.Millisecond})
	must(h.t, err)
	return c
}

// size returns the number of entries in the ledger of acme, after everything that was
// recorded before is sealed. To know that, it appends an entry and waits for it.
func (h *harness) size() int {
	h.t.Helper()
	h.marks++
	mark := "mark-" + strconv.Itoa(h.marks)
	must(h.t, h.svc.Record(h.t.Context(), "acme", "mark", mark, "test", nil))
	at := int64(-1)
	testwait.Until(h.t, "everything is sealed", func() bool {
		entries, err := h.store.History(h.t.Context(), "acme", mark, 0, 100)
		must(h.t, err)
		if len(entries) == 1 {
			at = entries[0].Index
		}
		return at >= 0
	})
	return int(at) - h.marks + 1
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
