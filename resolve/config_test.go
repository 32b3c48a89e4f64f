package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/resolve"
)

// config reads a decision configuration that has nothing wrong with it.
func config(t testing.TB, text string) *resolve.Config {
	t.Helper()
	c, findings := resolve.ParseConfig("decisions.yaml", []byte(text))
	if c == nil {
		t.Fatalf("%s\n%v", text, findings)
	}

	return c
}

// TestConfigSwitchesEveryPoint checks that a configuration accepts the switch that the table names
// for each point, and that it switches only that point.
func TestConfigSwitchesEveryPoint(t *testing.T) {
	want := map[string]resolve.Semantics{
		"Conditions.OnMissing":  {Conditions: condition.Semantics{OnMissing: condition.NoMatch}},
		"Conditions.OnMismatch": {Conditions: condition.Semantics{OnMismatch: condition.NoMatch}},
		"Conditions.Anchor":     {Conditions: condition.Semantics{Anchor: condition.Full}},
		"Conditions.Trim":       {Conditions: condition.Semantics{Trim: condition.RawOnly}},
		"Undeclared":            {Undeclared: resolve.UndeclaredAsk},
		"EmptyAllowList":        {EmptyAllowList: resolve.EmptyIsAbsent},
		"RemoteApproval":        {RemoteApproval: resolve.SkillReplaces},
	}
	for _, p := range resolve.Points() {
		if p.Switch() == "" {
			continue
		}
		text := p.Switch() + "\n"
		if section, rest, nested := strings.Cut(p.Switch(), "."); nested {
			text = section + ": {" + rest + "}\n"
		}
		if got := config(t, text).Options().Semantics; got != want[p.Name] {
			t.Errorf("%s: %+v", text, got)
		}
		delete(want, p.Name)
	}

	for name := range want {
		t.Errorf("no configuration switches %s", name)
	}
}

// TestConfigDigest checks that comments, order, repetitions and explicit defaults don't change the
// digest, and that every setting does.
func TestConfigDigest(t *testing.T) {
	same := []string{
		"undeclared: ask\ntrusted_servers: [a, b]\npermit_age: 20m\n",
		"# why\npermit_age: 1200s\ntrusted_servers: [b, a, b]\n'undeclared': \"ask\"\n",
		"undeclared: ask\ntrusted_servers: [a, b]\npermit_age: 20m\nsemantics: {anchor: unanchored}\n" +
			"approve_on_timeout: false\npolicies: []\nrules: {condition-vacuous: off}\n",
	}
	for _, text := range same[1:] {
		if got := config(t, text).Digest(); got != config(t, same[0]).Digest() {
			t.Errorf("%s: %s", text, got)
		}
	}

	seen := map[string]string{config(t, "{}").Digest(): "{}"}
	for _, text := range []string{
		"policies: [p]", "trusted_servers: [a]", "case_sensitive_arguments: [tool a]", "undeclared: ask",
		"semantics: {on_missing: no_match}", "semantics: {on_mismatch: no_match}", "semantics: {anchor: full}",
		"semantics: {trim: raw_only}", "semantics: {empty_allow_list: as_absent}",
		"semantics: {remote_approval: skill_replaces}", "approve_on_timeout: true", "permit_age: 16m",
		"replace_permissions: true",
		"registry: {url: \"https://a.example/p\"}", "registry: {url: \"https://a.example/p\", every: 2m}",
		"registry: {url: \"https://a.example/p\", keep: 2h}", "registry: {url: \"https://a.example/p\", cache: c}",
		"registry: {url: \"https://a.example/p\", token_file: c}",
		derived("tool sh", "shell", ""), derived("tool sh", "shell", "ls"), derived("tool sh", "sh", ""),
		"grants: [{target: tool sh, ignored: [a]}]", "grants: [{target: tool sh, ignored: [a, b]}]",
	} {
		digest := config(t, text).Digest()
		if other, known := seen[digest]; known {
			t.Errorf("%s and %s have one digest", text, other)
		}
		seen[digest] = text
	}
}

