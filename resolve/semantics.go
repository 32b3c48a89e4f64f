package resolve

import "github.com/assent-dev/assent/condition"

// Semantics answers the questions on which Agent Format is silent. The
// zero value is assent's fail-safe default for every one of them;
// docs/design/001-semantics.md gives the reasons. A runtime owner may
// switch a point, an agent's file can't. The choice is part of the
// plan's version, so a switch voids what was approved before it.
type Semantics struct {
	// Conditions holds the points about matchers: missing and mistyped
	// arguments, regular expressions.
	Conditions condition.Semantics
	// Undeclared says what happens to a tool, server, skill or agent
	// that the file does not declare.
	Undeclared Undeclared
	// EmptyAllowList says what `allowed_tools: []` and `allowed_skills:
	// []` allow.
	EmptyAllowList EmptyAllowList
	// RemoteApproval says whether a skill's own approval replaces the
	// remote agent's.
	RemoteApproval RemoteApproval
}

// Undeclared is the answer for a call to something that the file does
// not declare, or that an allow-list leaves out.
type Undeclared uint8

// The answers for undeclared targets.
const (
	UndeclaredDeny Undeclared = iota // deny (default)
	UndeclaredAsk                    // ask, with the same reason
)

// EmptyAllowList is the reading of an allow-list that is present and empty.
type EmptyAllowList uint8

// The readings of an empty allow-list.
const (
	EmptyAllowsNone EmptyAllowList = iota // nothing is allowed (default)
	EmptyIsAbsent                         // as if the list were not there
)

// RemoteApproval is the relation of a remote agent's approval to those
// of its skills.
type RemoteApproval uint8

// The relations of agent-level and skill-level approval.
const (
	TwoGates      RemoteApproval = iota // delegation gate and skill gate, both evaluated (default)
	SkillReplaces                       // a skill's own approval stands instead of the agent's
)

// Point is one silent point of the standard with our answer.
type Point struct {
	Name         string // field of Semantics, or a short name for a fixed point
	Question     string
	Default      string
	Alternatives string // "" when the point is fixed
	Spec         string // where the standard is silent
}

// Points lists every silent point that a decision rests on, in reading order.
func Points() []Point {
	return append(conditionPoints(), resolutionPoints()...)
}

func conditionPoints() []Point {
	return []Point{
		{
			"Conditions.OnMissing",
			"A matcher names an argument that the call leaves out.",
			"unknown, so ask: else a model could dodge a gate by leaving the argument out",
			"no_match",
			"matchers, missing argument",
		},
		{
			"null",
			"The argument is null.",
			"as missing; `ne` and `not_in` are true, since null is another value",
			"",
			"matchers, null",
		},
		{
			"Conditions.OnMismatch",
			"The argument has another type than the matcher (\"20000\" against gt: 10000).",
			"unknown, so ask; nothing is converted, booleans are no numbers",
			"no_match",
			"matchers, type mismatch",
		},
		{"several operators", "One matcher has several operators.", "all must hold", "", "matchers, operators"},
		{
			"three-valued",
			"A group mixes false and unknown.",
			"Kleene logic: false AND unknown is false, true OR unknown is true; so the order of keys never matters",
			"",
			"matchers, evaluation",
		},
		{
			"group without args_match",
			"A condition group has no `args_match`.",
			"vacuously true, so ask",
			"",
			"ConditionGroup",
		},
		{
			"empty lists",
			"`in: []` or `not_in: []`.",
			"never true; always true for a present value",
			"",
			"matchers, lists",
		},
		{
			"Conditions.Anchor",
			"Is a pattern anchored?",
			"no: an unanchored search matches more, so it asks more",
			"full",
			"matchers, regex",
		},
		{
			"Conditions.Trim",
			"A trailing newline or space hides a match.",
			"the raw and the right-trimmed value are both tested",
			"raw_only",
			"matchers, regex",
		},
		{
			"regex dialect",
			"Which regular expressions?",
			"RE2 (Go): linear time; look-around and back-references are refused",
			"",
			"matchers, regex",
		},
		{
			"dotted key",
			"A tool condition has a key with dots.",
			"the whole literal key, else the path; when both exist, ask if either is true or unknown",
			"",
			"approval keys",
		},
		{
			"array index",
			"A key has a number between dots, `lines.0.amount`.",
			"that element of the list alone, as in templates; never all of them",
			"",
			"approval keys",
		},
		{
			"parent key",
			"A tool or skill condition has a key that begins with `parent.`.",
			"never the name of an argument: unknown, so ask",
			"",
			"approval keys",
		},
		{
			"bare key in delegation",
			"A delegation condition has a key that is no `parent.input` path.",
			"unknown, so ask",
			"",
			"delegation approval",
		},
		{
			"numbers",
			"How are numbers compared?",
			"as exact decimals: 1, 1.0 and 1e0 are equal, 2^53 and 2^53+1 are not",
			"",
			"matchers, comparison",
		},
	}
}

