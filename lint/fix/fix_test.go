package fix_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/fix"
	"github.com/assent-dev/assent/lint/rules"
)

// agent returns an agent with the given lines as tools.
func agent(tools string) string {
	return `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.} # who we are
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
` + tools
}

func check(src []byte) []diag.Finding {
	return lint.New(rules.All(), lint.Options{}).Worker().Agent("a.agf.yaml", src, nil).Findings
}

func checkPolicy(src []byte) []diag.Finding {
	return lint.New(rules.All(), lint.Options{}).Worker().Policy("a.policy.yaml", src).Findings
}

func always(_, _ []byte) string { return "" }

type row struct{ before, after string }

// rows returns tools of an agent before and after they are fixed.
func rows() map[string]row {
	return map[string]row{
		"a date": {
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {day: 2026-01-02}\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {day: \"2026-01-02\"}\n",
		},
		"a number of others": {
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {code: 1_000}\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {code: \"1_000\"}\n",
		},
		"a special text": {
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {sign: =}\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {sign: \"=\"}\n",
		},
		"a policy named twice": {
			"  local_tools: []\nconstraints:\n  governance_policies:\n    - policy_ref: a.b # the first\n    - policy_ref: a.b\n",
			"  local_tools: []\nconstraints:\n  governance_policies:\n    - policy_ref: a.b # the first\n",
		},
		"an invariant that is off": {
			"  local_tools: []\nconstraints:\n  tighten_only_invariant: false # for now\n",
			"  local_tools: []\nconstraints:\n  tighten_only_invariant: true # for now\n",
		},
		"a name that is nearly right": {
			"  local_tools:\n    - alias: pay\n      aproval: true # ask\n",
			"  local_tools:\n    - alias: pay\n      approval: true # ask\n",
		},
		"a quoted name": {
			"  local_tools:\n    - alias: pay\n      \"aproval\": true\n",
			"  local_tools:\n    - alias: pay\n      \"approval\": true\n",
		},
		"a renamed field": {
			"  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n      allow_tools: [get]\n",
			"  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n      allowed_tools: [get]\n",
		},
		"text that others read as true": {
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {now: yes}\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {now: \"yes\"}\n",
		},
		"an exemption that lifts nothing": {
			"  local_tools:\n    - alias: pay\n      # nobody needs to look\n      approval: false\n    - alias: look\n",
			"  local_tools:\n    - alias: pay\n      # nobody needs to look\n    - alias: look\n",
		},
		"an exemption in braces": {
			"  local_tools:\n    - {alias: pay, approval: false}\n",
			"  local_tools:\n    - {alias: pay}\n",
		},
		"a tool listed twice": {
			"  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n      allowed_tools:\n" +
				"        - get\n        - put # writes\n        - get # again\n",
			"  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n      allowed_tools:\n" +
				"        - get\n        - put # writes\n",
		},
		"a tool listed twice in a line": {
			"  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n      allowed_tools: [get, put, get]\n",
			"  mcp_servers:\n    - alias: crm\n      transport: {type: stdio, command: crm}\n      allowed_tools: [get, put]\n",
		},
		"a group that another covers": {
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n" +
				"          - args_match: {amount: {gt: 10}}\n          - args_match: {amount: {gt: 20}}\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n" +
				"          - args_match: {amount: {gt: 10}}\n",
		},
		"raw output": {
			"  local_tools:\n    - alias: pay\n      approval:\n        message_template: \"Pay {{{tool_args.amount}}} to {{& tool_args.to}}?\"\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        message_template: \"Pay {{tool_args.amount}} to {{tool_args.to}}?\"\n",
		},
		"an empty message": {
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {amount: {gt: 10}}\n        message_template: \"\"\n",
			"  local_tools:\n    - alias: pay\n      approval:\n        condition:\n          args_match: {amount: {gt: 10}}\n",
		},
		"a comment that silences nothing": {
			"  # agf-validate: ignore empty-matcher -- it was empty once\n  local_tools:\n    - alias: pay\n      approval: true\n",
			"  local_tools:\n    - alias: pay\n      approval: true\n",
		},
	}
}

func TestRemedies(t *testing.T) {
	for name, tt := range rows() {
		t.Run(name, func(t *testing.T) {
			got := fix.Mend([]byte(agent(tt.before)), check, always)
			if string(got.Text) != agent(tt.after) {
				t.Errorf("mended:\n%s\nrefused: %v\nfound: %v", got.Text, got.Refused, check([]byte(agent(tt.before))))
			}

			again := fix.Mend(got.Text, check, always)
			if len(again.Made) > 0 || string(again.Text) != string(got.Text) {
				t.Errorf("mended again: %v", again.Made)
			}
		})
	}
}

func TestEveryRemedyHasARow(t *testing.T) {
	mended := map[string]bool{"policy-idle-beside-deny": true} // of policies, below
	for _, tt := range rows() {
		for _, r := range fix.Mend([]byte(agent(tt.before)), check, always).Made {
			mended[r.Finding.Rule] = true
		}
	}

	for _, id := range fix.Rules() {
		if !mended[id] {
			t.Errorf("no row shows the remedy of %s", id)
		}
	}
}

func TestRemediesOfPolicies(t *testing.T) {
	const before = `schema_version: "1.0.0"
policy_ref: acme.pay
rules:
  - id: never
    deny: Not here.
    require: {within: 1h} # idle
    match: {targets: [pay]}
`
	got := fix.Mend([]byte(before), checkPolicy, always)
	if want := strings.Replace(before, "    require: {within: 1h} # idle\n", "", 1); string(got.Text) != want {
		t.Errorf("mended:\n%s\nfound: %v", got.Text, checkPolicy([]byte(before)))
	}
}

// TestRefusals checks that a fix that the caller refuses is not made, and that all others are.
func TestRefusals(t *testing.T) {
	before := agent("  local_tools:\n    - alias: pay\n      aproval: true\n    - alias: look\n      approval: false\n")
	got := fix.Mend([]byte(before), check, func(_, after []byte) string {
		if strings.Contains(string(after), "approval: true") {
			return "it asks more"
		}
		return ""
	})
	if len(got.Made) != 1 || len(got.Refused) != 1 || got.Refused[0].Why != "it asks more" {
		t.Errorf("made %v, refused %v", got.Made, got.Refused)
	}
	if want := strings.Replace(before, "      approval: false\n", "", 1); string(got.Text) != want {
		t.Errorf("mended:\n%s", got.Text)
	}
}

// TestComments checks that an entry is removed only with the comments on its own lines.
func TestComments(t *testing.T) {
	before := agent("  local_tools:\n    - alias: pay\n      approval:\n        condition:\n" +
		"          - args_match: {amount: {gt: 10}}\n          - args_match:\n" +
		"              # auditors want this one\n              amount: {gt: 20}\n")
	got := fix.Mend([]byte(before), check, always)
	if string(got.Text) != before {
		t.Errorf("mended:\n%s", got.Text)
	}
}

func FuzzMend(f *testing.F) {
	for _, info := range lint.Infos(rules.All()) {
		f.Add([]byte(info.Bad))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got := fix.Mend(src, check, always)
		again := fix.Mend(got.Text, check, always)
		if len(again.Made) > 0 {
			t.Errorf("mended twice: %v", again.Made[0].Title)
		}
	})
}