// TestConfigRefusals checks the position of each error and the suggested correction.
func TestConfigRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"undeclard: ask\n":                                  "1:1 undeclared",
		"undeclared: allow\n":                               "1:13 ",
		"semantics: {on_mising: no_match}\n":                "1:13 on_missing",
		"semantics: {anchor: ful}\n":                        "1:21 full",
		"permit_age: 25h\n":                                 "1:13 ",
		"permit_age: 0s\n":                                  "1:13 ",
		"permit_age: 15\n":                                  "1:13 ",
		"registry: {every: 1m}\n":                           "1:",
		"registry: {url: \"ftp://a.example\"}\n":            "1:17 ",
		"registry: {url: \"https://u:p@a.example/\"}\n":     "1:17 ",
		"registry: {url: \"https://a.example\", keep: x}\n": "1:44 ",
		"approve_on_timeout: yes\n":                         "1:21 ",
		"replace_permissions: yes\n":                        "1:22 ",
		"case_sensitive_arguments: [quote]\n":               "1:28 ",
		"trusted_servers: ['']\n":                           "1:19 ",
		"rules: {condition-vacuous: loud}\n":                "1:28 ",
		"- a\n":                                             "1:1 ",
		"derived: [{target: tool sh, from: command}]\n":     "1:12 ",
		derived("delegation clerk", "shell", "ls"):          "1:20 ",
		"derived: [{target: tool a, from: c, as: s}, {target: tool a, from: c, as: s}]\n":             "1:54 ",
		"grants: [{target: sh, ignored: [a]}]\n":                                                      "1:19 ",
		"grants: [{target: tool a, ignore: [a]}]\n":                                                   "1:27 ignored",
		"grants: [{target: tool a, ignored: ['']}]\n":                                                 "1:",
		"grants: [{target: tool a}, {target: tool a}]\n":                                              "1:37 ",
		derived("tool sh", "shell", "ls") + "grants: [{target: tool sh, ignored: [note, Command]}]\n": "2:44 ",
		derived("sh", "shell", "ls"):                                                                  "1:20 ",
		derived("tool sh", "a.b", "ls"):                                                               "1:50 ",
		derived("tool sh", "Command", "ls"):                                                           "1:50 ",
		derived("tool sh", "shell", "ls, eval"):                                                       "1:70 ",
		derived("tool sh", "shell", "'git  log'"):                                                     "1:66 ",
		derived("tool sh", "shell", "") + "semantics: {on_missing: no_match}\n":                       "2:25 ",
		derived("tool sh", "shell", "") + "semantics: {on_mismatch: no_match}\n":                      "2:26 ",
	} {
		c, findings := resolve.ParseConfig("d.yaml", []byte(text))
		i := slices.IndexFunc(findings, func(f diag.Finding) bool { return f.Stops })
		if c != nil || i < 0 {
			t.Errorf("%q was taken: %+v", text, findings)
			continue
		}
		f := findings[i]
		got := fmt.Sprintf("%d:%d %s", f.Range.Start.Line, f.Range.Start.Column, f.Nearest)
		if !strings.HasPrefix(got, want) || f.File != "d.yaml" || f.Message == "" {
			t.Errorf("%q: %q, want %q\n%+v", text, got, want, f)
		}
	}
}

// derived returns a configuration with facts of one tool.
func derived(target, as, listed string) string {
	return fmt.Sprintf("derived: [{target: \"%s\", from: command, as: %s, listed: [%s]}]\n", target, as, listed)
}

// drawConfig is any configuration.
func drawConfig(t *rapid.T) resolve.Options {
	pick := func(field string, words ...string) string {
		return field + ": " + rapid.SampledFrom(words).Draw(t, field)
	}
	text := strings.Join([]string{
		pick("undeclared", "deny", "ask"),
		pick("approve_on_timeout", "true", "false"),
		pick("trusted_servers", "[]", "[open]", "['*']", "[empty, payments]"),
		"semantics:",
		"  " + pick("on_missing", "ask", "no_match"),
		"  " + pick("on_mismatch", "ask", "no_match"),
		"  " + pick("anchor", "unanchored", "full"),
		"  " + pick("trim", "raw_and_trimmed", "raw_only"),
		"  " + pick("empty_allow_list", "allows_none", "as_absent"),
		"  " + pick("remote_approval", "two_gates", "skill_replaces"),
	}, "\n")
	c, findings := resolve.ParseConfig("d.yaml", []byte(text))
	if c == nil {
		t.Fatalf("%s\n%v", text, findings)
	}

	return c.Options()
}

