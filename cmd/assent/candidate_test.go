package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// asksAlways is a policy that asks about every call.
const asksAlways = "schema_version: \"1.0.0\"\npolicy_ref: test.always\napplies: implicit\nrules:\n" +
	"  - {id: r, match: {targets: [\"*\"]}, approval: true}\n"

// askedAt starts a server with an example's agents, posts each of its
// calls, and returns the answers.
func askedAt(t *testing.T, example, candidate string) (*testServer, []string) {
	t.Helper()
	files := filepath.Join(testfiles.Root(t), "examples", example)
	h := startWith(t, withFiles(t, deskFiles()), func(c *config.Serve) {
		c.Tenants[0].Agents = []string{files}
		c.Tenants[0].Policies = []string{filepath.Join(files, "policies")}
		c.Tenants[0].Candidate = candidate
	})
	text, err := os.ReadFile(filepath.Join(files, "calls.jsonl"))
	must.Do(t, err)
	var out []string
	for line := range strings.Lines(string(text)) {
		url := h.ready.API + "/v1/agents/" + example + "/decide"
		status, answer := fetched(t, "POST", url, h.token["runtime"], line, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
		})
		if status != 200 {
			t.Fatalf("%s: %d %s", line, status, answer)
		}
		out = append(out, answer)
	}

	return h, out
}

// compared waits until a number of calls were compared.
func (h *testServer) compared(t *testing.T, calls int) openapi.Candidate {
	t.Helper()
	return testwait.Value(t, "the calls are compared", func() (openapi.Candidate, bool) {
		c, err := h.client(t, "alice").Candidate(t.Context())
		must.Do(t, err)
		return *c, len(c.Agents) > 0 && c.Agents[0].Report != nil && c.Agents[0].Report.Calls >= calls
	})
}

