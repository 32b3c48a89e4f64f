package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// readyz asks whether the service may be sent traffic.
func (h *testServer) readyz(t *testing.T, path, token string) (int, openapi.Health) {
	t.Helper()
	status, text := fetched(t, http.MethodGet, h.ready.API+path, token, "")
	var out openapi.Health
	must.Do(t, json.Unmarshal([]byte(text), &out))

	return status, out
}

// loadedEntries lists what the ledger tells about files in force,
// newest last.
func (h *testServer) loadedEntries(t *testing.T, kind string) []string {
	t.Helper()
	s, err := openStore(t.Context(), h.where(), nil)
	must.Do(t, err)
	defer s.Close()
	entries, err := s.Entries(t.Context(), "default", 0, 1000)
	must.Do(t, err)
	var out []string
	for _, e := range entries {
		leaf, err := ledger.ParseLeaf(e.Leaf)
		must.Do(t, err)
		if leaf.Type == kind && leaf.Actor == "server" {
			out = append(out, string(e.Leaf))
		}
	}

	return out
}

func rewrite(t *testing.T, file, old, now string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%v: no %q in %s", err, old, file)
	}
	testfiles.Write(t, file, strings.Replace(string(text), old, now, 1))
}

// TestATypoReachesNobodyElse: broken files of one tenant leave
// the service ready and everything in force, that tenant's included.
func TestATypoReachesNobodyElse(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	writeFiles(t, other, deskFiles())
	h := &testServer{dir: t.TempDir(), token: map[string]string{}}
	must.Do(t, os.CopyFS(h.dir, os.DirFS(other)))
	h = startWith(t, h, func(c *config.Serve) {
		c.Tenants = append(c.Tenants, config.Tenant{
			Name:   "other",
			Agents: []string{other},
			People: filepath.Join(other, "people.yaml"),
		})
	})
	testwait.Until(t, "ready", func() bool {
		status, _ := h.readyz(t, "/readyz", "")
		return status == 200
	})
	rewrite(t, filepath.Join(other, "desk.agf.yaml"), "approval: true", "approval: yes")
	rewrite(t, filepath.Join(other, "people.yaml"), "people: [", "people: {")
	testwait.Until(t, "degraded", func() bool {
		status, health := h.readyz(t, "/readyz", "")
		if status != 200 || !health.Ok {
			t.Fatalf("%d %+v", status, health)
		}
		failing := map[string]bool{}
		for _, c := range health.Checks {
			failing[c.Name] = c.Degraded && !c.Ok
		}
		return health.Degraded && failing["agents"] && failing["people"] && !failing["policies"]
	})
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{}}`)
	if got := h.votes(t, "alice", r, nil); got != approval.VoteApproved {
		t.Error(got)
	}

	if _, verbose := h.readyz(t, "/readyz?verbose", h.token["alice"]); len(verbose.Loaded) != 2 ||
		len(verbose.Loaded[0].Problems) > 0 {
		t.Errorf("of this tenant: %+v", verbose.Loaded)
	}
}

// TestPeopleAndAgentsAlike: in one tenant too, a typo leaves
// the last good agent and people in force; with deny it denies.
func TestPeopleAndAgentsAlike(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{config.KeepLastGood, config.DenyBroken} {
		h := withFiles(t, deskFiles())
		h = startWith(t, h, func(c *config.Serve) { c.OnBrokenFiles = mode })
		r := h.ask(t, `{"kind":"tool","tool":"trade","args":{}}`)
		rewrite(t, filepath.Join(h.dir, "people.yaml"), "people: [", "people: {")
		testwait.Until(t, "degraded", func() bool {
			status, health := h.readyz(t, "/readyz", "")
			return status == 200 && health.Degraded
		})
		got := h.votes(t, "alice", r, nil)
		if kept := got == approval.VoteApproved; kept != (mode == config.KeepLastGood) {
			t.Errorf("%s: a vote by the last good people: %s", mode, got)
		}
		rewrite(t, filepath.Join(h.dir, "desk.agf.yaml"), "approval: true", "approval: yes")
		testwait.Until(
			t,
			"the agent is noticed",
			func() bool { return len(h.loadedEntries(t, "agents_loaded")) == 2 },
		)
		_, err := h.client(t, "runtime").Decide(t.Context(), "desk", []byte(`{"kind":"tool","tool":"quote"}`))
		if kept := err == nil; kept != (mode == config.KeepLastGood) {
			t.Errorf("%s: a decision by the last good agent: %v", mode, err)
		}
	}
}

// TestTheLedgerSaysWhichFilesAreInForce: at the start, and with
// every change, the digest and what is broken.
func TestTheLedgerSaysWhichFilesAreInForce(t *testing.T) {
	t.Parallel()
	h := start(
		t,
		"schema_version: \"1.0.0\"\npolicy_ref: acme.p\napplies: implicit\nrules: [{id: r, match: {targets: "+
			"[trade]}, deny: \"No.\"}]\n",
	)
	testwait.Until(t, "the start is sealed", func() bool {
		n := 0
		for _, part := range []string{"agents", "policies", "people"} {
			n += len(h.loadedEntries(t, part+"_loaded"))
		}
		return n == 3
	})
	_, before := h.readyz(t, "/readyz?verbose", "")
	for i, kind := range []string{"agents", "policies", "people"} {
		l := before.Loaded[i]
		if entry := h.loadedEntries(t, kind+"_loaded")[0]; l.Part != kind || !strings.Contains(entry, l.Digest) ||
			!strings.HasPrefix(l.Digest, "sha256:") {
			t.Errorf("%s: /readyz says %+v, the ledger %s", kind, l, entry)
		}
	}

	path := filepath.Join(h.dir, "desk.policy.yaml") // of equal size and time stamp
	info, err := os.Stat(path)
	must.Do(t, err)
	rewrite(t, path, "deny: \"No.\"", "deny: \"NO.\"")
	must.Do(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	testwait.Until(
		t,
		"the change is recorded",
		func() bool { return len(h.loadedEntries(t, "policies_loaded")) == 2 },
	)
	_, after := h.readyz(t, "/readyz?verbose", "")
	if entries := h.loadedEntries(t, "policies_loaded"); after.Loaded[1].Digest == before.Loaded[1].Digest ||
		!strings.Contains(entries[1], after.Loaded[1].Digest) {
		t.Errorf("%+v, %s", after.Loaded, entries)
	}
	rewrite(t, path, "rules: [", "rules: {")
	testwait.Until(
		t,
		"the mistake is recorded",
		func() bool { return len(h.loadedEntries(t, "policies_loaded")) == 3 },
	)
	if last := h.loadedEntries(t, "policies_loaded")[2]; !strings.Contains(last, after.Loaded[1].Digest) ||
		!strings.Contains(last, `"kept":true`) {
		t.Errorf("the last good policies are in force: %s", last)
	}
	if n := len(h.loadedEntries(t, "agents_loaded")); n != 1 {
		t.Errorf("the agents were told %d times", n)
	}
}

// TestListenersAndNames: the figures have a listener of their own,
// and the service answers for its own names.
func TestListenersAndNames(t *testing.T) {
	h := withFiles(t, deskFiles())
	h = startWith(t, h, func(c *config.Serve) {
		c.MetricsListen = "127.0.0.1:0"
		c.PublicURL = "http://assent.example:7717"
		c.Hosts = []string{"assent.internal"}
	})
	get := func(url, host string) (int, string) {
		t.Helper()
		return fetched(t, http.MethodGet, url, "", "", func(r *http.Request) { r.Host = host })
	}
	if status, text := get(h.ready.Metrics, ""); status != 200 || !strings.Contains(text, "assent_build_info") ||
		!strings.Contains(text, `version="`+term.Version) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get(h.ready.API+"/metrics", ""); status != 404 {
		t.Errorf("beside the API: %d", status)
	}
	for host, ok := range map[string]bool{
		"":                   true,
		"assent.example":     true,
		"assent.internal:80": true,
		"localhost":          true,
		"evil.example":       false,
	} {
		for _, url := range []string{h.ready.API + "/v1/requests", h.ready.API + "/", h.ready.Metrics} {
			if status, _ := get(url, host); (status != http.StatusMisdirectedRequest) != ok {
				t.Errorf("%s as %q: %d", url, host, status)
			}
		}
	}

	if c, err := client.New(h.ready.API, h.token["alice"], client.Options{}); err != nil {
		t.Error(err)
	} else if _, err := c.Tokens(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAProviderThatIsDownIsADegradedPart: the service stays
// ready, and says where its people come back to.
func TestAProviderThatIsDownIsADegradedPart(t *testing.T) {
	t.Parallel()
	h := &testServer{dir: t.TempDir(), token: map[string]string{}}
	closed := testPeople + "groups: {admins: {}}\n"
	writeFiles(t, h.dir, map[string]string{"desk.agf.yaml": testAgent, "people.yaml": closed})
	h = startWith(t, h, func(c *config.Serve) {
		c.PublicURL, c.Tenants[0].OIDC = "https://assent.example", &config.OIDC{Issuer: "https://127.0.0.1:1",
			ClientID: "x"}
	})
	testwait.Until(t, "degraded", func() bool {
		status, health := h.readyz(t, "/readyz", "")
		last := health.Checks[len(health.Checks)-1]
		return status == 200 && health.Degraded && last.Name == "sign_in" && !last.Ok
	})
	want := operate.Address{
		Tenant: "default",
		For:    operate.RedirectURI,
		URL:    "https://assent.example/auth/callback/default",
	}
	if len(h.ready.Register) != 2 || h.ready.Register[0] != want {
		t.Errorf("to register: %+v", h.ready.Register)
	}
}

// TestLogsFromALevelOn: what is below the level is not written.
func TestLogsFromALevelOn(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "info": 3, "": 3, "warn": 2, "error": 1} {
		for _, text := range []bool{true, false} {
			var out bytes.Buffer
			log := logger(text, level, &out)
			log.Debug("d")
			log.Info("i")
			log.Warn("w")
			log.Error("e")
			if got := strings.Count(out.String(), "\n"); got != want {
				t.Errorf("%q: %d lines, want %d", level, got, want)
			}
		}
	}
}

