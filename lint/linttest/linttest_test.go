package linttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
)

const agent = `schema_version: "1.0.0"
metadata: {id: a, name: A, version: "1", description: A.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: A., model: a}}
action_space:
  local_tools:
`

// shouting reports aliases that shout.
func shouting() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID:    "loud-alias",
			Title: "An alias shouts",
			Why:   "It hurts.",
			Spec:  "none",
			Bad:   agent + "    - alias: PAY\n",
			Good:  agent + "    - alias: pay\n",
		},
		Agent: func(p *lint.Pass) {
			for _, t := range p.Agent.ActionSpace.LocalTools {
				if t.Alias == strings.ToUpper(t.Alias) {
					p.Report(t.AliasRange, fmt.Sprintf("%q shouts", t.Alias))
				}
			}
		},
	}
}

func folder() fstest.MapFS {
	return fstest.MapFS{
		"bad.agf.yaml":  {Data: []byte(agent + "    - alias: PAY # want \"\\\"PAY\\\" shouts\"\n")},
		"good.agf.yaml": {Data: []byte(agent + "    - alias: pay\n")},
		"good-2.policy.yaml": {
			Data: []byte("schema_version: \"1.0.0\"\npolicy_ref: a\nrules: [{id: all, approval: true}]\n"),
		},
	}
}

func TestRun(t *testing.T) { Run(t, folder(), shouting()) }

// A test helper that can't fail proves nothing: every mistake in a rule
// or its samples is told.
func TestCompareFails(t *testing.T) {
	for _, c := range []struct{ name, text, complaint string }{
		{"nothing is wanted", agent + "    - alias: PAY\n", `line 7: unexpected finding: "PAY" shouts [loud-alias]`},
		{
			"on another line",
			agent + "    - alias: PAY\n      name: p # want \"shouts\"\n",
			`line 8: no finding matches "shouts"`,
		},
		{"another message", agent + "    - alias: PAY # want \"whispers\"\n", `line 7: no finding matches "whispers"`},
		{
			"two are wanted",
			agent + "    - alias: PAY # want \"shouts\" \"shouts\"\n",
			`line 7: no finding matches "shouts"`,
		},
		{"does not load", agent + "    - alias: 5\n", "line 7: the sample does not load: "},
		{"another rule", agent + "    - alias: pay\n      aprovals: true\n", "line 8: reported by another rule too: "},
		{"not quoted", agent + "    - alias: PAY # want shouts\n", `line 7: "shouts" is no quoted text`},
		{"no expression", agent + "    - alias: PAY # want \"(\"\n", "line 7: error parsing regexp"},
	} {
		found := Sample{
			Name: "bad.agf.yaml",
			Text: c.text,
		}.Lint(folder(), lint.New([]lint.Rule{shouting()}, lint.Options{})).Findings
		got := compare("loud-alias", c.text, found)
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, c.complaint) }) {
			t.Errorf("%s: want %q, got %q", c.name, c.complaint, got)
		}
	}
}

func TestDescribeFails(t *testing.T) {
	samples, err := samplesOf(folder())
	must.Do(t, err)
	if got := describe(shouting(), samples); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	if got := describe(lint.Rule{RuleInfo: diag.RuleInfo{ID: "Loud"}}, samples); len(got) != 6 {
		t.Errorf("want six complaints, got %q", got)
	}
}

func TestSamplesFail(t *testing.T) {
	for _, missing := range []string{"bad.agf.yaml", "good.agf.yaml"} {
		fsys := folder()
		delete(fsys, missing)
		delete(fsys, "good-2.policy.yaml")
		if _, err := samplesOf(fsys); err == nil {
			t.Errorf("without %s: no error", missing)
		}
	}
}
