package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// reloading is a service whose decision configuration a test rewrites.
type reloading struct {
	*testServer
	t    *testing.T
	log  *testwait.Buffer
	file string
}

func newReloading(t *testing.T, text string, more map[string]string) *reloading {
	t.Helper()
	h := &reloading{testServer: withFiles(t, deskFiles()), t: t}
	writeFiles(t, h.dir, more)
	h.file = testfiles.Write(t, filepath.Join(h.dir, "decisions.yaml"), text)
	cfg, said, err := configured(t, h.dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	h.tokens(t, cfg.Location())
	h.log = h.serves(t, cfg)
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("%v\n%s", err, h.log.String())
		}
	})

	return h
}

// write replaces the file atomically, as the documentation tells operators to do. A half-written
// file would be reported and recorded.
func (h *reloading) write(text string) {
	h.t.Helper()
	must.Do(h.t, os.Rename(testfiles.Write(h.t, h.file+".new", text), h.file))
}

// agents returns the current answer of GET /v1/agents.
func (h *reloading) agents() (out openapi.Agents) {
	h.t.Helper()
	_, text := fetched(h.t, http.MethodGet, h.ready.API+"/v1/agents", h.token["runtime"], "")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		h.t.Fatalf("%v: %s", err, text)
	}

	return out
}

// decides returns the outcome of a call, and the digest in the decision.
func (h *reloading) decides(call string) (outcome, digest, text string) {
	h.t.Helper()
	_, text = posted(h.t, h.ready.API+"/v1/agents/desk/decide", h.token["runtime"], call)
	var d struct{ Outcome, Configuration string }
	_ = json.Unmarshal([]byte(text), &d) // what is no decision has no outcome

	return d.Outcome, d.Configuration, text
}

// inForce waits until a text of the file is in force.
func (h *reloading) inForce(text string) (digest string) {
	h.t.Helper()
	c, findings := resolve.ParseConfig(h.file, []byte(text))
	if c == nil {
		h.t.Fatal(findings)
	}
	testwait.Until(h.t, "the configuration is in force", func() bool { return h.agents().Configuration == c.Digest() })

	return c.Digest()
}

// trouble waits until readiness reports that the configuration can't be used, and returns the
// details that a token of the tenant gets.
func (h *reloading) trouble() (told string) {
	h.t.Helper()
	testwait.Until(h.t, "readiness tells", func() bool {
		status, health := h.readyz(h.t, "/readyz?verbose", h.token["alice"])
		part := func(c openapi.Check) bool { return c.Name == "configuration" && c.Degraded && !c.Ok }
		i := slices.IndexFunc(health.Loaded, func(l openapi.Loaded) bool { return l.Part == "configuration" })
		if status != http.StatusOK || !slices.ContainsFunc(health.Checks, part) || i < 0 {
			return false
		}
		told = strings.Join(health.Loaded[i].Problems, "\n")

		return told != ""
	})

	return told
}

const nobodysCall = `{"kind":"tool","tool":"nobody"}`

// TestTheConfigurationIsReloadedByARunningService: a change takes effect without a restart. Its
// digest is in decisions, the ledger and the log, which also list what it loosens. A broken file
// changes nothing, and readiness and the log report where it is broken.
func TestTheConfigurationIsReloadedByARunningService(t *testing.T) {
	t.Parallel()
	h := newReloading(t, "permit_age: 10m\n", nil)
	if outcome, _, text := h.decides(nobodysCall); outcome != "deny" {
		t.Fatal(text)
	}
	const loose = "permit_age: 20m\nundeclared: ask\napprove_on_timeout: true\n"
	h.write(loose)
	digest := h.inForce(loose)
	if outcome, named, text := h.decides(nobodysCall); outcome != "ask" || named != digest {
		t.Error(text)
	}
	if in := h.agents(); in.Undeclared != "ask" || in.PermitAge != "20m" || !in.ApproveOnTimeout {
		t.Errorf("%+v", in)
	}
	if _, text := posted(t, h.ready.API+"/v1/agents/desk/requests", h.token["runtime"],
		`{"call":{"kind":"tool","tool":"trade"}}`); !strings.Contains(text, `"permit_age":"20m"`) {
		t.Error(text)
	}
	const loosened = `"loosened":["approve_on_timeout","permit_age","undeclared"]`
	h.entries(2, digest, loosened)
	for _, want := range []string{"lets more through than before", "APPROVAL BY TIMEOUT is on"} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, h.log.String())
		}
	}

	h.write("permit_age: 30m\nundeclared: allow\n")
	at := h.file + ":2:13: "
	if told := h.trouble(); !strings.Contains(told, at) || !strings.Contains(told, "last good copy decides") {
		t.Errorf("readiness tells %q", told)
	}
	if !strings.Contains(h.log.String(), at) {
		t.Errorf("the log does not say where:\n%s", h.log.String())
	}
	if outcome, named, text := h.decides(nobodysCall); outcome != "ask" || named != digest {
		t.Error(text)
	}
	if last := h.entries(3, digest, `"kept":true`); strings.Contains(last, "loosened") {
		t.Errorf("a broken file loosens nothing: %s", last)
	}

	const tight = "permit_age: 5m\n"
	h.write(tight)
	digest = h.inForce(tight)
	if outcome, named, text := h.decides(nobodysCall); outcome != "deny" || named != digest {
		t.Error(text)
	}
	if last := h.entries(4, digest, `"undeclared":"deny"`); strings.Contains(last, "loosened") ||
		strings.Contains(last, "broken") {
		t.Errorf("the ledger says %s", last)
	}
}

