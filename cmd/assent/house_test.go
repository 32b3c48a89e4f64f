package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/cli"
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

// testHouse is a running service of a test, with a client for each role.
type testHouse struct {
	dir   string
	ready cli.Ready
	token map[string]string // by role
	stop  func() error
}

// start runs the service in this process until the test ends.
func start(t *testing.T, policies string) *testHouse {
	t.Helper()
	h := &testHouse{dir: t.TempDir(), token: map[string]string{}}
	for name, text := range map[string]string{"desk.agf.yaml": testAgent, "people.yaml": testPeople, "desk.policy.yaml": policies} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startWith(t, h, func(c *cli.ServeConfig) {
		if policies != "" {
			c.Tenants[0].Policies = []string{h.dir}
		}
	})
}

// startWith runs the service on the files of a house, after a change of its configuration.
func startWith(t *testing.T, h *testHouse, change func(*cli.ServeConfig)) *testHouse {
	t.Helper()
	cfg := cli.ServeConfig{
		Listen: "127.0.0.1:0", Store: filepath.Join(h.dir, "s.db"), KeyFile: filepath.Join(h.dir, "k"), Drain: 5 * time.Second,
		Tenants: []cli.TenantConfig{{Name: "default", Agents: []string{h.dir}, People: filepath.Join(h.dir, "people.yaml")}},
	}
	change(&cfg)
	h.tokens(t, cfg.StoreConfig())
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan cli.Ready, 1), make(chan error, 1)
	var log bytes.Buffer
	go func() { ended <- serve(ctx, cfg, &log, func(r cli.Ready) { ready <- r }) }()
	h.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	select {
	case h.ready = <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("%v\n%s", err, log.String())
	case <-time.After(30 * time.Second):
		t.Fatal("the service does not answer")
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	return h
}

// where is the store of the house, with its key.
func (h *testHouse) where() cli.StoreConfig {
	return cli.StoreConfig{Where: filepath.Join(h.dir, "s.db"), KeyFile: filepath.Join(h.dir, "k")}
}

// live is the id of the live token of a name, "" when there is none.
func (h *testHouse) live(t *testing.T, s store.Store, name string) string {
	t.Helper()
	all, err := s.Tokens(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range all {
		if other.Name == name && other.Revoked == nil {
			return other.ID
		}
	}

	return ""
}

func (h *testHouse) tokens(t *testing.T, c cli.StoreConfig) {
	t.Helper()
	s, err := openStore(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, body := range []openapi.TokenBody{
		{Name: "runtime", Scopes: []openapi.Scope{openapi.ScopeRequest, openapi.ScopeDecide}},
		{Name: "alice", Scopes: []openapi.Scope{openapi.ScopeRead, openapi.ScopeVote, openapi.ScopeAdmin}, Person: "alice"},
	} {
		if h.token[body.Name] != "" { // from before a restart
			continue
		}
		body.ExpiresIn = "1h"
		body.Replaces = h.live(t, s, body.Name)
		made, err := createToken(t.Context(), s, "default", body)
		if err != nil {
			t.Fatal(err)
		}
		h.token[body.Name] = made.Secret
	}
}

// client speaks as a role.
func (h *testHouse) client(t *testing.T, role string) *client.Client {
	t.Helper()
	c, err := client.New(h.ready.API, h.token[role], client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask opens a request for a call.
func (h *testHouse) ask(t *testing.T, call string) *approval.Request {
	t.Helper()
	opened, err := h.client(t, "runtime").Open(t.Context(), "desk", []byte(call), client.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if opened.Request == nil {
		t.Fatalf("the call asks nobody: %+v", opened)
	}
	return opened.Request
}

// terminal is a person at a terminal: what they type, and what they see.
type terminal struct {
	in   io.Reader
	out  testwait.Buffer
	env  map[string]string
	raws int
}

// run runs a command as a role, on a terminal.
func (h *testHouse) run(t *testing.T, term *terminal, role string, args ...string) int {
	t.Helper()
	env := map[string]string{"ASSENT_SERVER": h.ready.API, "ASSENT_TOKEN": h.token[role]}
	for k, v := range term.env {
		env[k] = v
	}
	if term.in == nil {
		term.in = strings.NewReader("")
	}
	return cli.Assent{Backend: backend(), Streams: cli.Streams{
		In: term.in, Out: &term.out, Err: &term.out, OutTerminal: true, ErrTerminal: true, InTerminal: true,
		Env: func(name string) string { return env[name] }, Size: func() (int, int) { return 120, 30 },
		Raw: func() (func(), error) {
			term.raws++
			return func() {}, nil
		},
	}}.Run(args)
}

// saw waits until the terminal shows a text.
func (term *terminal) saw(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the terminal shows\n%s", term.out.String())
		}
	}()
	testwait.Until(t, fmt.Sprintf("the terminal shows %q", text), func() bool {
		return strings.Contains(term.out.String(), text)
	})
}
