package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

const answeringAgent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space:
  local_tools: [{alias: quote}, {alias: wire}, {alias: vault}, {alias: purge}, {alias: refund}, {alias: trade, approval: true}]
  local_agents: [{alias: settler, source: ./settler.agf.yaml, approval: true}]
`

const answeringPolicies = `schema_version: "1.0.0"
policy_ref: acme.answering
applies: implicit
rules:
  - id: wires
    description: Wires need two of risk.
    match: {targets: [wire]}
    approval: {message_template: "Wire {{tool_args.amount}}?"}
    require: {stages: [{group: risk, people: 2}], within: 30m, on_timeout: escalate, escalate: [{after: 10m, to: heads}, {after: 5m, to: auditors, may: look}]}
  - id: vault
    match: {targets: [vault]}
    approval: true
    require: {arguments: {redact: ["**.secret"], approve_hidden: false}}
  - id: purge
    match: {targets: [purge]}
    approval: true
    require: {stages: [{group: risk, people: 9}]}
  - id: settler
    match: {targets: [settler]}
    approval: true
    require: {arguments: {redact: ["**.pin"]}}
  - id: refund
    match: {targets: [refund]}
    approval: true
    require: {grants: {bounds: [{path: amount, kind: at_most}]}, arguments: {redact: [card]}}
`

const settlerAgent = `schema_version: "1.0.0"
metadata: {id: settler, name: Settler, version: "1.0.0", description: Settles}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Settle., model: any}}
`

const answeringPeople = `schema_version: "1.0.0"
people:
  - {id: alice, groups: [risk, admins]}
  - {id: ben, groups: [risk]}
  - {id: carl, groups: [heads]}
  - {id: dora, groups: [auditors]}