// TestWarnsOfPlainHTTP: the server warns if other machines can reach it, and only logs at level
// INFO if a proxy provides TLS.
func TestWarnsOfPlainHTTP(t *testing.T) {
	for _, tt := range []struct{ listen, public, want string }{
		{"127.0.0.1:0", "http://127.0.0.1:1", ""}, {"[::1]:0", "https://assent.example", ""},
		{"0.0.0.0:0", "http://assent.example", "level=WARN"}, {"0.0.0.0:0", "https://assent.example", "level=INFO"},
	} {
		listener, err := net.Listen("tcp", tt.listen)
		must.Do(t, err)
		base, err := url.Parse(tt.public)
		must.Do(t, err)
		var out bytes.Buffer
		h := &app{log: logger(true, "", &out), listener: listener, base: base}
		h.warnOfPlainHTTP()
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		if got := out.String(); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s as %s: %q, want %q", tt.listen, tt.public, got, tt.want)
		}
	}
}

// TestGoesOnServingWhileItIsNotReady: after the signal /readyz is 503,
// and requests are still answered until the delay is over.
func TestGoesOnServingWhileItIsNotReady(t *testing.T) {
	t.Parallel()
	h := withFiles(t, deskFiles())
	delay := 7 * time.Second
	cfg := config.Serve{
		Listen:     "127.0.0.1:0",
		Store:      filepath.Join(h.dir, "s.db"),
		KeyFile:    filepath.Join(h.dir, "k"),
		Drain:      time.Hour,
		DrainDelay: &delay,
		Tenants: []config.Tenant{{
			Name: "default", Agents: []string{h.dir}, People: filepath.Join(h.dir, "people.yaml"),
		}},
	}
	h.tokens(t, cfg.Location())
	ctx, signal := context.WithCancel(t.Context())
	defer signal()
	ready, ended := make(chan operate.Ready, 1), make(chan error, 1)
	paused, over := make(chan time.Duration, 1), make(chan struct{})
	go func() {
		ended <- serveWith(ctx, cfg, io.Discard, func(r operate.Ready) { ready <- r },
			func(_ context.Context, a *app) error {
				a.pause = func(_ context.Context, d time.Duration) error {
					paused <- d
					<-over
					return nil
				}
				return nil
			})
	}()
	h.ready = receive(t, "ready", ready)
	testwait.Until(t, "ready", func() bool {
		status, _ := h.readyz(t, "/readyz", "")
		return status == http.StatusOK
	})

	signal()
	if got := receive(t, "the pause", paused); got != delay {
		t.Errorf("it pauses for %v, want %v", got, delay)
	}
	if status, _ := h.readyz(t, "/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz after the signal: %d", status)
	}
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{}}`)
	if got := h.votes(t, "alice", r, nil); got != approval.VoteApproved {
		t.Errorf("an answer after the signal: %s", got)
	}
	close(over)
	if err := receive(t, "the end", ended); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(h.ready.API + "/healthz"); err == nil {
		t.Error("it still answers after its end")
	}
}

// TestDrainDelayByDefault: none where only this machine can send traffic.
func TestDrainDelayByDefault(t *testing.T) {
	none := time.Duration(0)
	for _, tt := range []struct {
		listen string
		given  *time.Duration
		want   time.Duration
	}{
		{"127.0.0.1:0", nil, 0}, {"[::1]:0", nil, 0}, {"0.0.0.0:0", nil, config.DefaultDrainDelay},
		{"0.0.0.0:0", &none, 0},
	} {
		listener, err := net.Listen("tcp", tt.listen)
		must.Do(t, err)
		a := &app{cfg: config.Serve{DrainDelay: tt.given}, listener: listener}
		if got := a.drainDelay(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.listen, got, tt.want)
		}
		must.Do(t, listener.Close())
	}
}
