package policy_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"execute_trade", "execute_trade", true},
		{"execute_trade", "execute_trades", false},
		{"execute_*", "execute_", true},
		{"execute_*", "re_execute_trade", false},
		{"*", "", true},
		{"**", "anything", true},
		{"*_table", "drop_table", true},
		{"*_table", "drop_tables", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"a*a", "a", false}, // one letter can't be both ends
		{"*ab*ab*", "abab", true},
		{"*ab*ab*", "abcb", false},
		{"Execute_*", "execute_trade", false}, // case matters
		{"a?c", "abc", false},                 // only * is special
		{"[ab]", "a", false},
		{`a\*`, "a*", false},
		{`a\*`, `a\bc`, true},
		{"ü*", "über", true},
		{"", "", true},
		{"", "a", false},
	} {
		if got := policy.Glob(c.pattern, c.s); got != c.want {
			t.Errorf("Glob(%q, %q) = %t", c.pattern, c.s, got)
		}
	}
}

// globReference is the definition of a glob, by exhaustive search.
func globReference(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] != '*' {
		return s != "" && s[0] == pattern[0] && globReference(pattern[1:], s[1:])
	}
	return globReference(pattern[1:], s) || s != "" && globReference(pattern, s[1:])
}

func TestGlobAgreesWithItsDefinition(t *testing.T) {
	few := rapid.StringOfN(rapid.SampledFrom([]rune("ab*")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern, s := few.Draw(t, "pattern"), few.Draw(t, "s")
		if got, want := policy.Glob(pattern, s), globReference(pattern, s); got != want {
			t.Fatalf("Glob(%q, %q) = %t", pattern, s, got)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b*", "aabb")
	f.Add("*é*", "caf\u00e9")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 12 || len(s) > 24 || !utf8.ValidString(pattern) || !utf8.ValidString(s) {
			return // the definition takes exponential time
		}
		if got, want := policy.Glob(pattern, s), globReference(pattern, s); got != want {
			t.Fatalf("Glob(%q, %q) = %t", pattern, s, got)
		}
	})
}

// TestGlobIsLinear uses patterns with many stars, for which a backtracking matcher would not
// finish.
func TestGlobIsLinear(t *testing.T) {
	if policy.Glob(strings.Repeat("a*", 100)+"b", strings.Repeat("a", 1_000_000)) {
		t.Error("matched")
	}
}

func TestSelector(t *testing.T) {
	desk := &schema.Metadata{
		ID:                 "trade-desk",
		Namespace:          "acme.finance.eu",
		DataClassification: "restricted",
		Labels:             map[string]string{"tier": "prod"},
	}
	bare := &schema.Metadata{ID: "bare"}
	for _, c := range []struct {
		name       string
		selector   *policy.Selector
		desk, bare bool
	}{
		{"none", nil, true, true},
		{"empty", &policy.Selector{}, true, true},
		{"namespace", &policy.Selector{Namespaces: []string{"acme.hr.*", "acme.finance.*"}}, true, false},
		{"id", &policy.Selector{IDs: []string{"bare"}}, false, true},
		{"classification", &policy.Selector{DataClassifications: []string{"restricted"}}, true, false},
		{
			"all given must match",
			&policy.Selector{IDs: []string{"trade-*"}, Namespaces: []string{"acme.hr"}},
			false,
			false,
		},
		{"label", &policy.Selector{Labels: map[string]string{"tier": "pr*"}}, true, false},
		{"every label", &policy.Selector{Labels: map[string]string{"tier": "prod", "region": "eu"}}, false, false},
		{"a lone star matches an agent without the field", &policy.Selector{
			Namespaces:          []string{"*"},
			DataClassifications: []string{"*"},
			Labels:              map[string]string{"tier": "*"},
		}, true, true},
		{"case matters", &policy.Selector{DataClassifications: []string{"Restricted"}}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.selector.Match(desk); got != c.desk {
				t.Errorf("trade-desk: %t", got)
			}
			if got := c.selector.Match(bare); got != c.bare {
				t.Errorf("bare: %t", got)
			}
		})
	}
}

