// Package trouble says what to do about each message that programs, agents and operators get from assent. The page
// docs/troubleshooting.md is made from it; a test fails if a message has no entry.
package trouble

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// Entry describes what to do about one message.
type Entry struct {
	Message string // its text up to what differs each time, or a code
	Meaning string
	Fix     string
}

// Reasons returns an entry for each code of a reason of a decision.
func Reasons() []Entry {
	entry := func(code resolve.Code, meaning, fix string) Entry { return Entry{string(code), meaning, fix} }
	return []Entry{
		entry(resolve.Always, "a gate without a condition applies",
			"add a condition to the gate if some calls may run"),
		entry(resolve.ConditionTrue, "the condition of a gate is true for these arguments",
			"`matchers` of the decision names the argument and the test"),
		entry(resolve.ConditionUnknown, "a condition can't be decided: an argument is missing or has another type",
			"let the agent send the argument with the type of the condition"),
		entry(resolve.NotDeclared, "the agent's file has no such tool, server or agent",
			"add it to `action_space`, or correct the name that the runtime sends"),
		entry(resolve.NotAllowed, "the server or skill is declared, and its list does not have this name",
			"add the name to `allowed_tools` or `allowed_skills`"),
		entry(resolve.AllowListMisspelt, "the list of allowed names is under a misspelt field, so nothing is allowed",
			"run `agf-validate`, which names the field"),
		entry(resolve.ApprovalMisspelt, "an unknown field looks like a misspelt `approval`, so the call asks",
			"run `agf-validate`, which names the field"),
		entry(resolve.AskedUndeclared, "the tool is not declared, and the owner's `decisions.yaml` lets people decide",
			"declare the tool in the agent's file"),
		entry(resolve.Denied, "a rule of a policy denies the call",
			"the reason names the policy, the rule and the line"),
		entry(resolve.UnreadableArguments, "the arguments are no JSON object that all parsers read alike",
			"send an object without repeated keys and without numbers beyond the range of a float"),
		entry(resolve.UnreadableCall, "the call has an unknown kind, or lacks a field",
			"see [calls](contracts/decide.md)"),
		entry(resolve.PolicyUnresolved, "a policy that the agent's file requires is missing, or its registry",
			"load the policy with `--policies`, or look at `assent policies`"),
	}
}

// Answers returns an entry for the beginning of each text that an agent's model reads instead of a result.
func Answers() []Entry {
	return []Entry{
		{"Not run. Policy denies this call", "a rule denies it; no person was asked",
			"`assent decide --format text` names the rule"},
		{"Not run. The agent is frozen", "an operator stopped this agent, or all",
			"`assent freeze --list` says why; `assent thaw` lifts it"},
		{"Not run. A person has just denied this same call", "a person denied it a short time ago",
			"wait, or change the call"},
		{" denied this call", "an approver said no; the reason follows", "let the agent do something else"},
		{"Not run. A person answered instead", "an approver gave the agent a text instead of the result",
			"nothing: the agent goes on with it"},
		{"Not run. Nobody decided about this call in time", "the deadline passed without a quorum",
			"ask again; look at `within` and `escalate` of the policy, and at who was notified (`assent deliveries`)"},
		{"denied it before it ran", "an approver took the approval back", "ask that person"},
		{"the approval was not used in time", "the runtime came back after the time that a permit has (`permit_age`)",
			"ask again, and run at once"},
		{"the rules changed before it ran", "policies, the agent's file or the tool changed after the approval",
			"ask again under the new rules"},
		{"calls that ran since then used up a limit", "a rule counts past calls (`history`), and others ran after the approval",
			"ask again; the reasons of the new decision have the figures"},
		{"Not run. A newer request stands in its place", "the runtime replaced the request", "answer the newer one"},
		{"Not run. The request was taken back", "the runtime cancelled it", "nothing"},
		{"Not run. The request expired", "the request ended for the cause in parentheses", "ask again"},
		{"Not run again. The approval has been used", "one approval is for one run, and that run has happened",
			"use another key for another call"},
		{"Not run. The request is", "the client is older than the server, and doesn't know this state",
			"update the client"},
	}
}

// parts returns an entry for each part that /readyz, assent_degraded and the log name.
func parts() []Entry {
	return []Entry{
		{"store", "the database does not answer", "look at it, and at `store_file`; no call runs meanwhile"},
		{"sealing", "the ledger can't be sealed, so approvals are not consumed",
			"look at the log; the key may be unreadable"},
		{"time", "due work (deadlines, escalations) fails", "look at the log"},
		{"clock", "this machine's clock differs from the database's", "start NTP"},
		{"agents", "files of agents can't be read; the last good version stays in force", "`assent serve --check`"},
		{"policies", "files of policies can't be read; the last good version stays in force",
			"`assent serve --check`"},
		{"people", "people.yaml can't be read, or lacks people for a stage", "`assent serve --check`"},
		{"configuration", "the changed configuration can't be read; the last good version stays in force",
			"`assent serve --check`"},
		{"sign_in", "the identity provider does not answer", "`assent oidc check`"},
		{"witness", "no witness confirms checkpoints of the ledger", "look at the log, and at the witness"},
		{"candidate", "the candidate rules can't be read; live calls are not affected", "`assent candidate`"},
	}
}

