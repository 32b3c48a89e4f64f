package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
)

const gateHead = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
`

// entryWith returns an agent with one local tool that has further fields.
func entryWith(fields string) string {
	return gateHead + "action_space:\n  local_tools:\n    - {alias: pay, " + fields + "}\n"
}

func parseGates(t *testing.T, text string) (*Agent, []diag.Finding) {
	t.Helper()
	agent, findings := Parse("a.agf.yaml", []byte(text))
	if agent == nil {
		t.Fatalf("it does not load:\n%s\n%s", text, render(findings))
	}
	return agent, findings
}

func errorsOf(findings []diag.Finding) (out []string) {
	for _, f := range findings {
		if f.Severity == diag.Error {
			out = append(out, f.Rule)
		}
	}
	return out
}

// TestFieldsThatMeanAnApproval checks that a field meant as an approval is an error, and is kept
// for the engine, with any value.
func TestFieldsThatMeanAnApproval(t *testing.T) {
	fields := []string{
		// Letters left out, added, changed and swapped.
		"aproval: true", "approvel: true", "apporval: true", "approva: true", "approvall: true", "aprooval: true",
		"aproovel: true", "aprvl: true", "apprvl: true", "apprval: true", "appproval: true", "pproval: true",
		"approval1: true", "appr0val: true", "approvaI: true", "approuval: true", "aprroval: true", "appoval: true",
		// Number, case and signs.
		"approvals: true", "Approval: true", "APPROVAL: true", "ap-proval: true", "ap_proval: true",
		"a.p.proval: true",
		"apPROVAL: true", "\"approval \": true", "\" approval\": true", "\"approval\\t\": true", "_approval: true",
		"\"approval:\": true", "\"approval?\": true", "\"'approval'\": true",
		// These characters are invisible or look like others.
		"\"approval\\u00a0\": true", "\"approval\\u200b\": true", "\"ap\\u200dproval\": true",
		"\"\\ufeffapproval\": true",
		"\"a\\u00adpproval\": true", "\"\\u0430pproval\": true", "\"\\u0430\\u0440\\u0440r\\u043eval\": true",
		"\"\\uff41\\uff50\\uff50\\uff52\\uff4f\\uff56\\uff41\\uff4c\": true", "\"\\u03b1pproval\": true",
		"\"a\\u0301pproval\": true", "\"\\u00e1pproval\": true", "\"approv\\U0001d41al\": true",
		"\"appro\\u3164val\": true", "\"\\u202eapproval\": true", "\"\\U0001D41Approval\": true",
		"\"\\u24d0pproval\": true", "\"approval\\u2800\": true",
		// Other words for it.
		"require_approval: always", "requires_approval: true", "needs_approval: true", "require-approval: true",
		"requireApproval: true", "requiresApproval: true", "requiresapproval: true", "approval_required: true",
		"approvalRequired: true", "must_approve: true", "needs_aproval: true", "requireaproval: true",
		"human_approval: true", "humanApproval: true", "manual_approval: true", "approve: always", "approver: mara",
		"approvers: [mara, zoe]", "approval_policy: strict", "approval_mode: always", "pre_approval: true",
		"auto_approve: false", "must_be_approved: true", "require_approved: true",
		"ask: true", "ask_user: true", "askUser: true", "ask_before: true", "ask_if: {amount: 5}", "always_ask: true",
		"confirm: true", "confirmation: required", "confirm_before_run: true", "require_confirmation: true",
		"requiresConfirmation: true", "needs_confirm: true", "confirmaton: true", "user_confirmation: true",
		"human_in_the_loop: true", "humanInTheLoop: true", "human_in_loop: true", "in_the_loop: true", "hitl: true",
		"HITL: true", "requires_hitl: true", "requiresHITL: true", "HITLRequired: true",
		"human-in-the-loop: {always: true}",
		"four_eyes_principle: true", "sign_off_by: mara", "consent: true", "user_consent: true",
		"sign_off: true", "signoff: true", "four_eyes: true",
		"gate: true", "gated: true", "interrupt: true", "interrupt_on: {pay: true}", "human_review: true",
		"review: required", "review_required: true", "needs_review: true", "manual_review: true", "manual: true",
		"human: true", "requires_permission: true", "permission_required: true", "ask_permission: true",
		"wait_for_user: true", "prompt_user: true", "human_oversight: true", "reviewers: [mara]",
		"permission: ask", "permissions: {pay: ask}", "mode: ask", "policy: require_approval", "on_call: always_ask",
		// These values have no meaning, or the opposite one.
		"aproval: false", "aproval: ~", "aproval: []", "aproval: {}", "aproval: 5", "requires_approval: false",
		// Below another field.
		"options: {approval: true}", "annotations: {requiresConfirmation: true}", "constraints: {approval: true}",
		"input_schema: {approval: true}", "guard: [{condition: 5, approval: true}]",
		"metadata: {requires_approval: true}",
		"when: {args_match: {amount: 5}}", "rules: [{if: x, aproval: true}, {b: c}]",
		// These are extension fields, which are reserved for vendors.
		"X-approval: true", "\"\\u0445-approval\": true", "\"\\u200bx-approval\": true", "x_approval: true",
	}
	for _, field := range fields {
		agent, findings := parseGates(t, entryWith(field))
		if got := agent.ActionSpace.LocalTools[0].Misspelt; len(got) != 1 {
			t.Errorf("%s: kept %v", field, got)
		}
		if got := errorsOf(findings); !strings.Contains(strings.Join(got, " "), ruleMisplaced) {
			t.Errorf("%s: found %v", field, got)
		}
		if agent, _ = parseGates(t, entryWith("approval: {condition: {args_match: {a: 5}}}, "+field)); len(
			agent.ActionSpace.LocalTools[0].Misspelt) != 1 {
			t.Errorf("%s: an approval beside it hides it", field)
		}
	}
	if len(fields) < 60 {
		t.Errorf("only %d spellings", len(fields))
	}
}

// TestPartsOutsideOfAnApproval checks that a condition next to the approval is a gate. The message
// of an approval that asks is not.
func TestPartsOutsideOfAnApproval(t *testing.T) {
	for fields, want := range map[string]int{
		"condition: {args_match: {a: 5}}":                       1,
		"conditions: [{args_match: {a: 5}}]":                    1,
		"args_match: {a: 5}":                                    1,
		"arg_match: {a: 5}":                                     1,
		"argsMatch: {a: 5}":                                     1,
		"message_template: \"Pay?\"":                            1,
		"messageTemplate: \"Pay?\"":                             1,
		"approval: false, condition: {args_match: {a: 5}}":      1,
		"approval: false, message_template: \"Pay?\"":           1,
		"approval: true, condition: {args_match: {a: 5}}":       1,
		"approval: true, message_template: \"Pay?\"":            0,
		"approval: {message_template: A}, message_template: \"": 0,
	} {
		if strings.HasSuffix(fields, "\"") && strings.Count(fields, "\"")%2 == 1 {
			fields += "\""
		}
		agent, findings := parseGates(t, entryWith(fields))
		got := agent.ActionSpace.LocalTools[0].Misspelt
		if len(got) != want || len(errorsOf(findings)) != want {
			t.Errorf("%s: kept %v, found %v", fields, got, errorsOf(findings))
		}
	}
}

// TestFieldsThatMeanNoApproval checks that other unknown fields change nothing, because the format
// forbids rejecting them.
func TestFieldsThatMeanNoApproval(t *testing.T) {
	for _, field := range []string{
		"x-note: careful", "x-approval: true", "x-approval-team: risk", "timeout: 5", "retries: 3", "priority: high",
		"proposal: 5", "removal: soft", "approved: true", "approved_by: mara", "approvedAt: today",
		"pre_approved: true",
		"confirmed_by: mara", "category: approval", "tags: [approval, ask]", "title: Approval", "risk: high",
		"appraisal: 5", "approach: careful", "approx_value: 5", "arrival: 5", "content: text", "context: {a: b}",
		"configuration: {a: b}", "conform: true", "version: 2", "owner: mara", "user: mara", "task: pay",
		"mask: true",
		"asked: 5", "gateway: eu", "gate_number: 5", "review_url: \"https://a\"", "manual: \"https://docs\"",
		"permissions: [read, write]", "required_permissions: [fs.read]", "required_user_fields: [id]",
		"user_prompt: hello",
		"human_name: Pay", "disabled: true", "enabled: false", "read_only: true", "destructive: true", "cost: 5",
		"input_schema: {type: object, properties: {approval: {type: boolean}, confirm: {type: boolean}}}",
		"parameters: {properties: {approval: true}}", "input_schema: {type: object, default: {approval: true}}",
		"input_schema: {type: object, properties: {a: {type: object, properties: {ask: {type: string}}}}}",
		"config: {x-approval: true}", "loop: 5", "max_loops: 2", "reference: 5", "edition: 2", "transport: stdio",
		"url: \"https://a\"", "headers: {a: b}", "env: {A: b}", "command: run", "args: [a]", "cwd: /tmp",
	} {
		agent, findings := parseGates(t, entryWith(field))
		if got := agent.ActionSpace.LocalTools[0].Misspelt; len(got) != 0 || len(errorsOf(findings)) > 0 {
			t.Errorf("%s: kept %v, found %v", field, got, errorsOf(findings))
		}
	}
}

// TestGatesOutsideOfEntries checks that a gate outside of the entries is kept for every call, or
// for the targets that an unknown list names.
func TestGatesOutsideOfEntries(t *testing.T) {
	swap := func(from, to string) string { return strings.Replace(gateHead, from, to, 1) }
	for _, test := range []struct{ text, want string }{
		{gateHead + "approval: true\n", "every call"},
		{gateHead + "aproval: {condition: {args_match: {a: 5}}}\n", "every call"},
		{gateHead + "approvals: {pay: true}\n", "every call"},
		{gateHead + "hitl: {tools: [pay]}\n", "every call"},
		{gateHead + "condition: {args_match: {a: 5}}\n", "every call"},
		{gateHead + "action_space: {approval: true}\n", "every call"},
		{gateHead + "action_space: {condition: {args_match: {a: 5}}}\n", "every call"},
		{gateHead + "action_space: {defaults: {approval: true}}\n", "every call"},
		{gateHead + "action_space: {tools: {pay: {approval: true}}}\n", "every call"},
		{gateHead + "action_space: {tools: [{alias: pay, approval: true}]}\n", "pay"},
		{gateHead + "action_space: {skills: [{id: Pay_out, aproval: true}]}\n", "payout"},
		{gateHead + "action_space: {tools: [{alias: p, gates: [{approval: true}]}]}\n", "p"},
		{gateHead + "action_space: {remote_agent: [{alias: p, allowed_skills: [{id: s, approval: true}]}]}\n", "s"},
		{gateHead + "actionspace: {local_tools: [{alias: pay, approval: true}]}\n", "pay"},
		{gateHead + "constraints: {approval: true}\n", "every call"},
		{gateHead + "constraints: {limits: {requires_approval: true}}\n", "every call"},
		{gateHead + "constraints: {governance_policies: [{policy_ref: a, approval: true}]}\n", "every call"},
		{gateHead + "memory: {approval: true}\n", "every call"},
		{gateHead + "tools: [{name: pay, description: Pays.}]\n", ""},
		{gateHead + "x-approvals: {pay: true}\n", ""},
		{gateHead + "notes: {approved_by: mara}\n", ""},
		{swap("model: any", "model: any, approval: true"), "every call"},
		{swap("model: any", "model: any, condition: {a: 5}"), ""},
		{swap("model: any}", "model: any}, approval: true"), "every call"},
		{swap("name: Clerk", "name: Clerk, approval: mara"), ""},
		{swap("output: ", "approval: true, output: "), "every call"},
		{swap("{type: object}", "{type: object, properties: {approval: {type: boolean}}}"), ""},
		{swap("id: agf.react", "id: x-acme.flow"), ""},
	} {
		agent, findings := parseGates(t, test.text)
		got := ""
		for key := range agent.Strays {
			got += key
			if key == "" {
				got += "every call"
			}
		}
		if got != test.want || (test.want != "") != (len(errorsOf(findings)) > 0) {
			t.Errorf("kept for %q, want %q; found %v\n%s", got, test.want, errorsOf(findings), test.text)
		}
	}
}

// TestMisspeltLists checks that a misspelt list of tools is kept, unless the correct one exists.
func TestMisspeltLists(t *testing.T) {
	for fields, want := range map[string]string{
		"allowedTools: [a]":             "[{allowedTools false}]",
		"allowed_tool: [a]":             "[{allowed_tool false}]",
		"alowed_tools: []":              "[{alowed_tools false}]",
		"\"allowed_tools\\u200b\": [a]": "[{allowed_tools\u200b false}]",
		"tools: [a]":                    "[{tools false}]",
		"tool_whitelist: [a]":           "[{tool_whitelist false}]",
		"permitted_tools: [a]":          "[{permitted_tools false}]",
		"enabled_tools: [a]":            "[{enabled_tools false}]",
		"only: [a]":                     "[{only false}]",
		"allow: [a]":                    "[{allow false}]",
		"include_tools: [a]":            "[{include_tools false}]",
		"denied_tools: [a]":             "[{denied_tools true}]",
		"disallowed_tools: [a], allowed_tools: [a, b]": "[{disallowed_tools true}]",
		"block: [a]":                     "[{block true}]",
		"exclude_tools: [a]":             "[{exclude_tools true}]",
		"tools: [a], allowed_tools: [a]": "[{tools false}]", // decides nothing, and is no error
		"allow_tools: [a]":               "[]",              // has its own rule
		"disabled: true":                 "[]",
		"include: file.yaml":             "[]",
		"capabilities: [a]":              "[]",
		"x-tools: [a]":                   "[]",
		"allowed_skills: [a]":            "[{allowed_skills false}]",
		"headers: {allow: a}":            "[]",
	} {
		agent, findings := parseGates(t, gateHead+"action_space:\n  mcp_servers:\n    - {alias: db, "+fields+"}\n")
		short := []string{}
		for _, l := range agent.ActionSpace.MCPServers[0].MisspeltLists {
			short = append(short, fmt.Sprintf("{%s %v}", l.Field, l.Denies))
		}
		if got := "[" + strings.Join(short, " ") + "]"; got != want {
			t.Errorf("%s: kept %s, want %s", fields, got, want)
		}
		wrong := len(short) > 0 && fields != "tools: [a], allowed_tools: [a]"
		if errs := errorsOf(findings); wrong != strings.Contains(strings.Join(errs, " "), ruleUnreadList) {
			t.Errorf("%s: found %v", fields, errs)
		}
	}
}

// TestMisspeltGatesAreBounded checks that a file of many misspelt gates takes no more memory for
// its rules than one gate.
func TestMisspeltGatesAreBounded(t *testing.T) {
	var fields, strays strings.Builder
	for i := range 500 {
		fmt.Fprintf(&fields, ", approval%d: true", i)
		fmt.Fprintf(&strays, "approval%d: true\n", i)
	}
	agent, findings := parseGates(t, entryWith("name: a"+fields.String())+strays.String())
	if n, m := len(agent.ActionSpace.LocalTools[0].Misspelt),
		len(agent.Strays[""]); n != maxMisspelt || m != maxMisspelt {
		t.Errorf("kept %d and %d", n, m)
	}
	if n := len(errorsOf(findings)); n < 1000 {
		t.Errorf("%d errors are reported", n)
	}
}
