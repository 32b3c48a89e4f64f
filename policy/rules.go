package policy

import "github.com/assent-dev/assent/diag"

// The rules of this package. Ids are stable. The shape of a document is judged with the ids of package schema
// (missing-field, wrong-type, invalid-value, unknown-field, unknown-operator, non-finite-number), its YAML, conditions and
// templates with those of the packages that read them.
const (
	ruleForeign            = "not-a-policy"
	ruleUnsupportedVersion = "policy-unsupported-version"
	ruleNewerVersion       = "policy-newer-version"
	ruleApprovalFalse      = "policy-approval-false"
	ruleNoEffect           = "policy-rule-without-effect"
	ruleNoReason           = "policy-deny-without-reason"
	ruleDuration           = "policy-duration"
	ruleNoRules            = "policy-without-rules"
	ruleDuplicateRule      = "policy-duplicate-rule"
	ruleDuplicateStage     = "policy-duplicate-stage"
	ruleBesideDeny         = "policy-idle-beside-deny"
	ruleNeverMeets         = "policy-servers-of-local-tools"
	ruleUnknownHint        = "policy-unknown-annotation"
	ruleTimeoutApproves    = "timeout-approves"
	ruleToNobody           = "policy-escalates-to-nobody"
	ruleToLookers          = "policy-escalates-to-look"
	ruleNoDeadline         = "policy-timeout-without-deadline"
	ruleLate               = "policy-late-escalation"
	ruleShowsRedacted      = "policy-message-shows-redacted"
	ruleDuplicateRef       = "policy-duplicate-ref"
	ruleUnreadable         = "policy-unreadable"
	ruleFileName           = "policy-file-name"
	ruleNoneFound          = "policy-none-found"
)

// The findings of the HTTP registry, here so that one table describes every registry.
const (
	// RuleUnavailable: an HTTP registry has no good copy that is young enough.
	RuleUnavailable = "policy-registry-unavailable"
	// RuleBundle: what an HTTP registry sent is no bundle.
	RuleBundle = "policy-bundle"
	// RuleStale: an HTTP registry answers from its last good copy.
	RuleStale = "policy-registry-stale"
)

// Rules describes every rule whose findings this package and policyhttp make on their own.
func Rules() []diag.RuleInfo {
	var all []diag.RuleInfo
	for _, part := range [][]diag.RuleInfo{documentRules(), ruleRules(), requireRules(), registryRules()} {
		all = append(all, part...)
	}
	return all
}

func documentRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleForeign, Title: "The document is no policy", Severity: diag.Error,
			Why: "The Agent Format leaves policy documents to runtimes, so many people have written formats of their own. assent reads its own only: " +
				"guessing what another one forbids would leave gates open. Translate it; the finding says how the parts it knows are written.",
			Bad:  "name: org-baseline\ndeny_tools:\n  - delete_client\n",
			Good: "schema_version: \"1.0.0\"\npolicy_ref: org-baseline\nrules:\n  - id: no-deletes\n    match: {targets: [delete_client]}\n    deny: Clients are not deleted by agents.\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleUnsupportedVersion, Title: "The policy's major version is not known", Severity: diag.Error,
			Why: "A new major version may change what a field means. Reading it by the old meaning could loosen, so the policy is refused, " +
				"and its registry with it. Use an assent that knows the version.",
			Bad:  "schema_version: \"2.0.0\"\npolicy_ref: acme.trades\nrules:\n  - {id: all, approval: true}\n",
			Good: "schema_version: \"1.0.0\"\npolicy_ref: acme.trades\nrules:\n  - {id: all, approval: true}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNewerVersion, Title: "The policy is of a newer minor version", Severity: diag.Warning,
			Why:  "A minor version only adds. What we know of it is read; a field that it adds is refused as unknown, never skipped.",
			Bad:  "schema_version: \"1.7.0\"\npolicy_ref: acme.trades\nrules:\n  - {id: all, approval: true}\n",
			Good: "schema_version: \"1.0.0\"\npolicy_ref: acme.trades\nrules:\n  - {id: all, approval: true}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNoRules, Title: "The policy has no rules", Severity: diag.Info,
			Why: "That is right for a policy whose content another system enforces and that agents name as required; otherwise " +
				"nothing is asked and nothing denied.",
			Bad: "rules: []\n", Good: "rules:\n  - {id: all, approval: true}\n", Spec: "docs/contracts/policy.md",
		},
	}
}

func ruleRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleApprovalFalse, Title: "A policy says `approval: false`", Severity: diag.Error,
			Why:  "A policy can only tighten. `false` would exempt from something, and no policy may lift what an agent or another policy demands. Delete the rule.",
			Bad:  "rules:\n  - {id: reads, match: {targets: [\"read_*\"]}, approval: false}\n",
			Good: "rules:\n  - {id: writes, match: {targets: [\"write_*\"]}, approval: true}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNoEffect, Title: "A rule neither asks nor denies", Severity: diag.Error,
			Why:  "`require` says what an approval must fulfil, it doesn't ask for one. Without `approval` or `deny` the rule would do nothing, which is not what its author meant.",
			Bad:  "rules:\n  - id: trades\n    require: {stages: [{group: risk}]}\n",
			Good: "rules:\n  - id: trades\n    approval: true\n    require: {stages: [{group: risk}]}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNoReason, Title: "`deny` doesn't say why", Severity: diag.Error,
			Why:  "The text is what the agent and the person behind it get to read. With a reason they can do something else; without one they try again.",
			Bad:  "rules:\n  - {id: drops, match: {targets: [\"drop_*\"]}, deny: true}\n",
			Good: "rules:\n  - {id: drops, match: {targets: [\"drop_*\"]}, deny: Dropping tables is not delegated to agents.}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleDuplicateRule, Title: "A rule id stands twice in a policy", Severity: diag.Error,
			Why:  "Decisions, audits and findings name rules by id. Two rules of one name can't be told apart.",
			Bad:  "rules:\n  - {id: trades, match: {targets: [buy]}, approval: true}\n  - {id: trades, match: {targets: [sell]}, approval: true}\n",
			Good: "rules:\n  - {id: buying, match: {targets: [buy]}, approval: true}\n  - {id: selling, match: {targets: [sell]}, approval: true}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleBesideDeny, Title: "Something stands idly beside `deny`", Severity: diag.Warning,
			Why: "`deny` refuses every call that the rule meets; deny beats ask. A condition in `approval` doesn't limit it. " +
				"To ask for some calls and deny others, write two rules with different matches.",
			Bad:  "rules:\n  - id: drops\n    match: {targets: [\"drop_*\"]}\n    approval: true\n    deny: Dropping tables is not delegated to agents.\n",
			Good: "rules:\n  - id: drops\n    match: {targets: [\"drop_*\"]}\n    deny: Dropping tables is not delegated to agents.\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNeverMeets, Title: "A rule with servers names local tools", Severity: diag.Warning,
			Why:  "Local tools have no server, so a rule with `servers` never meets them. Naming both means less than it looks: give local tools a rule of their own.",
			Bad:  "rules:\n  - id: writes\n    match: {kinds: [tool, mcp_tool], servers: [broker]}\n    approval: true\n",
			Good: "rules:\n  - id: writes\n    match: {kinds: [mcp_tool], servers: [broker]}\n    approval: true\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleUnknownHint, Title: "MCP knows no such tool annotation", Severity: diag.Warning,
			Why: "MCP has four hints and a default for each that a server leaves out. For another name there is no default, so calls that don't carry it meet the rule: " +
				"it asks more often than you expect. Mostly it is a misspelt hint.",
			Bad:  "rules:\n  - id: destructive\n    match: {annotations: {destructive: true}}\n    approval: true\n",
			Good: "rules:\n  - id: destructive\n    match: {annotations: {destructiveHint: true}}\n    approval: true\n",
			Spec: "docs/contracts/policy.md",
		},
	}
}

func requireRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleDuration, Title: "A duration can't be read", Severity: diag.Error,
			Why: "A duration has a unit, is at least a second and at most a year, and is written in hours, minutes and seconds: a bare 30 could be " +
				"seconds or minutes, and a day may have 23 hours.",
			Bad:  "rules:\n  - {id: all, approval: true, require: {within: 2d}}\n",
			Good: "rules:\n  - {id: all, approval: true, require: {within: 48h}}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleDuplicateStage, Title: "A group has two stages in one rule", Severity: diag.Error,
			Why: "Two people and one more, or two people at most? Stages say how many people of a group must agree, so each group has one. " +
				"(Two *policies* may name the same group: the larger number holds.)",
			Bad:  "rules:\n  - id: all\n    approval: true\n    require: {stages: [{group: risk, people: 2}, {group: risk}]}\n",
			Good: "rules:\n  - id: all\n    approval: true\n    require: {stages: [{group: risk, people: 3}]}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleTimeoutApproves, Title: "Silence counts as approval", Severity: diag.Error,
			Why: "With `on_timeout: approve` a call runs because nobody looked: at night, on a holiday, or when somebody floods the approvers. The standard " +
				"names this ending, so it can be written, but plans read it as deny unless the runtime owner opts in, and then it is recorded as \"by timeout\". " +
				"Escalate to people who are awake, or let it end in deny.",
			Bad:  "rules:\n  - {id: all, approval: true, require: {within: 30m, on_timeout: approve}}\n",
			Good: "rules:\n  - {id: all, approval: true, require: {within: 30m, on_timeout: deny}}\n",
			Spec: "docs/contracts/policy.md; Agent Format, HITL (timeouts)",
		},
		{
			ID: ruleToNobody, Title: "Escalation has nobody to turn to", Severity: diag.Warning,
			Why:  "`on_timeout: escalate` hands the request to the groups in `escalate`, who may then fill open seats. Without any it can only deny.",
			Bad:  "rules:\n  - {id: all, approval: true, require: {within: 30m, on_timeout: escalate}}\n",
			Good: "rules:\n  - id: all\n    approval: true\n    require: {within: 30m, on_timeout: escalate, escalate: [{after: 10m, to: risk-leads}]}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleToLookers, Title: "Escalation ends with people who may not approve", Severity: diag.Warning,
			Why: "With `may: look` the people who are called in can deny the call or answer it, and fill no seat. When all groups in `escalate` may only " +
				"look, `on_timeout: escalate` gives the same people as before as much time again, and then it denies.",
			Bad:  "rules:\n  - id: all\n    approval: true\n    require: {within: 30m, on_timeout: escalate, escalate: [{after: 10m, to: risk-leads, may: look}]}\n",
			Good: "rules:\n  - id: all\n    approval: true\n    require: {within: 30m, on_timeout: escalate, escalate: [{after: 10m, to: risk-leads}]}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNoDeadline, Title: "A timeout without a deadline", Severity: diag.Warning,
			Why:  "Without `within` a request waits until somebody decides, so `on_timeout` never comes true.",
			Bad:  "rules:\n  - id: all\n    approval: true\n    require: {on_timeout: escalate, escalate: [{after: 10m, to: risk-leads}]}\n",
			Good: "rules:\n  - id: all\n    approval: true\n    require: {within: 30m, on_timeout: escalate, escalate: [{after: 10m, to: risk-leads}]}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleLate, Title: "An escalation comes too late", Severity: diag.Warning,
			Why:  "At the deadline the request ends. A group that is called in then, or later, never sees it.",
			Bad:  "rules:\n  - id: all\n    approval: true\n    require: {within: 30m, escalate: [{after: 45m, to: risk-leads}]}\n",
			Good: "rules:\n  - id: all\n    approval: true\n    require: {within: 30m, escalate: [{after: 10m, to: risk-leads}]}\n",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleShowsRedacted, Title: "The message shows a redacted argument", Severity: diag.Warning,
			Why:  "`arguments.redact` hides values from every channel. A message that names one of them either leaks it or shows a gap to the approver.",
			Bad:  "rules:\n  - id: all\n    approval: {message_template: \"Send to {{tool_args.ssn}}?\"}\n    require: {arguments: {redact: [ssn]}}\n",
			Good: "rules:\n  - id: all\n    approval: {message_template: \"Send to {{tool_args.name}}?\"}\n    require: {arguments: {redact: [ssn]}}\n",
			Spec: "docs/contracts/policy.md",
		},
	}
}

func registryRules() []diag.RuleInfo {
	const allOrNothing = " A registry is all or nothing: a policy that gets lost would loosen every agent that it governs."
	return []diag.RuleInfo{
		{
			ID: ruleDuplicateRef, Title: "Two policies have the same policy_ref", Severity: diag.Error,
			Why: "An agent that names the policy would get one of them, by chance. Often the second is a copy that was meant to be a new version: " +
				"give it a name of its own." + allOrNothing,
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleUnreadable, Title: "A policy can't be read", Severity: diag.Error,
			Why:  "A file, a directory or a link below the policy directory can't be read, so nobody knows what it demands." + allOrNothing,
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleFileName, Title: "A file is named almost like a policy", Severity: diag.Error,
			Why:  "Policies are the files whose names end in `.policy.yaml`. This one looks like a policy and would be passed over in silence. Rename it." + allOrNothing,
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: ruleNoneFound, Title: "A registry without policies", Severity: diag.Error,
			Why: "Somebody asked for policies and there are none. A mistyped directory or a volume that was not mounted looks just like this, and would lift " +
				"every implicit policy at once. To run without policies, name no registry.",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: RuleUnavailable, Title: "The HTTP registry has no usable copy", Severity: diag.Error,
			Why: "The registry could not be fetched or was refused, and there is no good copy, or it is older than the runtime owner allows. Every call is denied " +
				"until a fetch succeeds. The finding says what went wrong.",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: RuleBundle, Title: "The HTTP registry sent no bundle", Severity: diag.Error,
			Why: "The answer is JSON but not a bundle of policies, or one that two readers could read differently (a key twice, say), or it has fields that we don't know. " +
				"`docs/contracts/policy-registry-http.md` shows the format." + allOrNothing,
			Spec: "docs/contracts/policy-registry-http.md",
		},
		{
			ID: RuleStale, Title: "The HTTP registry answers from its last good copy", Severity: diag.Warning,
			Why: "The last fetch failed. Decisions go on with the copy from before, up to the age that the runtime owner allows; after that every call is denied. " +
				"Changes made to policies since then don't count yet.",
			Spec: "docs/contracts/policy.md",
		},
	}
}