`

// answering runs the service with rules of every kind.
func answering(t *testing.T) *testServer {
	t.Helper()
	h := withFiles(t, map[string]string{
		"desk.agf.yaml":         answeringAgent,
		"settler.agf.yaml":      settlerAgent,
		"people.yaml":           answeringPeople,
		"answering.policy.yaml": answeringPolicies,
	})

	return startWith(t, h, func(c *config.Serve) { c.Tenants[0].Policies = []string{h.dir} })
}

// TestTheTerminalHidesAndSaysWhatItHides: values are hidden at any depth, in the parent's input and
// in the list of standing approvals, with a note. The command refuses an approval that a policy
// forbids without seeing the values.
func TestTheTerminalHidesAndSaysWhatItHides(t *testing.T) {
	h := answering(t)
	vault := h.ask(t, `{"kind":"tool","tool":"vault","args":{"path":"p","auth":[{"secret":"hunter2"}]}}`)
	shown := h.prints(t, "alice", term.ExitOK, "show", "--all", vault.ID)
	holds(
		t,
		shown,
		"1 value is hidden by policy (auth.0.secret): a policy forbids approving it unseen",
		"The message is not shown",
	)
	refused := h.prints(t, "alice", term.ExitNo, "approve", "--yes", "--binding", vault.Binding(), vault.ID)
	holds(t, refused, "a policy forbids approving this call while it hides values of it (auth.0.secret): deny it")
	settler := h.ask(
		t,
		`{"kind":"delegation","agent":"settler","args":{"n":1},"parent":{"input":{"note":"shown",`+
			`"card":{"pin":"hunter2"}}}}`,
	)
	approved := h.prints(t, "alice", term.ExitOK, "approve", "--yes", "--binding", settler.Binding(), settler.ID)
	holds(
		t,
		approved,
		`"note": "shown"`,
		`"pin": "(hidden by policy)"`,
		"parent.input.card.pin",
		"whoever approves, approves them unseen",
	)

	refund := h.ask(t, `{"kind":"tool","tool":"refund","args":{"amount":340.00,"currency":"USD","card":"hunter2"}}`)
	h.prints(
		t,
		"alice",
		term.ExitOK,
		"approve",
		"--grant-uses",
		"20",
		"--at-most",
		"amount",
		"--yes",
		"--binding",
		refund.Binding(),
		refund.ID,
	)
	grants := h.prints(t, "alice", term.ExitOK, "grants")
	holds(t, grants, "(hidden by policy", "amount 20 × 340.00 = 6,800.00 USD")
	for _, text := range []string{shown, refused, approved, grants} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("a hidden value is printed:\n%s", text)
		}
	}
	now := h.request(t, settler.ID)
	if len(now.Votes) != 1 || len(now.Votes[0].Hidden) != 1 || now.Votes[0].Hidden[0] != "parent.input.card.pin" {
		t.Errorf("%+v", now.Votes)
	}
}

// TestEditPrintsAllThatItApproves: the command prints the principal, the parent's input and the
// digest in addition to the new arguments.
func TestEditPrintsAllThatItApproves(t *testing.T) {
	h := answering(t)
	r := h.ask(
		t,
		`{"kind":"delegation","agent":"settler","args":{"mode":"all"},"parent":{"input":{"order":"DELETE `+
			`EVERYTHING"}},"session":"s-9","tool_definition":"sha256:abcdef"}`,
	)
	file := h.file(t, `{"mode":"one"}`)
	for _, more := range [][]string{{"--preview"}, {"--yes", "--binding", r.Binding()}} {
		out := h.prints(t, "alice", term.ExitOK, append([]string{"edit", r.ID, "--args", file}, more...)...)
		holds(
			t,
			out,
			"This is all that you approve with it",
			`"mode": "one"`,
			"DELETE EVERYTHING",
			"runtime",
			"s-9",
			"sha256:abcdef",
			"Why",
			"Needs",
			"Binding  sha256:",
		)
	}

	now := h.request(t, r.ID)
	if now.State != approval.Approved || len(now.Votes) != 1 || !now.Votes[0].Full {
		t.Errorf("%+v", now)
	}
}

// TestTheTerminalSaysWhoIsCalledIn: the terminal shows when people are called in and what they may
// do, whose words the message is, and why the rule asked.
func TestTheTerminalSaysWhoIsCalledIn(t *testing.T) {
	h := answering(t)
	r := h.ask(t, `{"kind":"tool","tool":"wire","args":{"amount":25000}}`)
	holds(
		t,
		h.prints(t, "alice", term.ExitOK, "show", r.ID),
		"2 of risk",
		"heads will be called in at",
		"and may approve in place of risk",
		"auditors will be called in at",
		"to look: they may deny it or answer, but not approve",
		"there is as much time again",
		"Message, by the author of a policy",
		"Wires need two of risk.",
		"policy acme.answering, rule wires",
	)
}

// TestTheTerminalSaysWhatNobodyCanFill: both the person who asks and the JSON document get the
// information.
func TestTheTerminalSaysWhatNobodyCanFill(t *testing.T) {
	h := answering(t)
	call := h.file(t, `{"kind":"tool","tool":"purge","args":{}}`)
	holds(
		t,
		h.prints(t, "runtime", term.ExitNo, "request", "--agent", "desk", "--call", call),
		"pending",
		"not run",
		"nobody can fill this quorum: 9 of risk: only 2 of them may answer this; it can only be denied, or expire",
		"next: the same command with --wait waits for the answer and takes the run",
	)
	opened, err := h.client(t, "runtime").
		Open(t.Context(), "desk", []byte(`{"kind":"tool","tool":"purge","args":{"n":1}}`), client.OpenOptions{})
	if err != nil || len(opened.Unfillable) != 1 || opened.Unfillable[0].Need != 9 || opened.Unfillable[0].Have != 2 {
		t.Errorf("%+v %v", opened, err)
	}
}

// TestTheTerminalListsWhatWaits: --mine lists the requests that the person's answer would change,
// and watch offers only those for approval.
func TestTheTerminalListsWhatWaits(t *testing.T) {
	h := answering(t)
	wire := h.ask(t, `{"kind":"tool","tool":"wire","args":{"amount":25000}}`)
	trade := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	h.prints(t, "alice", term.ExitOK, "approve", "--yes", "--binding", wire.Binding(), wire.ID)
	mine := h.prints(t, "alice", term.ExitOK, "list", "--mine")
	if strings.Contains(mine, wire.ID) || !strings.Contains(mine, trade.ID) {
		t.Errorf("what alice has answered waits for others:\n%s", mine)
	}
	all := h.prints(t, "alice", term.ExitOK, "list")
	holds(t, all, wire.ID, trade.ID)

	h.prints(t, "alice", term.ExitOK, "deny", trade.ID, "--reason", "not now")
	holds(t, h.types(t, "q", "alice", term.ExitOK, "watch"), "1 wait for an answer, 0 of them for yours", "(this one does not wait for you)")
}

// TestHooksCanStopOnTwo: callers that treat 1 as a warning can choose another exit code, except 0.
func TestHooksCanStopOnTwo(t *testing.T) {
	h := answering(t)
	call := h.file(t, `{"kind":"tool","tool":"wire","args":{"amount":1}}`)
	ask := func(code int, more ...string) string {
		return h.prints(t, "runtime", code, append([]string{"request", "--agent", "desk", "--call", call}, more...)...)
	}
	ask(term.ExitNo)
	ask(2, "--denied-exit-code", "2")
	for _, bad := range []string{"0", "-1", "126"} {
		holds(t, ask(term.ExitFailure, "--denied-exit-code", bad), "expected a number from 1 to 125")
	}
	list, err := h.client(t, "alice").Requests(t.Context(), client.Query{State: "pending"})
	if err != nil || len(list.Requests) != 1 {
		t.Fatal(list, err)
	}
	h.prints(t, "alice", term.ExitOK, "deny", list.Requests[0].ID, "--reason", "not today")
	holds(t, ask(2, "--denied-exit-code", "2", "--wait"), "alice denied this very call: not today.")
	testfiles.Write(t, call, `{"kind":"tool","tool":"quote","args":{}}`)
	ask(term.ExitOK, "--denied-exit-code", "2", "--wait")
	ask(1, "--denied-exit-code", "2", "--", "sh", "-c", "exit 1") // the command's own code stays its own
}

// TestTerminalsAreTold: a command that waits for typed input prints that.
func TestTerminalsAreTold(t *testing.T) {
	h := answering(t)
	holds(
		t,
		h.prints(t, "runtime", term.ExitOK, "decide", "--agent", filepath.Join(h.dir, "desk.agf.yaml")),
		"type one call as JSON on each line",
		"Ctrl-D",
	)
	holds(t, h.prints(t, "runtime", term.ExitFailure, "request", "--agent", "desk"), "type one call as JSON")
}

// TestTheCallStandsBesideTheConfirmation: the call is printed again there, because the earlier
// output may have left the screen.
func TestTheCallStandsBesideTheConfirmation(t *testing.T) {
	h := answering(t)
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1,"text":"`+strings.Repeat("x ", 300)+`"}}`)
	shown := h.types(t, last(r.ID)+"\n", "alice", term.ExitOK, "approve", "--all", r.ID)
	_, end, _ := strings.Cut(shown, "Binding  sha256:")
	holds(t, end, `tool trade`, `{"n":1,"text":"x x x`, "type ")
}

// TestAnEditedCallIsToldFromAnother: the answer explains what to do.
func TestAnEditedCallIsToldFromAnother(t *testing.T) {
	h := answering(t)
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	file := h.file(t, `{"n":2}`)
	h.prints(t, "alice", term.ExitOK, "edit", r.ID, "--args", file, "--yes", "--binding", r.Binding())
	_, err := h.client(t, "runtime").
		Consume(t.Context(), r.ID, []byte(`{"kind":"tool","tool":"trade","args":{"n":1}}`), "")
	if err == nil || !strings.Contains(err.Error(), "an approver may have edited the call: read the request again") {
		t.Errorf("%v", err)
	}
}
