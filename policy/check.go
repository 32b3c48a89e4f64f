package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

// check checks what the JSON Schema can't express: values that are valid by themselves but
// contradict each other. If the strict reading is safe, the finding is a warning and the policy
// loads.
func (r *reader) check(p *Policy) {
	rules := p.Doc.Root.Get("rules")
	if len(p.Rules) == 0 {
		r.add(diag.Finding{
			Rule:     ruleNoRules,
			Severity: diag.Info,
			Range:    rules.Range,
			Message:  "the policy has no rules: it can be referred to and asks for nothing",
		})
	}

	r.unique(ruleDuplicateRule, "rule id", rules.Items, "id")
	for i, n := range rules.Items {
		rule := &p.Rules[i]
		r.unique(ruleDuplicateStage, "group", items(n.Get("require").Get("stages")), "group")
		for _, alternative := range items(n.Get("require").Get("any_of")) {
			r.unique(ruleDuplicateStage, "group", items(alternative), "group")
		}
		r.reason(n.Get("require").Get("reason").Get("pattern"))
		r.beside(rule, n)
		r.reach(rule, n.Get("match"))
		r.unknownHints(rule.Match.Annotations, n.Get("match"), "calls that don't carry it meet the rule")
		if except := rule.Match.Except; except != nil {
			r.unknownHints(except.Annotations, n.Get("match").Get("except"), "only calls that carry it are exempt")
		}
		r.timeout(rule, n.Get("require"))
		r.redacted(rule)
	}
}

// unique reports a list entry whose name an earlier entry has.
func (r *reader) unique(rule, what string, entries []*yamldoc.Node, key string) {
	first := map[string]*yamldoc.Node{}
	for _, e := range entries {
		name := e.Get(key)
		earlier := first[name.Text]
		if earlier == nil {
			first[name.Text] = name
			continue
		}
		f := yamldoc.Stop(
			rule,
			name.Range,
			fmt.Sprintf("%s %q stands twice (first in line %d)", what, name.Text, earlier.Range.Start.Line),
			"one entry for each "+what,
		)
		f.Related = []diag.Related{{Range: earlier.Range, Message: "first used here"}}
		r.add(f)
	}
}

// beside reports fields without effect: those of an approval in a rule with `deny`, and `unknown`
// in a rule that has no denial with a condition. In version 1.1, `require` without effect is an
// error.
func (r *reader) beside(rule *Rule, n *yamldoc.Node) {
	if f := n.Field("unknown"); f != nil && (!rule.Denies || rule.When == nil) {
		r.add(yamldoc.Stop(
			ruleWhen,
			f.Key.Range,
			"unknown is only for a denial with a condition",
			"deny and when in the same rule",
		))
	}
	if rule.Approval != nil && rule.When != nil && rule.Approval.Form == schema.Conditional &&
		len(rule.When.Groups)*len(rule.Approval.Condition.Groups) > mostGroups {
		r.add(yamldoc.Stop(
			ruleWhen,
			n.Field("when").Key.Range,
			fmt.Sprintf("when and condition have more than %d combinations of groups", mostGroups),
			"fewer groups, or several rules",
		))
	}
	if !rule.Denies || rule.Unknown == DoubtAsks {
		return
	}

	const expected = "two rules, or deny alone"
	if f := n.Field("require"); f != nil && rule.Approval == nil && r.operators == condition.Policy11 {
		r.add(yamldoc.Stop(ruleBesideDeny, f.Key.Range, "require is only for calls about which people are asked",
			"two rules, deny alone, or unknown: ask"))
		return
	}
	denied := "every call that the rule meets"
	if rule.When != nil {
		denied = "every call about which the rule could ask"
	}
	for _, key := range []string{"approval", "require"} {
		if f := n.Field(key); f != nil {
			r.add(yamldoc.Warn(ruleBesideDeny, f.Key.Range, key+" does nothing beside deny, which refuses "+denied, expected))
		}
	}
}

// reason checks the pattern of a reason, which may be absent.
func (r *reader) reason(pattern *yamldoc.Node) {
	if pattern == nil {
		return
	}
	if _, err := reasonBounds.Compile(pattern.Text); err != nil {
		r.add(yamldoc.Stop(ruleReason, pattern.Range, fmt.Sprintf("the pattern of the reason can't be read: %v", err),
			`a regular expression (RE2), such as "^OPS-[0-9]+"`))
	}
}

// mostGroups limits the groups of a rule's condition.
const mostGroups = 1024

