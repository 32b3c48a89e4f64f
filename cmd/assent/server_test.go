package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

const testAgent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: quote}, {alias: trade, approval: true}]}
`

const testPeople = `schema_version: "1.0.0"
people: [{id: alice, groups: [admins]}]
`

// testServer is a running service of a test, with a client for each role.
type testServer struct {
	dir   string
	ready operate.Ready
	token map[string]string // by role
	stop  func() error
}

// deskFiles returns the files of a service for testAgent.
func deskFiles() map[string]string {
	return map[string]string{"desk.agf.yaml": testAgent, "people.yaml": testPeople}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
}

// withFiles returns a server that has these files, and is not started.
func withFiles(t *testing.T, files map[string]string) *testServer {
	t.Helper()
	h := &testServer{dir: t.TempDir(), token: map[string]string{}}
	writeFiles(t, h.dir, files)

	return h
}

// start runs the service in this process until the test ends.
func start(t *testing.T, policies string) *testServer {
	t.Helper()
	files := deskFiles()
	if policies != "" {
		files["desk.policy.yaml"] = policies
	}
	h := withFiles(t, files)

	return startWith(t, h, func(c *config.Serve) {
		if policies != "" {
			c.Tenants[0].Policies = []string{h.dir}
		}
	})
}

// startWith runs the service on the files of a test server, after a
// change of its configuration.
func startWith(t *testing.T, h *testServer, change func(*config.Serve)) *testServer {
	t.Helper()
	cfg := config.Serve{
		Listen:  "127.0.0.1:0",
		Store:   filepath.Join(h.dir, "s.db"),
		KeyFile: filepath.Join(h.dir, "k"),
		Drain:   5 * time.Second,
		Tenants: []config.Tenant{{
			Name:   "default",
			Agents: []string{h.dir},
			People: filepath.Join(h.dir, "people.yaml"),
		}},
	}
	change(&cfg)
	h.tokens(t, cfg.Location())
	log := h.serves(t, cfg)
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	return h
}

// serves runs the service until it is stopped.
func (h *testServer) serves(t *testing.T, cfg config.Serve) (log *testwait.Buffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan operate.Ready, 1), make(chan error, 1)
	log = &testwait.Buffer{}
	go func() {
		ended <- serve(ctx, cfg, log, func(r operate.Ready) { ready <- r })
	}()
	h.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	select {
	case h.ready = <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("%v\n%s", err, log.String())
	}

	return log
}

// fetched makes a request, with a token unless it is "", and returns
// what is answered. set may change the request.
func fetched(t *testing.T, method, url, token, body string, set ...func(*http.Request)) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must.Do(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, change := range set {
		change(req)
	}
	resp, err := ownClient().Do(req)
	must.Do(t, err)
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	must.Do(t, err)

	return resp.StatusCode, string(read)
}

// where returns the store of the server, with its key.
func (h *testServer) where() config.Store {
	return config.Store{Where: filepath.Join(h.dir, "s.db"), KeyFile: filepath.Join(h.dir, "k")}
}

// live returns the id of the active token of a name, or an empty string if there is none.
func (h *testServer) live(t *testing.T, s store.Store, name string) string {
	t.Helper()
	all, err := s.Tokens(t.Context(), "default")
	must.Do(t, err)
	for _, other := range all {
		if other.Name == name && other.Revoked == nil {
			return other.ID
		}
	}

	return ""
}

func (h *testServer) tokens(t *testing.T, c config.Store) {
	t.Helper()
	s, err := openStore(t.Context(), c, nil)
	must.Do(t, err)
	defer s.Close()
	for _, body := range []openapi.TokenBody{
		{Name: "runtime", Scopes: []openapi.Scope{openapi.ScopeRequest, openapi.ScopeDecide}},
		{
			Name:   "alice",
			Scopes: []openapi.Scope{openapi.ScopeRead, openapi.ScopeVote, openapi.ScopeAdmin},
			Person: "alice",
		},
	} {
		if h.token[body.Name] != "" { // from before a restart
			continue
		}
		body.Replaces = h.live(t, s, body.Name)
		h.makes(t, s, body)
	}
}

// makes makes tokens, under their names.
func (h *testServer) makes(t *testing.T, s store.Store, bodies ...openapi.TokenBody) {
	t.Helper()
	for _, body := range bodies {
		body.ExpiresIn = "1h"
		made, err := createToken(t.Context(), s, "default", body)
		must.Do(t, err)
		h.token[body.Name] = made.Secret
	}
}

// ran runs a command without a terminal.
func ran(typed string, args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	code = program{
		Backend: backend(),
		Streams: term.Streams{In: strings.NewReader(typed), Out: &o, Err: &e, InTerminal: typed != ""},
	}.Run(args)

	return o.String(), e.String(), code
}

// client speaks as a role.
func (h *testServer) client(t *testing.T, role string) *client.Client {
	t.Helper()
	c, err := client.New(h.ready.API, h.token[role], client.Options{})
	must.Do(t, err)
	return c
}

// ask opens a request for a call.
func (h *testServer) ask(t *testing.T, call string) *approval.Request {
	t.Helper()
	opened, err := h.client(t, "runtime").Open(t.Context(), "desk", []byte(call), client.OpenOptions{})
	must.Do(t, err)
	if opened.Request == nil {
		t.Fatalf("the call asks nobody: %+v", opened)
	}
	return opened.Request
}

// request returns the current state of a request.
func (h *testServer) request(t *testing.T, id string) *approval.Request {
	t.Helper()
	r, err := h.client(t, "alice").Request(t.Context(), id)
	must.Do(t, err)

	return r
}

// terminal is a person at a terminal: what they type, and what they see.
type terminal struct {
	in   io.Reader
	out  testwait.Buffer
	env  map[string]string
	raws int
}

// run runs a command as a role, on a terminal.
func (h *testServer) run(t *testing.T, screen *terminal, role string, args ...string) int {
	t.Helper()
	env := map[string]string{"ASSENT_SERVER": h.ready.API, "ASSENT_TOKEN": h.token[role]}
	for k, v := range screen.env {
		env[k] = v
	}
	if screen.in == nil {
		screen.in = strings.NewReader("")
	}
	return program{
		Backend: backend(),
		Streams: term.Streams{
			In:          screen.in,
			Out:         &screen.out,
			Err:         &screen.out,
			OutTerminal: true,
			ErrTerminal: true,
			InTerminal:  true,
			Env:         func(name string) string { return env[name] },
			Size:        func() (int, int) { return 120, 30 },
			Raw: func() (func(), error) {
				screen.raws++
				return func() {}, nil
			},
		},
	}.Run(args)
}

// prints runs a command on a terminal, wants its exit code, and returns
// what it printed.
func (h *testServer) prints(t *testing.T, role string, code int, args ...string) string {
	t.Helper()

	return h.types(t, "", role, code, args...)
}

// types runs a command at a terminal with typed input.
func (h *testServer) types(t *testing.T, typed, role string, code int, args ...string) string {
	t.Helper()
	screen := &terminal{in: strings.NewReader(typed)}
	if got := h.run(t, screen, role, args...); got != code {
		t.Errorf("%q, typed %q: exit %d, want %d\n%.2000s", args, typed, got, code, screen.out.String())
	}

	return screen.out.String()
}

func holds(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing:\n%.2000s", w, text)
		}
	}
}

// breaks runs a command as alice on a terminal that prints nothing.
func (h *testServer) breaks(t *testing.T, typed string, args ...string) {
	t.Helper()
	env := map[string]string{"ASSENT_SERVER": h.ready.API, "ASSENT_TOKEN": h.token["alice"]}
	code := program{
		Backend: backend(),
		Streams: term.Streams{
			In:          strings.NewReader(typed),
			Out:         brokenWriter{},
			Err:         io.Discard,
			OutTerminal: true,
			InTerminal:  true,
			Env:         func(n string) string { return env[n] },
		},
	}.Run(args)
	if code != term.ExitFailure {
		t.Errorf("%q on a broken terminal: exit %d", args, code)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// saw waits until the terminal shows a text.
func (screen *terminal) saw(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the terminal shows\n%s", screen.out.String())
		}
	}()
	testwait.Until(t, fmt.Sprintf("the terminal shows %q", text), func() bool {
		return strings.Contains(screen.out.String(), text)
	})
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	return testwait.Value(t, what, func() (got T, ok bool) {
		select {
		case got = <-from:
			return got, true
		default:
			return got, false
		}
	})
}

// ownClient returns a client that shares no connections with other tests. Stopping a test server
// closes the connections of http.DefaultClient, which would break requests of tests that run in
// parallel.
func ownClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