func resolutionPoints() []Point {
	return []Point{
		{
			"Undeclared",
			"A call names a tool, server, skill or agent that the file does not declare, or that an allow-list " +
				"leaves out.",
			"deny",
			"ask",
			"action_space",
		},
		{
			"absent allow-list",
			"`allowed_tools` or `allowed_skills` is absent.",
			"every tool or skill, under the blanket approval",
			"",
			"mcp_servers",
		},
		{
			"EmptyAllowList",
			"`allowed_tools: []` or `allowed_skills: []`.",
			"nothing is allowed",
			"as absent",
			"mcp_servers",
		},
		{
			"bare entry",
			"An allow-list entry in object form has no `approval`.",
			"inherits the server's approval, like the string form",
			"",
			"McpToolRef",
		},
		{
			"listed twice",
			"A tool stands twice in an allow-list.",
			"the strictest entry wins: ask if any asks",
			"",
			"mcp_servers",
		},
		{
			"RemoteApproval",
			"A remote agent and its skill both have an approval.",
			"two gates, both evaluated; a skill's `false` lifts nothing at the delegation gate",
			"skill replaces",
			"remote_agents",
		},
		{
			"old names",
			"`allow_tools` or `allow_skills` stands where the list should be.",
			"everything of that entry asks",
			"",
			"renamed fields",
		},
		{
			"misspelt approval",
			"An approval object has none of its known fields.",
			"always ask",
			"",
			"ApprovalConfig",
		},
		{
			"union",
			"Agent and policies disagree.",
			"any source that asks, asks; requirements are joined and only tighten",
			"",
			"governance",
		},
		{
			"unresolved policy",
			"A required policy can't be resolved or read.",
			"every call is denied",
			"",
			"governance_policies",
		},
		{
			"tighten_only_invariant",
			"What does `false` permit?",
			"nothing here: approvals are joined whatever it says, from policies and from parent agents",
			"",
			"constraints",
		},
		{
			"policy conditions",
			"What do the keys of a policy's condition name?",
			"plain keys the arguments, `parent.input` paths the parent's input, whichever gate the rule stands at; " +
				"in a pure delegation, which has no arguments, plain keys are unknown",
			"",
			"policies",
		},
		{
			"annotations",
			"An MCP tool has no annotations, or not that hint.",
			"MCP's defaults: destructive, not read-only, not idempotent, open world",
			"",
			"policies",
		},
		{
			"trusted annotations",
			"A tool's own server says that it is harmless.",
			"believed only of servers in `Options.TrustedServers`; the hints of others bring calls under rules, and " +
				"never out of them",
			"",
			"policies",
		},
		{"arguments", "The arguments are JSON that two readers could read differently.", "deny", "", "calls"},
		{
			"keys alike",
			"Two keys of one object differ in case alone, `url` and `URL`.",
			"deny, in the arguments and in the parent's input, since many tools take the two for one; the owner may " +
				"name targets whose arguments have both",
			"",
			"calls",
		},
		{
			"no object",
			"The arguments are no object.",
			"an embedding program's call: every matcher is unknown, so ask; in a call's JSON form: no valid call",
			"",
			"calls",
		},
	}
}