// TestACandidateChangesNoAnswer: every call of the examples is answered
// with the same bytes with and without a candidate, and is compared.
func TestACandidateChangesNoAnswer(t *testing.T) {
	for _, example := range []string{"trading-desk", "customer-support"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from := os.DirFS(filepath.Join(testfiles.Root(t), "examples", example, "policies"))
			must.Do(t, os.CopyFS(dir, from))
			testfiles.Write(t, filepath.Join(dir, "always.policy.yaml"), asksAlways)
			_, plain := askedAt(t, example, "")
			h, beside := askedAt(t, example, dir)
			for i := range plain {
				if plain[i] != beside[i] {
					t.Errorf("call %d: without\n%s\nwith\n%s", i+1, plain[i], beside[i])
				}
			}

			c := h.compared(t, len(plain))
			if m := c.Agents[0].Report.Matrix; m.Allow.Ask == 0 || m.Allow.Allow != 0 || c.Dropped != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// candidateServer starts a server whose candidate allows trades without asking.
func candidateServer(t *testing.T, text string) *testServer {
	t.Helper()
	h := withFiles(t, deskFiles())
	writeFiles(t, h.dir, map[string]string{
		"people.yaml":        strings.Replace(testPeople, "}]", "}, {id: bob}]", 1),
		"next/desk.agf.yaml": text,
	})
	return startWith(t, h, func(c *config.Serve) {
		c.Tenants[0].Agents = []string{filepath.Join(h.dir, "desk.agf.yaml")}
		c.Tenants[0].Candidate = filepath.Join(h.dir, "next")
	})
}

// tells runs assent candidate.
func (h *testServer) tells(t *testing.T, args ...string) (out, errOut string, exit int) {
	t.Helper()
	file := testfiles.Write(t, filepath.Join(t.TempDir(), "token"), h.token["alice"])
	return ran("", append([]string{"candidate", "--server", h.ready.API, "--token-file", file}, args...)...)
}

// TestAssentCandidate: the command shows which calls would run without asking, and which ones
// people denied, and its exit code reflects that.
func TestAssentCandidate(t *testing.T) {
	h := candidateServer(t, strings.Replace(testAgent, ", approval: true", "", 1))
	if out, _, exit := h.tells(t); exit != 0 || !strings.Contains(out, "No call was compared yet.") {
		t.Errorf("before: %d\n%s", exit, out)
	}
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"amount":7}}`)
	if _, err := h.client(t, "alice").Vote(t.Context(), r.ID, r.Version, openapi.VoteBody{
		Verdict:    approval.Deny,
		Reason:     "Not today.",
		Binding:    r.Binding(),
		ShownFully: true,
	}); err != nil {
		t.Fatal(err)
	}

	testwait.Until(t, "the denial is counted", func() bool {
		return h.compared(t, 1).Agents[0].Report.Denials == 1
	})

	out, _, exit := h.tells(t)
	for _, words := range []string{"Agent desk, since ", `"amount":7`, "1 call that a person denied", "tool trade"} {
		if exit != 1 || !strings.Contains(out, words) {
			t.Errorf("no %q, exit %d\n%s", words, exit, out)
		}
	}
	if out, _, exit := h.tells(t, "--format", "markdown"); exit != 1 || !strings.Contains(out, "## Agent desk") {
		t.Errorf("%d\n%s", exit, out)
	}
	out, _, exit = h.tells(t, "--format", "json")
	var doc openapi.Candidate
	if err := json.Unmarshal([]byte(out), &doc); err != nil || exit != 1 || len(doc.Agents[0].Found) != 2 {
		t.Errorf("%v, %d\n%s", err, exit, out)
	}
	if _, errOut, exit := h.tells(t, "--format", "xml"); exit != 2 || !strings.Contains(errOut, `"xml"`) {
		t.Errorf("%d\n%s", exit, errOut)
	}
	_, figures := fetched(t, "GET", h.ready.API+"/metrics", "", "")
	if want := `assent_candidate_calls_total{candidate="allow",live="ask"} 1`; !strings.Contains(figures, want) {
		t.Errorf("no %s", want)
	}
	status, text := fetched(t, "GET", h.ready.API+"/v1/candidate", h.token["runtime"], "")
	if status != 403 {
		t.Errorf("a runtime's token: %d %s", status, text)
	}
}

// quotes has a call decided that needs no approval.
func (h *testServer) quotes(t *testing.T) {
	t.Helper()
	call := []byte(`{"kind":"tool","tool":"quote"}`)
	if _, err := h.client(t, "runtime").Decide(t.Context(), "desk", call); err != nil {
		t.Error(err)
	}
}

// TestABrokenCandidateLeavesTheServerReady: readiness reports where the candidate is broken, as
// degraded but ready, and calls are compared once it is fixed.
func TestABrokenCandidateLeavesTheServerReady(t *testing.T) {
	t.Parallel()
	h := candidateServer(t, "schema_version: \"1.0.0\"\nmetadata: [\n")
	testwait.Until(t, "the server is ready", func() bool {
		status, _ := h.readyz(t, "/readyz?verbose", h.token["alice"])
		return status == 200
	})
	status, health := h.readyz(t, "/readyz?verbose", h.token["alice"])
	loaded := health.Loaded[len(health.Loaded)-1]
	if status != 200 || !health.Degraded || loaded.Part != "candidate" || len(loaded.Problems) == 0 ||
		!strings.Contains(loaded.Problems[0], "desk.agf.yaml:") {
		t.Errorf("%d %+v", status, health)
	}
	h.quotes(t)
	if out, _, exit := h.tells(t); exit != 2 || !strings.Contains(out, "desk.agf.yaml:") {
		t.Errorf("%d\n%s", exit, out)
	}
	mended := time.Now()
	testfiles.Write(t, filepath.Join(h.dir, "next", "desk.agf.yaml"), testAgent)
	testwait.Until(t, "it is mended", func() bool {
		status, health := h.readyz(t, "/readyz", "")
		return status == 200 && !health.Degraded
	})
	h.quotes(t)
	if c := h.compared(t, 1); len(c.Problems) > 0 || c.Since.Before(mended) {
		t.Errorf("%+v", c)
	}
}

// TestNoCandidate: a server without one says how to give one.
func TestNoCandidate(t *testing.T) {
	h := start(t, "")
	if _, errOut, exit := h.tells(t); exit != 2 || !strings.Contains(errOut, "--candidate DIR") {
		t.Errorf("%d\n%s", exit, errOut)
	}
}

// TestCheckReadsTheCandidate: serve --check reports errors in the candidate.
func TestCheckReadsTheCandidate(t *testing.T) {
	dir := t.TempDir()
	files := deskFiles()
	maps.Copy(files, map[string]string{"next/x.policy.yaml": "schema_version: 1\n"})
	writeFiles(t, dir, files)
	at := func(name string) string { return filepath.Join(dir, name) }
	out, _, exit := ran("", "serve", "--check", "--agents", at("desk.agf.yaml"), "--people", at("people.yaml"),
		"--store", at("s.db"), "--candidate", at("next"))
	if exit != 1 || !strings.Contains(out, "x.policy.yaml:1:") {
		t.Errorf("%d\n%s", exit, out)
	}
}
