package lint_test

import (
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

func TestSuppression(t *testing.T) {
	// empty-allow-list is reported in line 8 of what follows
	const list = "action_space:\n  mcp_servers:\n    - alias: crm\n"
	for _, c := range []struct {
		name, body string
		want       []string
		reason     string // of the silenced finding, "" when nothing is silenced
	}{
		{
			"on the line",
			list + "      allowed_tools: [] # agf-validate: ignore empty-allow-list -- no tool yet\n",
			nil,
			"no tool yet",
		},
		{
			"alone above",
			list + "      # agf-validate: ignore empty-allow-list -- no tool yet\n      allowed_tools: []\n",
			nil,
			"no tool yet",
		},
		{
			"above other comments",
			list + "      # agf-validate: ignore empty-allow-list -- no tool yet\n      # Soon more.\n      " +
				"allowed_tools: []\n",
			nil,
			"no tool yet",
		},
		{
			"without blanks",
			list + "      allowed_tools: [] #agf-validate:ignore empty-allow-list--no tool yet\n",
			nil,
			"no tool yet",
		},
		{
			"several rules",
			list + "      allowed_tools: [] # agf-validate: ignore empty-allow-list, dotted-key -- no tool yet\n",
			[]string{"8 info suppression-unused"},
			"no tool yet",
		},
		{
			"on another line",
			list + "      # agf-validate: ignore empty-allow-list -- no tool yet\n\n      allowed_tools: []\n",
			[]string{"8 info suppression-unused", "10 warning empty-allow-list"},
			"",
		},
		{"another rule", list + "      allowed_tools: [] # agf-validate: ignore dotted-key -- no tool yet\n",
			[]string{"8 warning empty-allow-list", "8 info suppression-unused"}, ""},
		{"no reason", list + "      allowed_tools: [] # agf-validate: ignore empty-allow-list\n",
			[]string{"8 warning empty-allow-list", "8 error suppression-invalid"}, ""},
		{"empty reason", list + "      allowed_tools: [] # agf-validate: ignore empty-allow-list -- \n",
			[]string{"8 warning empty-allow-list", "8 error suppression-invalid"}, ""},
		{"no rule", list + "      allowed_tools: [] # agf-validate: ignore -- all of it\n",
			[]string{"8 warning empty-allow-list", "8 error suppression-invalid"}, ""},
		{"unknown rule", list + "      allowed_tools: [] # agf-validate: ignore empty-allowlist -- no tool yet\n",
			[]string{"8 warning empty-allow-list", "8 error suppression-invalid"}, ""},
		{"no colon", list + "      allowed_tools: [] # agf-validate ignore empty-allow-list -- no tool yet\n",
			[]string{"8 warning empty-allow-list", "8 error suppression-invalid"}, ""},
		{"another verb", list + "      allowed_tools: [] # agf-validate: disable empty-allow-list -- no tool yet\n",
			[]string{"8 warning empty-allow-list", "8 error suppression-invalid"}, ""},
		{
			"a rule that needs the registry",
			"# agf-validate: ignore policy-unresolved -- resolved in production\nconstraints: {governance_policies: " +
				"[{policy_ref: a}]}\n",
			nil,
			"",
		},
		{
			"a rule that needs sub-agents",
			"# agf-validate: ignore child-drops-approval, missing-sub-agent -- the child is trusted\naction_space: " +
				"{local_agents: [{alias: a, source: a}]}\n",
			nil,
			"",
		},
		{"ordinary comments", "# agf is short for Agent Format\n", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := agent(t, c.body, lint.Options{})
			expect(t, "findings", said(r.Findings), c.want...)
			switch {
			case c.reason == "" && len(r.Suppressed) > 0:
				t.Errorf("silenced %v", r.Suppressed)
			case c.reason != "" && (len(r.Suppressed) != 1 || r.Suppressed[0].Reason != c.reason ||
				r.Suppressed[0].Rule != "empty-allow-list"):
				t.Errorf("silenced %v, want %q", r.Suppressed, c.reason)
			}
		})
	}
}

func TestSuppressionOfWhatStopsTheLoad(t *testing.T) {
	fsys := files(
		map[string][]string{"a.agf.yaml": {"b.agf.yaml # agf-validate: ignore missing-sub-agent -- comes later"}},
	)
	expect(t, "missing", said(visit(fsys, "a.agf.yaml")), "8 error missing-sub-agent", "8 error suppression-invalid")
}

func TestSuppressionNamesTheNearestRule(t *testing.T) {
	r := agent(t, "# agf-validate: ignore empty-allowlist -- why\n", lint.Options{})
	if len(r.Findings) != 1 || r.Findings[0].Nearest != "empty-allow-list" ||
		r.Findings[0].Range.Start != (diag.Position{Line: 5, Column: 1}) {
		t.Errorf("got %+v", r.Findings)
	}
}

func TestSuppressionUnderConfig(t *testing.T) {
	config, findings := lint.ParseConfig("c.yaml", []byte("rules: {empty-allow-list: off}\n"), lint.Infos(rules.All()))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	r := agent(
		t,
		"action_space: {mcp_servers: [{alias: crm, allowed_tools: []}]} # agf-validate: ignore empty-allow-list -- "+
			"why\n",
		lint.Options{Config: config},
	)
	expect(t, "a rule that is off leaves its suppression alone", said(r.Findings))
}

func TestSilenceAsConsentIsNotSilenced(t *testing.T) {
	const pol = "schema_version: \"1.0.0\"\npolicy_ref: a\nrules:\n  - id: all\n    approval: true\n    require:\n  " +
		"    within: 30m\n" +
		"      on_timeout: approve # agf-validate: ignore timeout-approves -- nobody is awake\n"
	r := lint.New(rules.All(), lint.Options{}).Worker().Policy("a.policy.yaml", []byte(pol))
	expect(t, "silence as consent", said(r.Findings), "8 error timeout-approves", "8 error suppression-invalid")
}

func TestSilenceable(t *testing.T) {
	for id, want := range map[string]bool{
		"dotted-key":         true,
		"unknown-field":      true,
		"timeout-approves":   false,
		"suppression-unused": false,
	} {
		if got := lint.Silenceable(id); got != want {
			t.Errorf("%s: got %v", id, got)
		}
	}
}