// entries waits for a number of entries about the configuration, and checks that the last one
// contains some words.
func (h *reloading) entries(n int, words ...string) (last string) {
	h.t.Helper()
	var all []string
	testwait.Until(h.t, "the ledger is told", func() bool {
		all = h.loadedEntries(h.t, "configuration_loaded")
		return len(all) == n
	})
	last = all[n-1]
	for _, w := range words {
		if !strings.Contains(last, w) {
			h.t.Errorf("entry %d lacks %s: %s", n, w, last)
		}
	}

	return last
}

// TestTheRegistryOfAReloadedConfiguration: a new registry is used once it has answered, and is
// polled from then on. If it can't be reached, the previous one stays in force.
func TestTheRegistryOfAReloadedConfiguration(t *testing.T) {
	t.Parallel()
	h := newReloading(t, "policies: [rules]\n", map[string]string{
		"rules/all.policy.yaml": choosingPolicy,
		"fetched/a.policy.yaml": strings.Replace(choosingPolicy, "acme.all", "acme.fetched", 1),
	})
	const call = `{"kind":"tool","tool":"quote"}`
	if outcome, _, text := h.decides(call); outcome != "ask" || !strings.Contains(text, "acme.all") {
		t.Fatal(text)
	}
	h.write("registry: {url: \"http://" + freeAddress(t) + "/p.json\"}\nundeclared: ask\n")
	if told := h.trouble(); !strings.Contains(told, "no copy was fetched yet") {
		t.Errorf("readiness tells %q", told)
	}
	if _, _, text := h.decides(call); !strings.Contains(text, "acme.all") {
		t.Errorf("the one before does not decide: %s", text)
	}
	if outcome, _, text := h.decides(nobodysCall); outcome != "deny" {
		t.Errorf("choices of the new file beside policies of the old: %s", text)
	}

	registry := httptest.NewServer(bundleOf(t, filepath.Join(h.dir, "fetched")))
	defer registry.Close()
	text := "registry: {url: \"" + registry.URL + "\", every: 1s, keep: 6s}\n"
	h.write(text)
	h.inForce(text)
	if _, _, text := h.decides(call); !strings.Contains(text, "acme.fetched") || strings.Contains(text, "acme.all") {
		t.Error(text)
	}
	if in := h.agents().Registry; in == nil || in.State != openapi.RegistryStateFresh || in.Keep != "6s" ||
		in.Confirmed == "" || in.Origin != registry.URL {
		t.Errorf("%+v", in)
	}
	registry.Close()
	testwait.Until(t, "it is asked, and too old in the end", func() bool {
		status, _ := posted(t, h.ready.API+"/v1/agents/desk/decide", h.token["runtime"], call)
		in := h.agents().Registry
		return status != http.StatusOK && in != nil && in.State == openapi.RegistryStateUnavailable && in.Problem != ""
	})
	h.write("policies: [rules]\n")
	h.inForce("policies: [rules]\n")
	if _, _, text := h.decides(call); !strings.Contains(text, "acme.all") || h.agents().Registry != nil {
		t.Error(text)
	}
}