func TestMatchTarget(t *testing.T) {
	for _, c := range []struct {
		name           string
		match          policy.Match
		kind           policy.Kind
		target, server string
		want           bool
	}{
		{"nothing given", policy.Match{}, policy.Delegation, "auditor", "", true},
		{"kind", policy.Match{Kinds: []policy.Kind{policy.Tool, policy.Skill}}, policy.Skill, "pay", "payments", true},
		{"other kind", policy.Match{Kinds: []policy.Kind{policy.Tool}}, policy.MCPTool, "pay", "payments", false},
		{"target", policy.Match{Targets: []string{"read_*", "pay"}}, policy.Tool, "pay", "", true},
		{"other target", policy.Match{Targets: []string{"read_*"}}, policy.Tool, "pay", "", false},
		{"server", policy.Match{Servers: []string{"broker*"}}, policy.MCPTool, "buy", "broker-eu", true},
		{"other server", policy.Match{Servers: []string{"broker*"}}, policy.MCPTool, "buy", "bank", false},
		{"servers never meet local tools", policy.Match{Servers: []string{"*"}}, policy.Tool, "buy", "", false},
		{
			"all given must match",
			policy.Match{Targets: []string{"buy"}, Servers: []string{"bank"}},
			policy.MCPTool,
			"buy",
			"broker",
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.match.Target(policy.Called{Kind: c.kind, Target: c.target, Server: c.server}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestMatchAnnotated(t *testing.T) {
	hints := func(kv ...any) map[string]bool {
		m := map[string]bool{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1].(bool)
		}
		return m
	}
	for _, c := range []struct {
		name           string
		want, reported map[string]bool
		met            bool
	}{
		{"nothing given", nil, hints("readOnlyHint", true), true},
		{"reported", hints("destructiveHint", true), hints("destructiveHint", true), true},
		{"reported otherwise", hints("destructiveHint", true), hints("destructiveHint", false), false},
		{"absent is destructive", hints("destructiveHint", true), nil, true},
		{"absent is open-world", hints("openWorldHint", true), nil, true},
		{"absent is not read-only", hints("readOnlyHint", false), nil, true},
		{"absent is not idempotent", hints("idempotentHint", true), nil, false},
		{"all given must match", hints("destructiveHint", true, "readOnlyHint", true), nil, false},
		{"absent and unknown to MCP meets", hints("costly", true), nil, true},
		{"unknown to MCP but reported otherwise", hints("costly", true), hints("costly", false), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := policy.Match{Annotations: c.want}
			if got := m.Annotated(c.reported, true); got != c.met {
				t.Errorf("got %t", got)
			}
		})
	}

	for _, name := range policy.Hints() {
		if _, known := policy.DefaultHint(name); !known {
			t.Errorf("%s has no default", name)
		}
	}
}

// A hint of an untrusted server can make a rule match but not exempt a call from it.
func TestHintsOfAnUntrustedServerLiftNoRule(t *testing.T) {
	for _, c := range []struct {
		hint           string
		want, reported bool
		met, trusted   bool // whether the rule meets the call when the server isn't trusted, and when it is
	}{
		{"destructiveHint", true, true, true, true},
		{"destructiveHint", true, false, true, false},
		{"destructiveHint", false, false, true, true}, // it asks about the harmless ones: the server's word adds
		{"destructiveHint", false, true, false, false},
		{"readOnlyHint", false, true, true, false},
		{"readOnlyHint", true, true, true, true},
		{"readOnlyHint", true, false, false, false},
		{"costly", true, false, true, false}, // unknown to MCP: counts as not reported
	} {
		m := policy.Match{Annotations: map[string]bool{c.hint: c.want}}
		reported := map[string]bool{c.hint: c.reported}
		if got := m.Annotated(reported, false); got != c.met {
			t.Errorf("a rule on %s %v, reported %v, not trusted: got %v", c.hint, c.want, c.reported, got)
		}
		if got := m.Annotated(reported, true); got != c.trusted {
			t.Errorf("a rule on %s %v, reported %v, trusted: got %v", c.hint, c.want, c.reported, got)
		}
		if m.Annotated(nil, false) && !m.Annotated(reported, false) {
			t.Errorf("a rule on %s %v: reporting %v lifts it", c.hint, c.want, c.reported)
		}
	}
}
