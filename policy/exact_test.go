package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
)

// rulesOf lists the rules that findings report, in their order.
func rulesOf(findings []diag.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Rule)
	}
	return all
}

// TestTheReferenceOfABrokenPolicyIsRead also covers policies without one.
func TestTheReferenceOfABrokenPolicyIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"policy_ref: acme.a\nrules: 7\n": "acme.a",
		"policy_ref: [a]\n":              "",
		"rules: []\n":                    "",
		"[":                              "",
		"":                               "",
	} {
		if got := policy.RefOf([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestSoundRulesAreCheckedBesideBrokenOnes checks a valid rule with broken parts before and after
// it.
func TestSoundRulesAreCheckedBesideBrokenOnes(t *testing.T) {
	const (
		head  = "policy_ref: acme.a\n"
		sound = `    - id: sound
      match:
        kinds: [tool]
        servers: [s]
      deny: Refused.
`
		broken = "    - {id: broken, approval: 7}\n"
	)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"alone": {head + "rules:\n" + sound, []string{"policy-servers-of-local-tools"}},
		"behind a field": {
			head + "applies: never\nrules:\n" + sound,
			[]string{"invalid-value", "policy-servers-of-local-tools"},
		},
		"before a field": {
			head + "rules:\n" + sound + "applies: never\n",
			[]string{"policy-servers-of-local-tools", "invalid-value"},
		},
		"behind a rule": {
			head + "rules:\n" + broken + sound,
			[]string{"invalid-value", "policy-servers-of-local-tools"},
		},
		"before a rule": {
			head + "rules:\n" + sound + broken,
			[]string{"policy-servers-of-local-tools", "invalid-value"},
		},
		"behind a long field": {
			head + "agents: {labels: {aaaaaaaaaaaaaaaaaaaa: 7}}\nrules:\n" + sound,
			[]string{"wrong-type", "policy-servers-of-local-tools"},
		},
		"on one line": {
			head + "rules: [{id: broken, approval: 7}, {id: sound, match: {kinds: [tool], servers: [s]}, deny: " +
				"Refused.}]\n",
			[]string{"invalid-value", "policy-servers-of-local-tools"},
		},
		"on one line, turned": {
			head + "rules: [{id: sound, match: {kinds: [tool], servers: [s]}, deny: Refused.}, {id: broken, " +
				"approval: 7}]\n",
			[]string{"policy-servers-of-local-tools", "invalid-value"},
		},
		"no rule is left": {head + "rules:\n" + broken, []string{"invalid-value"}},
	} {
		p, findings := policy.ParseParts("p.policy.yaml", []byte("schema_version: \"1.0.0\"\n"+tt.text))
		if got := rulesOf(findings); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if left := p != nil && len(p.Rules) == 1; left != (len(tt.want) == 2 || name == "alone") {
			t.Errorf("%s: left is %+v", name, p)
		}
	}
}

// TestFieldsOfOtherFormatsAreTranslated.
func TestFieldsOfOtherFormatsAreTranslated(t *testing.T) {
	for word, keys := range map[string]string{
		"policy_ref":     "name id",
		"deny:":          "deny_tools denied_tools forbidden_tools",
		"approval: true": "approval_tools approve_tools require_approval",
		"redact:":        "redact",
		"":               "tools",
	} {
		for _, key := range strings.Fields(keys) {
			_, findings := policy.Parse("p.policy.yaml", []byte(key+": x\n"))
			if len(findings) != 1 || len(findings[0].Related) != min(1, len(word)) {
				t.Fatalf("%s: %s", key, render(findings))
			}
			for _, r := range findings[0].Related {
				if !strings.Contains(r.Message, word) {
					t.Errorf("%s: %s", key, r.Message)
				}
			}
		}
	}
}

// TestEveryUnknownAnnotationIsReported mixes unknown annotations with those of MCP.
func TestEveryUnknownAnnotationIsReported(t *testing.T) {
	for range 20 { // annotations have no order
		_, findings := policy.Parse(
			"p.policy.yaml",
			[]byte(`schema_version: "1.0.0"
policy_ref: acme.a
rules: [{id: r, match: {annotations: {readOnlyHint: true, aHint: true, destructiveHint: true, bHint: false}}, approval: true}]
`),
		)
		if got := rulesOf(findings); !slices.Equal(
			got,
			[]string{"policy-unknown-annotation", "policy-unknown-annotation"},
		) {
			t.Fatal(got)
		}
	}
}

// TestARefusalCountsWhatElseIsWrong also checks that the reason names the file only once.
func TestARefusalCountsWhatElseIsWrong(t *testing.T) {
	tree := fstest.MapFS{}
	for i, more := range []string{"", " (and 1 more)", " (and 2 more)"} {
		tree[fmt.Sprintf("p%d.policy.yaml", i)] = file("[")
		set, findings := policy.LoadFS(tree, "")
		want := "policy registry refused: p0.policy.yaml:1:1: " + findings[0].Message + more
		if got := set.Err().Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}

	_, findings := policy.LoadFS(failing{fstest.MapFS{"a.policy.yaml": file("")}, "a.policy.yaml"}, "gov")
	if len(findings) != 1 || findings[0].Message != "can't be read: permission denied" {
		t.Error(render(findings))
	}
}

// TestWhatARuleLacksIsTold checks that a missing effect is not reported if it is only misspelt.
func TestWhatARuleLacksIsTold(t *testing.T) {
	for rule, want := range map[string][]string{
		"{aproval: true}":          {`missing field "id"`, `unknown field "aproval"`},
		"{id: a, aproval: true}":   {`unknown field "aproval"`},
		"{id: a, denny: why}":      {`unknown field "denny"`},
		"{approval: true}":         {`missing field "id"`},
		"{id: a, match: {}}":       {`the rule neither asks nor denies`},
		"{id: a, x-deny: why}":     {`the rule neither asks nor denies`},
		"{aproval: true, id: 7}":   {`unknown field "aproval"`, `id: 7`},
		"aproval":                  {`"aproval"`},
		"{id: a, zzz: why}":        {`the rule neither asks nor denies`, `unknown field "zzz"`},
		"{id: a, deny: [because]}": {`deny: a list`},
	} {
		_, findings := policy.Parse(
			"p.policy.yaml",
			[]byte("schema_version: \"1.0.0\"\npolicy_ref: acme.a\nrules: ["+rule+"]\n"),
		)
		told := len(findings) == len(want)
		for i := range min(len(want), len(findings)) {
			told = told && strings.Contains(findings[i].Message, want[i])
		}
		if !told {
			t.Errorf("%s: want %q\n%s", rule, want, render(findings))
		}
	}
}

// TestEveryLateEscalationIsReported covers on_timeout: escalate, with which groups called in by the
// deadline have the same time again.
func TestEveryLateEscalationIsReported(t *testing.T) {
	for require, want := range map[string]int{
		"within: 5m, escalate: [{after: 4m, to: a}, {after: 5m, to: b}, {after: 6m, to: c}]":    2,
		"within: 5m, on_timeout: escalate, escalate: [{after: 5m, to: a}]":                      0,
		"within: 5m, on_timeout: escalate, escalate: [{after: 6m, to: a}]":                      1,
		"within: 5m, on_timeout: escalate, escalate: [{after: 5m, to: a}, {after: 9m, to: b}]":  0,
		"within: 5m, on_timeout: escalate, escalate: [{after: 4m, to: a}, {after: 10m, to: b}]": 1,
		"escalate: [{after: 4m, to: a}]":                                                        0,
		"within: 5m, on_timeout: deny, escalate: [{after: 5m, to: a}]":                          1,
	} {
		_, findings := policy.Parse("p.policy.yaml", []byte(
			"schema_version: \"1.0.0\"\npolicy_ref: acme.a\nrules: [{id: r, approval: true, require: {"+require+"}}]\n",
		))
		got := rulesOf(findings)
		if len(got) != want || want > 0 && got[0] != "policy-late-escalation" {
			t.Errorf("%s\n%s", require, render(findings))
		}
	}
}

// TestWithoutAVersionAPolicyLacksJustThat.
func TestWithoutAVersionAPolicyLacksJustThat(t *testing.T) {
	_, findings := policy.Parse("p.policy.yaml", []byte("policy_ref: acme.a\nrules: [{id: r, approval: true}]\n"))
	if len(findings) != 1 || findings[0].Message != `missing field "schema_version"` {
		t.Error(render(findings))
	}
}

// TestWhereNothingCouldBeReadNothingElseIsMissing checks that unreadable files don't cause a
// finding that there is no policy.
func TestWhereNothingCouldBeReadNothingElseIsMissing(t *testing.T) {
	_, findings := policy.LoadFS(failing{fstest.MapFS{"a.policy.yaml": file("")}, "a.policy.yaml"}, "gov")
	if got := rulesOf(findings); !slices.Equal(got, []string{"policy-unreadable"}) {
		t.Error(got)
	}
}
