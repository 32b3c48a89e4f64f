package policy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/template"
)

// knownRules is every rule id that a policy document may meet.
func knownRules() map[string]bool {
	known := map[string]bool{}
	for _, part := range [][]diag.RuleInfo{
		policy.Rules(),
		yamldoc.Rules(),
		schema.Rules(),
		condition.Rules(),
		template.Rules(),
	} {
		for _, r := range part {
			known[r.ID] = true
		}
	}

	return known
}

// TestRulesShowWhatTheyMean checks that the bad example of every rule has its finding, and that the
// good one has none.
func TestRulesShowWhatTheyMean(t *testing.T) {
	for _, r := range policy.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			if !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(r.ID) || r.Title == "" || r.Why == "" ||
				r.Spec == "" {
				t.Errorf("incomplete: %+v", r)
			}
			if r.Bad == "" && r.Good == "" {
				return // about more than one file; see the registry's tests
			}
			_, findings := policy.Parse("bad", []byte(complete(r.Bad)))
			at := slices.IndexFunc(findings, func(f diag.Finding) bool { return f.Rule == r.ID })
			if at < 0 || findings[at].Severity != r.Severity {
				t.Errorf("the bad example is not reported as %s:\n%s", r.Severity, render(findings))
			}
			if p, findings := policy.Parse("good", []byte(complete(r.Good))); p == nil || len(findings) > 0 {
				t.Errorf("the good example has findings:\n%s", render(findings))
			}
		})
	}
}

// complete puts the head of a policy before an example that leaves it out.
func complete(example string) string {
	if strings.Contains(example, "rules:") && !strings.Contains(example, "schema_version") {
		return "schema_version: \"1.0.0\"\npolicy_ref: acme.example\n" + example
	}
	return example
}

// TestRuleTableIsClosed checks that rule ids are unique, and that each rule is tested somewhere.
func TestRuleTableIsClosed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range policy.Rules() {
		if seen[r.ID] {
			t.Errorf("%s stands twice", r.ID)
		}
		seen[r.ID] = true
	}

	src, err := os.ReadFile("rules.go")
	must.Do(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\t[rR]ule\w+ += "(.*)"`).FindAllStringSubmatch(string(src), -1) {
		if !seen[m[1]] {
			t.Errorf("%s has no description", m[1])
		}
		delete(seen, m[1])
	}

	if len(seen) > 0 {
		t.Errorf("described but never emitted: %v", seen)
	}
}

// TestSchemaNamesTheKinds checks that the JSON Schema and the Go types
// have the same values.
func TestSchemaNamesTheKinds(t *testing.T) {
	var s struct {
		Defs struct {
			Match struct {
				Properties struct {
					Kinds struct{ Items struct{ Enum []policy.Kind } }
				}
			}
			Require struct {
				Properties struct {
					Timeout struct{ Enum []policy.Timeout } `json:"on_timeout"`
				}
			}
		} `json:"$defs"`
	}
	must.Do(t, json.Unmarshal(policy.JSON(), &s))
	if got := s.Defs.Match.Properties.Kinds.Items.Enum; !slices.Equal(got, policy.Kinds()) {
		t.Errorf("kinds: %v", got)
	}
	if got := s.Defs.Require.Properties.Timeout.Enum; !slices.Equal(
		got,
		[]policy.Timeout{policy.TimeoutDeny, policy.TimeoutEscalate, policy.TimeoutApprove},
	) {
		t.Errorf("on_timeout: %v", got)
	}
}