// drawTarget returns a call to what deskTools declares, or to what it does
// not.
func drawTarget(t *rapid.T) *resolve.Call {
	names := rapid.SampledFrom([]string{"trade", "free", "x", "list", "plain", "drop"})
	c := &resolve.Call{
		Kind: rapid.SampledFrom([]resolve.Kind{resolve.Tool, resolve.MCPTool, resolve.Skill, resolve.Delegation}).
			Draw(t, "kind"),
	}
	switch c.Kind {
	case resolve.Tool:
		c.Tool = names.Draw(t, "tool")
	case resolve.MCPTool:
		c.Server = rapid.SampledFrom([]string{"open", "empty", "nowhere"}).Draw(t, "server")
		c.Tool = names.Draw(t, "tool")
	case resolve.Skill:
		c.Agent = rapid.SampledFrom([]string{"payments", "nobody"}).Draw(t, "agent")
		c.Skill = names.Draw(t, "skill")
	default:
		c.Agent = rapid.SampledFrom([]string{"payments", "nobody"}).Draw(t, "agent")
	}

	c.Args = []byte(rapid.SampledFrom([]string{
		`{}`, `{"amount":20000,"currency":"USD"}`, `{"amount":"20000"}`, `{"env":"prod"}`, `{"env":"dev"}`,
	}).Draw(t, "args"))

	return c
}

// TestNoConfigurationLoosensWhatAPolicyDenies checks declared and undeclared targets. No
// configuration allows a call to an undeclared one.
func TestNoConfigurationLoosensWhatAPolicyDenies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opt, call := drawConfig(rt), drawTarget(rt)
		target := rapid.SampledFrom([]string{"'*'", "trade", "x", "drop", "payments", "nobody"}).Draw(rt, "denied")
		rules := "policy_ref: p\napplies: implicit\nrules: [{id: r, match: {targets: [" + target + "]}, deny: No.}]\n"
		before := plan(t, resolve.Options{}, deskTools, rules).Decide(call)
		got := plan(t, opt, deskTools, rules).Decide(call)
		denied := slices.ContainsFunc(before.Reasons, func(r resolve.Reason) bool { return r.Code == resolve.Denied })
		if denied && got.Outcome != resolve.Deny {
			rt.Fatalf("a policy denies it: %s, and under %+v: %s", codes(before), opt, codes(got))
		}
		undeclared := slices.ContainsFunc(before.Reasons, func(r resolve.Reason) bool {
			return r.Code == resolve.NotDeclared
		})
		if undeclared && got.Outcome == resolve.Allow {
			rt.Fatalf("nobody declared it: %s, and under %+v: %s", codes(before), opt, codes(got))
		}
		if got.Configuration != opt.Configuration {
			rt.Fatalf("the decision names %q", got.Configuration)
		}
	})
}

// TestUndeclaredAskOnlyTurnsThoseDenialsIntoQuestions checks that the setting changes only calls
// that were denied just because they are undeclared, and that these ask.
func TestUndeclaredAskOnlyTurnsThoseDenialsIntoQuestions(t *testing.T) {
	asks := config(t, "undeclared: ask\n").Options()
	changed := 0
	rapid.Check(t, func(rt *rapid.T) {
		call := drawTarget(rt)
		before := plan(t, resolve.Options{}, deskTools).Decide(call)
		got := plan(t, asks, deskTools).Decide(call)
		if before.Outcome == got.Outcome {
			return
		}
		changed++
		denials := slices.DeleteFunc(slices.Clone(before.Reasons), func(r resolve.Reason) bool {
			return r.Code != resolve.NotDeclared && r.Code != resolve.NotAllowed
		})
		asked := slices.ContainsFunc(got.Reasons, func(r resolve.Reason) bool {
			return r.Code == resolve.AskedUndeclared
		})
		if before.Outcome != resolve.Deny || got.Outcome != resolve.Ask || len(denials) == 0 || !asked ||
			got.Require != nil {
			rt.Fatalf("%s became %s", codes(before), codes(got))
		}
	})
	if changed == 0 {
		t.Error("nothing was undeclared")
	}
}