// reach reports a match that probably means something other than its author intended.
func (r *reader) reach(rule *Rule, match *yamldoc.Node) {
	if servers := match.Field("servers"); servers != nil && slices.Contains(rule.Match.Kinds, Tool) {
		r.add(
			yamldoc.Warn(
				ruleNeverMeets,
				servers.Key.Range,
				"a rule with servers never meets local tools, which kinds names",
				"a rule of its own for local tools, without servers",
			),
		)
	}
	if takes := match.Get("except").Field("takes"); takes != nil {
		r.add(yamldoc.Warn(
			ruleIdleExcept,
			takes.Key.Range,
			"an exception with takes has no effect: an argument never takes a call out of a rule",
			"an exception without takes, or a condition in when",
		))
	}
	if refs := match.Field("server_refs"); refs != nil && len(rule.Match.Kinds) > 0 &&
		!slices.Contains(rule.Match.Kinds, MCPTool) {
		r.add(yamldoc.Warn(
			ruleNeverMeets,
			refs.Key.Range,
			"a rule with server_refs meets only tools of MCP servers, which kinds leaves out",
			"kinds: [mcp_tool], or no kinds",
		))
	}
}

// unknownHints reports annotations of a match, or of an exception, that MCP does not define.
// effect says what the annotation does.
func (r *reader) unknownHints(annotations map[string]bool, of *yamldoc.Node, effect string) {
	for name := range annotations {
		if _, known := DefaultHint(name); known {
			continue
		}
		f := yamldoc.Warn(
			ruleUnknownHint,
			of.Get("annotations").Field(name).Key.Range,
			fmt.Sprintf("MCP knows no annotation %q; %s", name, effect),
			strings.Join(Hints(), ", "),
		)
		f.Nearest = diag.Nearest(name, Hints())
		r.add(f)
	}
}

// timeout reports timeouts that approve, never happen, or escalate to no group.
func (r *reader) timeout(rule *Rule, require *yamldoc.Node) {
	q := &rule.Require
	if on := require.Field("on_timeout"); on != nil {
		if q.OnTimeout == TimeoutApprove {
			f := yamldoc.Stop(
				RuleTimeoutApproves,
				on.Value.Range,
				"nobody's answer would count as a yes",
				"deny, or escalate",
			)
			f.Stops = false // refused when a plan is compiled, unless the runtime owner opts in
			r.add(f)
		}

		if q.OnTimeout == TimeoutEscalate && len(q.Escalate) == 0 {
			r.add(
				yamldoc.Warn(
					ruleToNobody,
					on.Value.Range,
					"on_timeout: escalate has nobody to turn to, so it denies",
					"escalate: [{after: 10m, to: group}]",
				),
			)
		}

		if q.OnTimeout == TimeoutEscalate && len(q.Escalate) > 0 &&
			!slices.ContainsFunc(q.Escalate, func(e Escalation) bool {
				return e.May != MayLook
			}) {
			r.add(
				yamldoc.Warn(
					ruleToLookers,
					on.Value.Range,
					"on_timeout: escalate turns to people who may not approve",
					"at least one group in escalate without may: look",
				),
			)
		}

		if q.OnTimeout != TimeoutDeny && q.Within == 0 {
			r.add(
				yamldoc.Warn(
					ruleNoDeadline,
					on.Key.Range,
					"on_timeout never comes true without a deadline",
					"within: 30m",
				),
			)
		}
	}

	end := q.LastMoment()
	for _, e := range items(require.Get("escalate")) {
		if after := e.Get("after"); end != 0 && duration(after) >= end {
			r.add(
				yamldoc.Warn(
					ruleLate,
					after.Range,
					fmt.Sprintf("the request has ended by then: it ends after %s", FormatDuration(end)),
					"a time shorter than "+FormatDuration(end),
				),
			)
		}
	}
}

// LastMoment returns the time after its start at which an undecided request ends, or 0 if it never
// does. With on_timeout: escalate, groups called in by the deadline have the same time again.
func (q *Require) LastMoment() time.Duration {
	inTime := func(e Escalation) bool { return e.After <= q.Within }
	if q.OnTimeout == TimeoutEscalate && slices.ContainsFunc(q.Escalate, inTime) {
		return 2 * q.Within
	}
	return q.Within
}

// redacted reports a message that would show what the same rule hides.
func (r *reader) redacted(rule *Rule) {
	t := templateOf(rule.Approval)
	if t == nil {
		return
	}
	for _, ref := range t.Parsed.Refs() {
		for _, hidden := range rule.Require.Arguments.Redact {
			if shows(ref.Name, hidden) {
				r.add(yamldoc.Warn(
					ruleShowsRedacted,
					t.Node.At(ref.Offset, ref.Length),
					fmt.Sprintf("the message names %s, but arguments.redact hides %s", ref.Name, hidden),
					"a message without it",
				))
			}
		}
	}
}

func templateOf(a *schema.Approval) *schema.Template {
	if a == nil {
		return nil
	}
	return a.Template
}

// shows reports whether a template variable would print the argument at
// a path, or something around or in it.
func shows(variable, path string) bool {
	for _, root := range []string{"tool_args", "skill_args", "parent.input"} {
		if variable == root {
			return true
		}
		if shown, ok := strings.CutPrefix(variable, root+"."); ok {
			return shown == path || strings.HasPrefix(shown, path+".") || strings.HasPrefix(path, shown+".")
		}
	}

	return false
}