// fixes says for each code of a problem what to do about it.
func fixes() map[openapi.Code]string {
	const token = "`assent whoami` shows the token; `assent token create` makes another one"
	return map[openapi.Code]string{
		openapi.CodeBadRequest:           "`field` and `detail` name the part of the request",
		openapi.CodeUnauthenticated:      "set `ASSENT_TOKEN` or `--token-file`; " + token,
		openapi.CodeTokenExpired:         token,
		openapi.CodeTokenRevoked:         "ask who revoked it; " + token,
		openapi.CodeMissingScope:         "`detail` names the scope; " + token,
		openapi.CodeAgentNotAllowed:      "use the token of this agent: `--agents` of `assent token create`",
		openapi.CodeNoPerson:             "use a token that was made with `--person`, or `assent login`",
		openapi.CodeUnknownPerson:        "add the person to people.yaml, or correct `--person`",
		openapi.CodeNotEligible:          "`assent show ID` lists who may answer; requesters and owners may not",
		openapi.CodeNotFound:             "look at the id with `assent list --state all`; other tenants are not shown",
		openapi.CodeUnknownAgent:         "look at `metadata.id` of the file, and at `agents` of the configuration",
		openapi.CodeMethodNotAllowed:     "see [HTTP](contracts/http.md)",
		openapi.CodePending:              "wait for people, with `?wait=` or `assent request --wait`",
		openapi.CodeNotApproved:          "read the request: it was denied, has expired or was taken back",
		openapi.CodeConsumed:             "open a request under another key if the call shall run once more",
		openapi.CodeStale:                "open a new request",
		openapi.CodeClosed:               "read the request: it has ended, and takes no more answers",
		openapi.CodeQuestion:             "use `assent choose`, `answer` or `dismiss`",
		openapi.CodeBindingMismatch:      "look at the call again: it was edited, or the runtime presents another one",
		openapi.CodeVersionMismatch:      "read the request again, and answer what it is now",
		openapi.CodeTooLarge:             "send less: see [limits](contracts/assent.md#limits)",
		openapi.CodeUnsupportedMediaType: "send `Content-Type: application/json`",
		openapi.CodeInvalid:              "`field` and `detail` name the value",
		openapi.CodeNotShown:             "look at the whole call first, in the inbox or with `assent show --all`",
		openapi.CodeHiddenValues:         "deny it, or let the policy show the value that it hides",
		openapi.CodeKeyReuse:             "use another `Idempotency-Key` for another call",
		openapi.CodeEditDenied:           "the rules deny the edited call, or it is already asked about",
		openapi.CodeGrantRefused:         "the policy's `grants` allow no such standing approval: approve this call alone",
		openapi.CodeFrozen:               "`assent freeze --list` says why",
		openapi.CodeIfMatchRequired:      "send `If-Match` with the version of the request that the person saw",
		openapi.CodeTooMany:              "wait for `Retry-After`; see [limits](contracts/assent.md#limits)",
		openapi.CodeInternal:             "look for `request_id` in the server's log, and report it",
		openapi.CodeTampered:             "stop the servers, keep the database, and see [disaster](guides/runbooks.md)",
		openapi.CodeUnavailable:          "nothing ran; try again; `/readyz?verbose` and the log name the part",
		openapi.CodeAgentUnusable:        "`detail` names the file and the line; `assent serve --check`",
		openapi.CodeWrongHost:            "add the name to `hosts` or `public_url`, and let the proxy pass `Host` on",
	}
}

// Page returns docs/troubleshooting.md.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Troubleshooting by message

Made from ` + "`cmd/internal/trouble`" + ` and the tables of messages in the code; a test keeps it complete. A message
about a file ends with the name of a rule: see [every finding](rules/README.md), and [what it does to
calls](reference/errors-at-run-time.md).

## What the model reads

| the text has | meaning | what to do |
|---|---|---|
`)
	rows := func(entries []Entry, quote string) {
		for _, e := range entries {
			fmt.Fprintf(&b, "| %s%s%s | %s | %s |\n", quote, strings.TrimSpace(e.Message), quote, e.Meaning, e.Fix)
		}
	}
	rows(Answers(), "")
	b.WriteString("\n## Why a call asks or is denied\n\n`code` of a reason, as `assent decide` and `assent show --json` print " +
		"it.\n\n| code | meaning | what to do |\n|---|---|---|\n")
	rows(Reasons(), "`")
	b.WriteString("\n## What the service answers\n\n`code` of a [problem](contracts/http.md#problems). In an operation that " +
		"leads to a run, nothing ran.\n\n| code | status | message | what to do |\n|---|---|---|---|\n")
	table := fixes()
	for _, m := range openapi.Meanings() {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", m.Code, m.Status, m.Title, table[m.Code])
	}
	b.WriteString("\n## What is not ready or degraded\n\nNames of `/readyz?verbose`, and of the label `part` of " +
		"`assent_degraded`.\n\n| part | meaning | what to do |\n|---|---|---|\n")
	rows(parts(), "`")

	return b.String()
}