// TestTrustReachesOnlyWhomItNames checks that hints of other servers never loosen, and that trust
// in one server changes no decision about another.
func TestTrustReachesOnlyWhomItNames(t *testing.T) {
	const rules = "policy_ref: p\napplies: implicit\nrules:\n" +
		"  - {id: d, match: {kinds: [mcp_tool], annotations: {destructiveHint: true}}, approval: true}\n" +
		"  - {id: o, match: {kinds: [mcp_tool], annotations: {readOnlyHint: true}}, deny: Not here.}\n"
	plain := plan(t, resolve.Options{}, deskTools, rules)
	trusting := plan(t, config(t, "trusted_servers: [\"em*\"]\n").Options(), deskTools, rules)
	rapid.Check(t, func(rt *rapid.T) {
		call := drawTarget(rt)
		hints := *call
		hints.Annotations = map[string]bool{
			"destructiveHint": rapid.Bool().Draw(rt, "destructive"),
			"readOnlyHint":    rapid.Bool().Draw(rt, "read-only"),
		}
		if a, b := plain.Decide(call), plain.Decide(&hints); b.Outcome > a.Outcome {
			rt.Fatalf("hints that nobody believes turn %s into %s", codes(a), codes(b))
		}
		if call.Server == "empty" {
			return
		}
		if a, b := plain.Decide(&hints), trusting.Decide(&hints); codes(a) != codes(b) {
			rt.Fatalf("trust in another server turns %s into %s", codes(a), codes(b))
		}
	})
}

// TestConfigDefaults checks the defaults that the contract names.
func TestConfigDefaults(t *testing.T) {
	c := config(t, "registry: {url: \"https://a.example/p\"}\n")
	if c.PermitAge != 15*time.Minute || c.Registry.Every != time.Minute || c.Registry.Keep != time.Hour {
		t.Errorf("%+v %+v", c, c.Registry)
	}
	if got := config(t, "{}").Options(); got.Semantics != (resolve.Semantics{}) || got.AllowTimeoutApprove {
		t.Errorf("%+v", got)
	}
}

func TestConfigThatNobodyCanRead(t *testing.T) {
	for _, text := range []string{"policies: [", "\xff", ""} {
		if c, findings := resolve.ParseConfig("decisions.yaml", []byte(text)); c != nil || len(findings) == 0 {
			t.Errorf("%q: got %+v, %v", text, c, findings)
		}
	}
	broken, again := &resolve.Config{Policies: []string{"\xff"}}, &resolve.Config{Policies: []string{"\xff"}}
	if broken.Digest() != again.Digest() || broken.Digest() == (&resolve.Config{}).Digest() {
		t.Error("what no document holds has no digest of its own")
	}
}

// TestConfigFieldsAreThoseOfTheSchema checks that every field is listed, in order.
func TestConfigFieldsAreThoseOfTheSchema(t *testing.T) {
	fields := resolve.ConfigFields()
	if !slices.IsSorted(fields) || !slices.Contains(fields, "permit_age") || !slices.Contains(fields, "registry") {
		t.Errorf("got %v", fields)
	}
	for _, f := range fields {
		if !strings.Contains(string(resolve.ConfigJSON()), `"`+f+`"`) {
			t.Errorf("%s is not in the schema", f)
		}
	}
}

// TestPlansSayWhatTheyWereCompiledWith checks that the owner's settings can be read from a plan.
func TestPlansSayWhatTheyWereCompiledWith(t *testing.T) {
	for _, approves := range []bool{false, true} {
		opt := resolve.Options{AllowTimeoutApprove: approves, Configuration: "sha256:x"}
		p, _ := resolve.Compile(parseAgent(t, "agent.agf.yaml", deskTools), brokenRegistry{}, opt) // it denies all
		if p.TimeoutApproves() != approves || p.Configuration() != "sha256:x" {
			t.Errorf("got %v, %s", p.TimeoutApproves(), p.Configuration())
		}
	}
}
