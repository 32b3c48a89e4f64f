package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/policy"
)

func required(t *testing.T, fields string) policy.Require {
	t.Helper()
	p, findings := policy.Parse("p", []byte(text11("1.1.0", "approval: true, require: {"+fields+"}")))
	if p == nil {
		t.Fatalf("%s: %v", fields, findings)
	}
	return p.Rules[0].Require
}

// Rules join to all of their alternatives; one of each list is chosen, and its stages join with the
// others like those of several rules.
func TestAlternativesJoin(t *testing.T) {
	for _, test := range []struct{ a, b, printed, options string }{
		{"any_of: [[{group: cfo}], [{group: fin, people: 2}]]", "", "[[[cfo 1] [fin 2]]]", "[cfo 1] [fin 2]"},
		{"any_of: [[{group: fin, people: 2}], [{group: cfo}], [{group: cfo}]]", "any_of: [[{group: cfo}], [{group: fin, people: 2}]]",
			"[[[cfo 1] [fin 2]]]", "[cfo 1] [fin 2]"},
		{"any_of: [[{group: a}], [{group: b}]]", "any_of: [[{group: a}], [{group: c}]]",
			"[[[a 1] [b 1]] [[a 1] [c 1]]]", "[a 1] [b 1 c 1]"},
		{"stages: [{group: fin}], any_of: [[{group: fin, people: 2}], [{group: cfo}]]", "", "[[[cfo 1] [fin 2]]]", "[cfo 1 fin 1] [fin 2]"},
		{"any_of: [[{group: a}], [{group: a}, {group: b}]]", "", "[[[a 1] [a 1 b 1]]]", "[a 1]"},
		{"any_of: [[{group: a}]], escalate: [{after: 5m, to: e}]", "escalate: [{after: 5m, to: x, may: look}]", "[[[a 1+e]]]", "[a 1+e]"},
		{"any_of: [[{group: a}]], escalate: [{after: 5m, to: e}]", "escalate: [{after: 5m, to: e, may: look}]", "[[[a 1]]]", "[a 1]"},
	} {
		joined := required(t, test.a)
		if test.b != "" {
			joined = joined.Join(required(t, test.b))
		}
		options, ok := policy.Options(joined.Stages, joined.AnyOf)
		var printed, chosen []string
		for _, alternatives := range joined.AnyOf {
			var list []string
			for _, stages := range alternatives {
				list = append(list, shown(stages))
			}
			printed = append(printed, "["+strings.Join(list, " ")+"]")
		}
		for _, o := range options {
			chosen = append(chosen, shown(o))
		}
		got := "[" + strings.Join(printed, " ") + "]"
		if got != test.printed || strings.Join(chosen, " ") != test.options || !ok {
			t.Errorf("%s; %s:\n%s, options %s", test.a, test.b, got, chosen)
		}
	}
}

func shown(stages []policy.Stage) string {
	var out []string
	for _, s := range stages {
		text := fmt.Sprint(s.Group, " ", s.People)
		for _, i := range s.StandIns {
			text += "+" + i.Group
		}
		out = append(out, text)
	}
	return "[" + strings.Join(out, " ") + "]"
}

// Too many combinations are never fulfilled, and never count as tighter.
func TestTooManyAlternatives(t *testing.T) {
	var q policy.Require
	for i := range 12 {
		q.AnyOf = append(q.AnyOf, policy.AnyOf{
			{{Group: fmt.Sprint("a", i), People: 1}}, {{Group: fmt.Sprint("b", i), People: 1}},
		})
	}
	if _, ok := policy.Options(nil, q.AnyOf); ok || policy.TighterPeople(q, policy.Require{}) {
		t.Error("4096 combinations are accepted")
	}
}

func TestReasonsOfApprovals(t *testing.T) {
	both := required(t, `reason: {pattern: "^OPS-[0-9]"}`).Join(required(t, "reason: {pattern: b}")).
		Join(required(t, "reason: required"))
	for text, want := range map[string]bool{
		"": false, "  ": false, " OPS-1 b ": true, "OPS-1": false, "b": false, "x OPS-1 b": false,
	} {
		if both.Reason.Accepts(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if !(policy.Reason{}).Accepts("") || (policy.Reason{Required: true}).Accepts(" ") ||
		!(policy.Reason{Required: true}).Accepts("x") ||
		(policy.Reason{Required: true, Patterns: []string{"("}}).Accepts("(") {
		t.Error("reasons without patterns, or with a bad one")
	}
	for fields, want := range map[string]string{
		"reason: required":     `"required"`,
		"reason: {pattern: x}": `{"pattern":"x"}`,
	} {
		if text, _ := json.Marshal(required(t, fields).Reason); string(text) != want {
			t.Errorf("%s: %s", fields, text)
		}
	}
	if text, _ := json.Marshal(both.Reason); string(text) != `{"patterns":["^OPS-[0-9]","b"]}` {
		t.Errorf("%s", text)
	}
	for _, text := range []string{`{}`, `"none"`, `{"pattern":"a","patterns":["b"]}`, `{"other":1}`, "true"} {
		if new(policy.Reason).UnmarshalJSON([]byte(text)) == nil {
			t.Errorf("%s is read", text)
		}
	}
	for _, text := range []string{`{"any_of":[[]],"on_timeout":"deny","arguments":"full"}`,
		`{"any_of":[[[]]],"on_timeout":"deny","arguments":"full"}`, `{"any_of":[[[{"group":"","people":1}]]]}`} {
		if json.Unmarshal([]byte(text), new(policy.Require)) == nil {
			t.Errorf("%s is read", text)
		}
	}
}
