package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/decide"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/policy/policyhttp"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// choosing is an agent for which every field of a decision configuration has a visible effect.
const choosing = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
constraints: {governance_policies: [{policy_ref: acme.nowhere, required: false}]}
action_space:
  local_tools:
    - {alias: quote}
    - {alias: sh, approval: {condition: {args_match: {shell.programs: {pattern: rm}}}}}
    - {alias: trade, approval: {condition: {args_match: {amount: {gt: 10}}}}}
    - {alias: mail, approval: {condition: {args_match: {to: {pattern: b}}}}}
    - {alias: save, approval: {condition: {args_match: {to: {pattern: "b$"}}}}}
    - {alias: one, approval: {condition: {args_match: {to: {pattern: b, in: [abc]}}}}}
    - {alias: two, approval: {condition: {args_match: {to: {pattern: "b$", in: ["b "]}}}}}
    - {alias: all, approval: {condition: [{args_match: {n: {gt: 0}}}, {args_match: {n: {lte: 0}}}]}}
  mcp_servers: [{alias: files}, {alias: empty, allowed_tools: []}]
  remote_agents:
    - alias: bank
      approval: true
      allowed_skills: [{id: list, approval: false}]
`

const choosingPolicy = `schema_version: "1.0.0"
policy_ref: acme.all
applies: implicit
rules:
  - {id: d, match: {servers: [files], annotations: {destructiveHint: true}}, deny: Not on files.}
  - {id: late, match: {targets: [quote]}, approval: true, require: {within: 1h, on_timeout: approve}}
