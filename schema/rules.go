package schema

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
)

// The rules of this package. Ids are stable.
const (
	ruleMissingField       = "missing-field"
	ruleWrongType          = "wrong-type"
	ruleInvalidValue       = "invalid-value"
	ruleUnknownOperator    = "unknown-operator"
	ruleNonFinite          = "non-finite-number"
	ruleUnknownField       = "unknown-field"
	ruleRenamedField       = "renamed-field"
	ruleDuplicateAlias     = "duplicate-alias"
	ruleUnsupportedVersion = "unsupported-schema-version"
	ruleNewerVersion       = "newer-schema-version"
	ruleUnknownPolicy      = "unknown-execution-policy"
	ruleUnknownAgent       = "unknown-agent"
	ruleInvalidPath        = "invalid-path"
	ruleUnknownSource      = "unknown-path-source"
	ruleStrayIteration     = "stray-iteration"
	ruleBatchIteration     = "batch-without-iteration"
	ruleIdleOutput         = "output-of-idle-agent"
	ruleKeywordClash       = "output-keyword-clash"
	ruleUnreadable         = "unreadable-file"
	ruleMissingAgent       = "missing-sub-agent"
	ruleOutside            = "sub-agent-outside"
	ruleTooDeep            = "sub-agents-too-deep"
	ruleCycle              = "sub-agent-cycle"
	ruleDelegationDepth    = "delegation-depth"
)

// MissingField is the rule of fields that must be there.
const MissingField = ruleMissingField

// UnknownField is the rule of fields that the standard does not know; the only one that `--strict` raises.
const UnknownField = ruleUnknownField

// IsGraphRule tells whether findings of the rule come from LoadGraph's links rather than from one file alone.
func IsGraphRule(id string) bool {
	return slices.ContainsFunc(graphRules(), func(r diag.RuleInfo) bool { return r.ID == id })
}

// Rules describes every rule whose findings this package makes on its own; those of the YAML reader, of
// conditions and of templates are described by their packages.
func Rules() []diag.RuleInfo {
	return append(shapeRules(), append(referenceRules(), graphRules()...)...)
}

func shapeRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleMissingField, Title: "A required field is missing", Severity: diag.Error,
			Why:  "The standard requires this field. Without it the file is no agent, and no runtime may run it.",
			Bad:  "metadata:\n  id: trade-desk\n  name: Trade desk\n  version: \"1.0.0\"\n",
			Good: "metadata:\n  id: trade-desk\n  name: Trade desk\n  version: \"1.0.0\"\n  description: Places orders.\n",
			Spec: "Agent Format 1.0, field reference",
		},
		{
			ID: ruleWrongType, Title: "A value has the wrong type", Severity: diag.Error,
			Why: "The field takes values of another type. Mind the quotes: `\"1.0.0\"` is text, `1.0` is a number, `yes` is text in YAML 1.2, " +
				"and a key with nothing behind it has the value null.",
			Bad: "approval: yes\n", Good: "approval: true\n", Spec: "Agent Format 1.0, field reference",
		},
		{
			ID: ruleInvalidValue, Title: "A value is outside of what the field takes", Severity: diag.Error,
			Why: "The type is right, the value is not: a text that does not follow the pattern, a number out of bounds, an empty list or text, " +
				"a word that is not on the list.",
			Bad: "local_tools:\n  - alias: send-mail\n", Good: "local_tools:\n  - alias: send_mail\n", Spec: "Agent Format 1.0, field reference",
		},
		{
			ID: ruleUnknownOperator, Title: "A matcher uses an operator that does not exist", Severity: diag.Error,
			Why: "Matchers know " + condition.OperatorList() + ". An operator that is ignored would loosen the gate, so " +
				"the standard closes this one object: the file is refused. For equality write the value itself.",
			Bad: "args_match:\n  currency: {eq: USD}\n", Good: "args_match:\n  currency: USD\n", Spec: "Agent Format 1.0, matchers",
		},
		{
			ID: ruleNonFinite, Title: "A number is not finite", Severity: diag.Error,
			Why:  "`.inf` and `.nan` are no JSON and compare with nothing, so a condition on them could never be told.",
			Bad:  "args_match:\n  amount: {gt: .inf}\n",
			Good: "args_match:\n  amount: {gt: 1000000}\n", Spec: "docs/design/001-semantics.md",
		},
		{
			ID: ruleUnknownField, Title: "The format knows no such field here", Severity: diag.Warning,
			Why: "Runtimes ignore fields that they do not know. A misspelt `aproval: true` therefore asks nobody. Correct the name, move the " +
				"field to where it belongs, or start it with `x-` if it is your own. `--strict` makes this an error. An approval object " +
				"of which no field is known asks always.",
			Bad: "local_tools:\n  - alias: pay\n    descripton: Pays invoices.\n", Good: "local_tools:\n  - alias: pay\n    description: Pays invoices.\n",
			Spec: "Agent Format 1.0, schema overview, rules 1-3",
		},
		{
			ID: ruleRenamedField, Title: "The field has a new name", Severity: diag.Error,
			Why: "`allow_tools` became `allowed_tools` and `allow_skills` became `allowed_skills`. Under the old name the list is ignored, " +
				"and with it every approval inside: any tool of the server could be called. assent asks for every call until it is renamed.",
			Bad:  "mcp_servers:\n  - alias: crm\n    allow_tools: [get_user]\n",
			Good: "mcp_servers:\n  - alias: crm\n    allowed_tools: [get_user]\n", Spec: "Agent Format 1.0, change of 2026-03-10; docs/design/001-semantics.md",
		},
		{
			ID: ruleUnsupportedVersion, Title: "The file is of another major version", Severity: diag.Error,
			Why: "Major versions of the format may change what a field means, so a file of one that assent does not know is refused.",
			Bad: "schema_version: \"2.0.0\"\n", Good: "schema_version: \"1.0.0\"\n", Spec: "Agent Format, schema registry",
		},
		{
			ID: ruleNewerVersion, Title: "The file is of a newer minor version", Severity: diag.Warning,
			Why: "Minor versions only add. What this one adds is unknown here: it is not read, and it may ask for more care than assent sees.",
			Bad: "schema_version: \"1.4.0\"\n", Good: "schema_version: \"1.0.0\"\n", Spec: "Agent Format, schema registry",
		},
		{
			ID: ruleDuplicateAlias, Title: "Two entries of a list have the same alias", Severity: diag.Error,
			Why: "An alias names one entry. With two, nobody can tell whose approval holds; the standard makes runtimes refuse the file.",
			Bad: "local_tools:\n  - alias: pay\n    approval: true\n  - alias: pay\n", Good: "local_tools:\n  - alias: pay\n    approval: true\n  - alias: refund\n",
			Spec: "Agent Format 1.0, action space",
		},
	}
}

func referenceRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleUnknownPolicy, Title: "The execution policy is not one of the standard", Severity: diag.Warning,
			Why: "The standard has six policies, `agf.*`; vendors name theirs `x-<vendor>.*`. Any other id is most likely misspelt, and its " +
				"config goes unchecked.",
			Bad: "execution_policy:\n  id: agf.reactt\n", Good: "execution_policy:\n  id: agf.react\n", Spec: "Agent Format 1.0, execution policies",
		},
		{
			ID: ruleUnknownAgent, Title: "An execution policy names an agent that local_agents does not have", Severity: diag.Error,
			Why: "Steps, routes, batches and output_from name sub-agents by the alias of an entry of `local_agents`. Remote agents can't be " +
				"steps; they are reached from agf.react.",
			Bad:  "steps:\n  - agent: reseacher   # local_agents has researcher\n",
			Good: "steps:\n  - agent: researcher\n", Spec: "Agent Format 1.0, execution policies",
		},
		{
			ID: ruleInvalidPath, Title: "A text is no path expression", Severity: diag.Error,
			Why: "Paths read `source.direction.field`: `parent.input.query`, `researcher.output.result`. Each segment is letters, digits and " +
				"`_`, so a field that a path reads needs such a name too.",
			Bad: "input_mapping:\n  query: parent.query\n", Good: "input_mapping:\n  query: parent.input.query\n", Spec: "Agent Format 1.0, path expressions",
		},
		{
			ID: ruleUnknownSource, Title: "A path reads something that does not exist yet", Severity: diag.Error,
			Why: "A path may read the parent's input and the steps that have run before. Agents that run at the same time, later steps and the " +
				"parent's own output have nothing to give.",
			Bad:  "steps:\n  - agent: writer\n    input_mapping: {research: researcher.output.result}\n  - agent: researcher\n",
			Good: "steps:\n  - agent: researcher\n  - agent: writer\n    input_mapping: {research: researcher.output.result}\n",
			Spec: "Agent Format 1.0, path expressions",
		},
		{
			ID: ruleStrayIteration, Title: "A path walks a list outside of a batch", Severity: diag.Error,
			Why: "`[]` means: once for each item. Only agf.batch does that; a condition that walks a list can't be told. In the mapping of " +
				"another policy this is a warning.",
			Bad:  "when:\n  args_match:\n    parent.input.items.[].kind: urgent\n",
			Good: "when:\n  args_match:\n    parent.input.kind: urgent\n", Spec: "Agent Format 1.0, path expressions",
		},
		{
			ID: ruleBatchIteration, Title: "A batch walks no list", Severity: diag.Error,
			Why: "agf.batch runs its agent once for each item of a list. At least one path of its input_mapping must name that list with `[]`.",
			Bad: "input_mapping:\n  order: parent.input.orders\n", Good: "input_mapping:\n  order: parent.input.orders.[].id\n",
			Spec: "Agent Format 1.0, agf.batch",
		},
		{
			ID: ruleIdleOutput, Title: "output_from names an agent that does not run", Severity: diag.Error,
			Why: "The agent is declared, but no step runs it, so there is no output to take.",
			Bad: "steps:\n  - agent: researcher\noutput_from: writer\n", Good: "steps:\n  - agent: researcher\n  - agent: writer\noutput_from: writer\n",
			Spec: "Agent Format 1.0, output_from",
		},
		{
			ID: ruleKeywordClash, Title: "output_from is a keyword and an alias", Severity: diag.Warning,
			Why: "A bare `last`, `first` or `merge` is the strategy, even if an agent has that alias. The object form says which one is meant.",
			Bad: "output_from: last   # local_agents has an agent last\n", Good: "output_from: {agent: last}\n",
			Spec: "Agent Format 1.0, output_from",
		},
	}
}

func graphRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: ruleUnreadable, Title: "The agent file can't be read", Severity: diag.Error,
			Why:  "Nothing can be said about an agent whose file is missing or unreadable.",
			Spec: "docs/design/001-semantics.md",
		},
		{
			ID: ruleMissingAgent, Title: "The file of a sub-agent is missing or unreadable", Severity: diag.Error,
			Why: "A source of type file is a path relative to the file that names it. Without the sub-agent its tools and approvals are " +
				"unknown, so the whole graph is refused.",
			Bad:  "local_agents:\n  - alias: writer\n    source: ./agents/writter.agf.yaml\n",
			Good: "local_agents:\n  - alias: writer\n    source: ./agents/writer.agf.yaml\n", Spec: "Agent Format 1.0, local_agents; docs/design/001-semantics.md",
		},
		{
			ID: ruleOutside, Title: "The source of a sub-agent leads outside", Severity: diag.Error,
			Why: "Sub-agents are read from the folder that is checked and from nowhere else: no absolute paths, no addresses, no `..` out of " +
				"it. For other places use the source type `registry` or one of the runtime.",
			Bad:  "local_agents:\n  - alias: writer\n    source: /etc/agents/writer.agf.yaml\n",
			Good: "local_agents:\n  - alias: writer\n    source: ./agents/writer.agf.yaml\n", Spec: "docs/design/001-semantics.md",
		},
		{
			ID: ruleTooDeep, Title: "Sub-agents are nested too deep", Severity: diag.Error,
			Why:  "More than 16 files below each other are taken for a mistake and not followed.",
			Spec: "docs/design/001-semantics.md",
		},
		{
			ID: ruleCycle, Title: "Sub-agents delegate in a circle", Severity: diag.Error,
			Why: "An agent that leads back to itself can delegate without end. Break the circle; the message shows the way round.",
			Bad: "# a.agf.yaml\nlocal_agents:\n  - alias: b\n    source: b.agf.yaml   # which names a.agf.yaml\n", Good: "# a.agf.yaml\nlocal_agents:\n  - alias: b\n    source: b.agf.yaml   # which names no parent\n",
			Spec: "Agent Format 1.0, local_agents",
		},
		{
			ID: ruleDelegationDepth, Title: "Sub-agents are deeper than max_delegation_depth", Severity: diag.Warning,
			Why:  "The limit lets the run delegate less deep than the files provide for, so the lowest agents are never reached.",
			Bad:  "constraints:\n  limits:\n    max_delegation_depth: 0\naction_space:\n  local_agents:\n    - alias: writer\n      source: writer.agf.yaml\n",
			Good: "constraints:\n  limits:\n    max_delegation_depth: 1\naction_space:\n  local_agents:\n    - alias: writer\n      source: writer.agf.yaml\n",
			Spec: "Agent Format 1.0, constraints.limits",
		},
	}
}