`

// chosenField describes where one field of a decision configuration has an effect: the output of a
// command with the field, which it doesn't print without it.
type chosenField struct {
	text   string // of the file; base is without the field
	base   string
	call   string
	decide string // in the decision of decide, and of serve's API
	lint   string // in what agf-validate prints; "" it checks the form alone
	agents string // in GET /v1/agents
	wrong  string // a text that is refused
}

func chosenFields(bundle, cache string) map[string]chosenField {
	const rules = "policies: [rules]\n"
	away := "registry: {url: \"" + bundle + "\", token_file: token, cache: " + cache + "}\n"
	quote := `{"kind":"tool","tool":"quote"}`

	return map[string]chosenField{
		"policies": {
			text: rules, call: quote, decide: `"policy":"acme.all"`, lint: "acme.nowhere",
			wrong: "policies: rules",
		},
		"registry": {
			text: away, call: quote, decide: `"policy":"acme.all"`, lint: "acme.nowhere", wrong: "registry: {}",
		},
		"registry.url": {text: away, call: quote, decide: `"policy":"acme.all"`, wrong: "registry: {url: x}"},
		"registry.token_file": {
			text: away, call: quote, decide: `"policy":"acme.all"`, wrong: "registry: {token_file: []}",
		},
		"registry.cache": {
			text: away, call: quote, decide: `"policy":"acme.all"`, lint: "acme.nowhere", wrong: "registry: {cache: 1}",
		},
		// The effect of these is tested by TestARegistryThatGoesAway.
		"registry.every": {wrong: "registry: {url: \"https://a.example\", every: 0s}"},
		"registry.keep":  {wrong: "registry: {url: \"https://a.example\", keep: never}"},
		"trusted_servers": {
			text: rules + "trusted_servers: [files]\n", base: rules,
			call:   `{"kind":"mcp_tool","server":"files","tool":"rm","annotations":{"destructiveHint":false}}`,
			decide: `"outcome":"allow"`, wrong: "trusted_servers: ['']",
		},
		"case_sensitive_arguments": {
			text: "case_sensitive_arguments: [tool quote]\n", call: `{"kind":"tool","tool":"quote","args":{"a":1,"A":2}}`,
			decide: `"outcome":"allow"`, wrong: "case_sensitive_arguments: [quote]",
		},
		"derived": {
			text:   "derived: [{target: tool sh, from: command, as: shell}]\n",
			call:   `{"kind":"tool","tool":"sh","args":{"shell":{}}}`,
			decide: `"code":"unreadable_arguments"`, wrong: "derived: [{target: sh, from: command, as: shell}]",
			lint: "LESS dotted-key",
		},
		"grants": {
			text: "grants: [{target: tool trade, bounds: [{path: to, kind: host}]}, {target: tool trad}]\n",
			call: `{"kind":"tool","tool":"trade"}`, decide: `"kind":"host"`, lint: "owner-names-nothing",
			wrong: "grants: [{target: quote}]",
		},
		"undeclared": {
			text: "undeclared: ask\n", call: `{"kind":"tool","tool":"nobody"}`, decide: `"code":"undeclared"`,
			wrong: "undeclared: allow",
		},
		"semantics": {
			text: "semantics: {on_missing: no_match}\n", call: `{"kind":"tool","tool":"trade"}`,
			decide: `"outcome":"allow"`, lint: "LESS condition-vacuous", wrong: "semantics: []",
		},
		"semantics.on_missing": {
			text: "semantics: {on_missing: no_match}\n", call: `{"kind":"tool","tool":"trade"}`,
			decide: `"outcome":"allow"`, lint: "LESS condition-vacuous", wrong: "semantics: {on_missing: deny}",
		},
		"semantics.on_mismatch": {
			text: "semantics: {on_mismatch: no_match}\n", call: `{"kind":"tool","tool":"trade","args":{"amount":"x"}}`,
			decide: `"outcome":"allow"`, lint: "LESS condition-vacuous", wrong: "semantics: {on_mismatch: deny}",
		},
		"semantics.anchor": {
			text: "semantics: {anchor: full}\n", call: `{"kind":"tool","tool":"mail","args":{"to":"abc"}}`,
			decide: `"outcome":"allow"`, lint: "condition-unsatisfiable", wrong: "semantics: {anchor: ful}",
		},
		"semantics.trim": {
			text: "semantics: {trim: raw_only}\n", call: `{"kind":"tool","tool":"save","args":{"to":"b "}}`,
			decide: `"outcome":"allow"`, lint: "condition-unsatisfiable", wrong: "semantics: {trim: all}",
		},
		"semantics.empty_allow_list": {
			text: "semantics: {empty_allow_list: as_absent}\n", call: `{"kind":"mcp_tool","server":"empty","tool":"x"}`,
			decide: `"outcome":"allow"`, wrong: "semantics: {empty_allow_list: none}",
		},
		"semantics.remote_approval": {
			text: "semantics: {remote_approval: skill_replaces}\n", call: `{"kind":"skill","agent":"bank","skill":"list"}`,
			decide: `"outcome":"allow"`, wrong: "semantics: {remote_approval: one}",
		},
		"approve_on_timeout": {
			text: rules + "approve_on_timeout: true\n", base: rules, call: quote,
			decide: `"on_timeout":"approve"`, lint: "LESS error: nobody's answer", agents: `"approve_on_timeout":true`,
			wrong: "approve_on_timeout: 'yes'",
		},
		"replace_permissions": {
			text: "replace_permissions: true\n", agents: `"replace_permissions":true`,
			wrong: "replace_permissions: 'yes'",
		},
		"permit_age": {text: "permit_age: 30m\n", agents: `"permit_age":"30m"`, wrong: "permit_age: 25h"},
		"rules": {
			text: "rules: {condition-vacuous: off}\n", lint: "LESS condition-vacuous",
			wrong: "rules: {condition-vacuous: loud}",
		},
	}
}

// schemaFields returns the paths of all fields of the published schema.
func schemaFields(t *testing.T) []string {
	t.Helper()
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var out []string
	var visit func(prefix string, text []byte)
	visit = func(prefix string, text []byte) {
		var o object
		must.Do(t, json.Unmarshal(text, &o))
		for name, below := range o.Properties {
			out = append(out, prefix+name)
			visit(prefix+name+".", below)
		}
	}
	visit("", resolve.ConfigJSON())
	slices.Sort(out)

	return out
}

// validator returns a function that runs agf-validate.
func validator(t *testing.T) func(args ...string) (string, int) {
	t.Helper()
	binary := testbin.Path(t, "cmd/agf-validate")
	return func(args ...string) (string, int) {
		cmd := exec.Command(binary, args...)
		out, _ := cmd.CombinedOutput()

		return string(out), cmd.ProcessState.ExitCode()
	}
}

// decides runs assent decide.
func decides(call string, args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	s := term.Streams{In: strings.NewReader(call), Out: &o, Err: &e}
	code = term.Run(decide.Decider{Streams: s}.Command(), s, args)

	return o.String(), e.String(), code
}

// configured reads the configuration of a service as assent serve does.
func configured(t *testing.T, dir string) (config.Serve, string, error) {
	t.Helper()
	var errOut bytes.Buffer
	flags := config.NewServeFlags(&cobra.Command{})
	flags.File = testfiles.Write(t, filepath.Join(dir, "serve.yaml"), "agents: desk.agf.yaml\npeople: people.yaml\n"+
		"decisions: decisions.yaml\nlisten: 127.0.0.1:0\nstore: s.db\nkey: k\n")
	streams := term.Streams{Err: &errOut}
	cfg, err := config.Reader{Streams: streams}.Serve(flags)

	return cfg, errOut.String(), err
}

// TestEveryChoiceIsReadByAllThree tests every field of the schema: it changes the output of those
// of decide, serve and agf-validate that read it according to the contract. All three refuse a
// wrong value at the same position, and two of them print the same digest.
func TestEveryChoiceIsReadByAllThree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"desk.agf.yaml":         choosing,
		"people.yaml":           testPeople,
		"rules/all.policy.yaml": choosingPolicy,
		"token":                 "sesame\n",
	})
	registry := httptest.NewServer(guarded(bundleOf(t, filepath.Join(dir, "rules"))))
	defer registry.Close()
	agent, file := filepath.Join(dir, "desk.agf.yaml"), filepath.Join(dir, "decisions.yaml")
	validate := validator(t)
	fields := chosenFields(registry.URL, "cache.json")
	if got, want := slices.Sorted(maps.Keys(fields)), schemaFields(t); !slices.Equal(got, want) {
		t.Fatalf("the table has %q, and the schema %q", got, want)
	}
	table := testfiles.Contract(t, "decisions.md")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\|.*\\| (.*) \\| (.*) \\| (.*) \\|$").
			FindStringSubmatch(table)
		if row == nil {
			t.Errorf("%s has no row in docs/contracts/decisions.md", name)
		} else if formOnly := row[3] == "form only"; formOnly != (f.lint == "") {
			t.Errorf("%s: agf-validate %q in the contract", name, row[3])
		}
		if !testtier.Row(name) {
			continue
		}
		said := map[string][3]string{}
		for _, text := range []string{f.text, f.base} {
			testfiles.Write(t, file, cmp.Or(text, "{}\n"))
			decided, problem, code := decides(f.call, "--agent", agent, "--decisions", file)
			if code != 0 {
				t.Errorf("%s: decide: %s", name, problem)
			}
			checked, code := validate("--config", file, agent, filepath.Join(dir, "rules"))
			if code == 2 {
				t.Errorf("%s: agf-validate: %s", name, checked)
			}
			answered, agents := servedBy(t, dir, f.call)
			if f.call != "" && chosenIn(t, decided) != chosenIn(t, answered) {
				t.Errorf("%s: decide says %s\nserve says %s", name, decided, answered)
			}
			said[text] = [3]string{decided, checked, agents}
		}

		for i, want := range []string{f.decide, f.lint, f.agents} {
			with, without := said[f.text][i], said[f.base][i]
			if less, ok := strings.CutPrefix(want, "LESS "); ok {
				want = less
				with, without = without, with
			}
			if want != "" && (strings.Count(with, want) <= strings.Count(without, want)) {
				t.Errorf("%s is not read (%d): no %s in\n%s\nand in\n%s", name, i, want, with, without)
			}
		}

		testfiles.Write(t, file, f.wrong+"\n")
		_, byDecide, code := decides(f.call, "--agent", agent, "--decisions", file)
		byValidate, code2 := validate("--config", file, agent)
		_, byServe, err := configured(t, dir)
		at := regexp.MustCompile(regexp.QuoteMeta(file) + `:\d+:\d+: error: `)
		place := at.FindString(byDecide)
		if code != 2 || code2 != 1 || err == nil || place == "" || at.FindString(byValidate) != place ||
			at.FindString(byServe) != place {
			t.Errorf("%s: %s\n%d %s\n%d %s\n%v %s", name, f.wrong, code, byDecide, code2, byValidate, err, byServe)
		}
	}
}

// chosenIn returns the part of a decision that must be the same everywhere.
func chosenIn(t *testing.T, text string) string {
	t.Helper()
	var d resolve.Decision
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var reasons []string
	for _, r := range d.Reasons {
		reasons = append(reasons, string(r.Code)+" "+r.Policy+" "+r.Rule)
	}

	return fmt.Sprint(d.Outcome, reasons, d.Configuration != "", d.Configuration)
}

// servedBy runs the service on a directory for one call, and returns its decision and its agents.
func servedBy(t *testing.T, dir, call string) (decision, agents string) {
	t.Helper()
	cfg, said, err := configured(t, dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	own := t.TempDir()
	cfg.Store = filepath.Join(own, "s.db")
	cfg.KeyFile = filepath.Join(own, "k")
	cfg.Watermark = filepath.Join(own, "w")
	h := &testServer{dir: own, token: map[string]string{}}
	h.tokens(t, cfg.Location())
	h.serves(t, cfg)
	defer func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	}()
	if call != "" {
		_, decision = posted(t, h.ready.API+"/v1/agents/desk/decide", h.token["runtime"], call)
	}
	_, agents = fetched(t, http.MethodGet, h.ready.API+"/v1/agents", h.token["runtime"], "")

	return decision, agents
}

// posted sends JSON.
func posted(t *testing.T, url, token, body string) (int, string) {
	t.Helper()

	return fetched(t, http.MethodPost, url, token, body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
	})
}

// bundleOf serves the policies of a directory.
func bundleOf(t *testing.T, dir string) http.Handler {
	t.Helper()
	var bundle bytes.Buffer
	if _, err := policyhttp.WriteBundle(&bundle, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}

	return policyhttp.NewHandler(bundle.Bytes())
}

// guarded requires a token.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TestARegistryThatGoesAway: the last good copy decides for the time
// that the file says, which readiness tells; then every call is
// refused, by name, until the registry is back, and the command decides
// nothing. A change is in force soon.
func TestARegistryThatGoesAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"desk.agf.yaml":         choosing,
		"people.yaml":           testPeople,
		"rules/all.policy.yaml": choosingPolicy,
		"token":                 "sesame\n",
	})
	var away atomic.Bool
	var bundle atomic.Value
	bundle.Store(bundleOf(t, filepath.Join(dir, "rules")))
	registry := httptest.NewServer(guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		bundle.Load().(http.Handler).ServeHTTP(w, r)
	})))
	defer registry.Close()
	testfiles.Write(t, filepath.Join(dir, "decisions.yaml"), "registry: {url: \""+registry.URL+
		"\", every: 1s, keep: 8s, token_file: token, cache: cache.json}\n")
	cfg, said, err := configured(t, dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	h := &testServer{dir: dir, token: map[string]string{}}
	h.tokens(t, cfg.Location())
	log := h.serves(t, cfg)
	defer func() {
		if err := h.stop(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	}()
	call := func() (int, string) {
		return posted(t, h.ready.API+"/v1/agents/desk/decide", h.token["runtime"], `{"kind":"tool","tool":"quote"}`)
	}
	asks := func() bool {
		status, text := call()
		return status == http.StatusOK && strings.Contains(text, `"outcome":"ask"`) &&
			strings.Contains(text, "acme.all")
	}
	policies := func() (degraded bool, problems string) {
		_, health := h.readyz(t, "/readyz?verbose", h.token["alice"])
		for _, c := range health.Checks {
			degraded = degraded || c.Name == "policies" && c.Degraded
		}
		i := slices.IndexFunc(health.Loaded, func(l openapi.Loaded) bool { return l.Part == "policies" })
		if i < 0 {
			return degraded, ""
		}

		return degraded, strings.Join(health.Loaded[i].Problems, "\n")
	}
	if !asks() {
		t.Fatal("the registry is not asked at the start")
	}
	if degraded, problems := policies(); degraded || problems != "" {
		t.Errorf("%s", problems)
	}

	away.Store(true)
	testwait.Until(t, "readiness tells", func() bool {
		degraded, problems := policies()
		return degraded && strings.Contains(problems, "last good copy decides") && asks()
	})
	testwait.Until(t, "every call is denied", func() bool {
		status, _ := call()
		return status != http.StatusOK
	})
	for path, body := range map[string]string{
		"decide":    `{"kind":"tool","tool":"quote"}`,
		"requests":  `{"call":{"kind":"tool","tool":"quote"}}`,
		"questions": `{"question":{"asker":"desk","prompt":"Go on?","choices":["Yes","No"],"default":1}}`,
	} {
		to := h.ready.API + "/v1/agents/desk/" + path
		status, text := fetched(t, http.MethodPost, to, h.token["runtime"], body, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "while-it-is-away")
		})
		if status != http.StatusServiceUnavailable || !strings.Contains(text, `"agent_unusable"`) ||
			!strings.Contains(text, "too old") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}

	decided, problem, code := decides(
		`{"kind":"tool","tool":"quote"}`,
		"--agent",
		filepath.Join(dir, "desk.agf.yaml"),
		"--config",
		filepath.Join(dir, "decisions.yaml"),
	)
	if code != 2 || decided != "" || !strings.Contains(problem, "policy-registry-unavailable") {
		t.Errorf("decide: %d %q %s", code, decided, problem)
	}
	testwait.Until(t, "readiness tells that nothing is left", func() bool {
		degraded, problems := policies()
		return degraded && strings.Contains(problems, "too old") &&
			!strings.Contains(problems, "last good copy decides")
	})

	away.Store(false)
	testwait.Until(t, "it is back", func() bool {
		degraded, _ := policies()
		return !degraded && asks()
	})
	rewrite(t, filepath.Join(dir, "rules", "all.policy.yaml"), "{id: late, match: {targets: [quote]}, approval: true, "+
		"require: {within: 1h, on_timeout: approve}}", "{id: never, match: {targets: [quote]}, deny: Never.}")
	bundle.Store(bundleOf(t, filepath.Join(dir, "rules")))
	testwait.Until(t, "the change is in force", func() bool {
		_, text := call()
		return strings.Contains(text, "Never.")
	})
	testwait.Until(t, "the copy is kept", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "cache.json"))
		return err == nil && strings.Contains(string(text), "Never.")
	})
	found := checkServe(t.Context(), cfg)
	if len(found.Problems) > 0 || len(found.Warnings) > 0 || found.Tenants[0].Loaded[1].Count != 1 {
		t.Errorf("serve --check by the copy: %+v", found)
	}
}

// TestServeTellsWhatTheOwnerChose: the configuration is in the log, with a warning if approval by
// timeout is on, in the ledger, and in the answers to pending requests.
func TestServeTellsWhatTheOwnerChose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, deskFiles())
	writeFiles(t, dir, map[string]string{
		"decisions.yaml": "policies: [rules]\napprove_on_timeout: true\npermit_age: 20m\n",
		"rules/late.policy.yaml": "schema_version: \"1.0.0\"\npolicy_ref: late\napplies: implicit\nrules:\n" +
			"  - {id: r, match: {targets: [quote]}, approval: true, require: {within: 1s, on_timeout: approve}}\n",
	})
	cfg, said, err := configured(t, dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	digest := cfg.Tenants[0].Chosen.Digest()
	h := &testServer{dir: dir, token: map[string]string{}}
	h.tokens(t, cfg.Location())
	log := h.serves(t, cfg)
	_, opened := posted(t, h.ready.API+"/v1/agents/desk/requests", h.token["runtime"],
		`{"call":{"kind":"tool","tool":"quote"}}`)
	var in struct {
		PermitAge string `json:"permit_age"`
		Decision  resolve.Decision
		Request   struct{ ID string }
	}
	if err := json.Unmarshal([]byte(opened), &in); err != nil || in.PermitAge != "20m" ||
		in.Decision.Configuration != digest {
		t.Errorf("%v: %s", err, opened)
	}
	var run struct {
		State, Cause string
		Permit       struct{ Expires time.Time }
		Decided      time.Time
	}
	testwait.Until(t, "it runs by timeout", func() bool {
		_, text := fetched(t, http.MethodGet, h.ready.API+"/v1/requests/"+in.Request.ID, h.token["runtime"], "")
		return json.Unmarshal([]byte(text), &run) == nil && run.State == "approved"
	})
	if run.Cause != "timeout" || run.Permit.Expires.Sub(run.Decided) != 20*time.Minute {
		t.Errorf("%+v", run)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	if !regexp.MustCompile(`(?m)WARN.*APPROVAL BY TIMEOUT is on.*` + digest).MatchString(log.String()) {
		t.Errorf("the log says nothing of it:\n%s", log.String())
	}
	entries := strings.Join(h.loadedEntries(t, "configuration_loaded"), "\n")
	if !strings.Contains(entries, digest) || !strings.Contains(entries, "approve_on_timeout") {
		t.Errorf("the ledger says %q", entries)
	}

	if found := checkServe(t.Context(), cfg); len(found.Problems) > 0 ||
		!strings.Contains(fmt.Sprint(found.Warnings), "APPROVAL BY TIMEOUT") {
		t.Errorf("%+v", found)
	}
}
