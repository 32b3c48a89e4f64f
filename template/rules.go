package template

import "github.com/assent-dev/assent/diag"

const (
	ruleLogic      = "template-logic"
	ruleUnbalanced = "template-unbalanced"
	ruleEmptyTag   = "template-empty-tag"
	ruleName       = "template-name"
	ruleRaw        = "template-raw-variable"
	ruleEmpty      = "template-empty"
	ruleTooLong    = "template-too-long"
	ruleInvisible  = "template-invisible-character"
)

const specRendering = "Agent Format, HITL: message templates"

// severityOf is the severity of what the tokenizer reports.
func severityOf(rule string) diag.Severity {
	if rule == ruleRaw || rule == ruleInvisible {
		return diag.Warning
	}
	return diag.Error
}

// Rules describes the rule ids that Parse uses as Problem.Code.
func Rules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID:       ruleLogic,
			Title:    "message template uses mustache logic",
			Severity: diag.Error,
			Spec:     specRendering,
			Why: "Message templates only replace variables. Sections, partials, comments and changes of delimiters " +
				"are not run: the " +
				"approver would read them as raw text. Decide with `condition`; give two cases two rules with two " +
				"messages.",
			Bad:  example("{{#tool_args.urgent}}Urgent: {{/tool_args.urgent}}pay {{tool_args.amount}}"),
			Good: example("Pay {{tool_args.amount}} (urgent: {{tool_args.urgent}})"),
		},
		{
			ID:       ruleUnbalanced,
			Title:    "message template has unbalanced braces",
			Severity: diag.Error,
			Spec:     specRendering,
			Why: "A tag that is not opened or not closed is no variable, so the approver reads the braces and not " +
				"the value. A variable " +
				"starts and ends with two braces on the same line. Put a space between braces that are meant as text.",
			Bad:  example("Pay {{tool_args.amount} now"),
			Good: example("Pay {{tool_args.amount}} now"),
		},
		{
			ID:       ruleEmptyTag,
			Title:    "message template has a tag without a name",
			Severity: diag.Error,
			Spec:     specRendering,
			Why:      "`{{}}` names nothing and is shown as it stands. Write the name of a variable between the braces.",
			Bad:      example("Run {{}}?"),
			Good:     example("Run {{tool_name}}?"),
		},
		{
			ID:       ruleName,
			Title:    "message template has a tag that is not a variable's name",
			Severity: diag.Error,
			Spec:     specRendering,
			Why: "A variable is a name, then keys joined by dots: `tool_args.order.amount`; a number is an index " +
				"into a list. There are no " +
				"filters, operators, defaults or spaces in it. Anything else is shown as it stands.",
			Bad:  example("Pay {{tool_args.amount | money}}"),
			Good: example("Pay {{tool_args.amount}}"),
		},
		{
			ID:       ruleRaw,
			Title:    "message template asks for raw output",
			Severity: diag.Warning,
			Spec:     specRendering,
			Why: "`{{{x}}}` and `{{&x}}` mean \"do not escape for HTML\". A message is plain text, and values are " +
				"always made safe to " +
				"show, so both mean the same as `{{x}}`. Write that.",
			Bad:  example("Run {{{tool_args.query}}}?"),
			Good: example("Run {{tool_args.query}}?"),
		},
		{
			ID:       ruleEmpty,
			Title:    "message template is empty",
			Severity: diag.Warning,
			Spec:     specRendering,
			Why: "An empty template is treated as if it were left out: the approver sees the default message with " +
				"the name of the tool " +
				"and all arguments. Write what is to be approved, or leave the field out.",
			Bad:  example("  "),
			Good: example("Delete {{tool_args.path}}?"),
		},
		{
			ID:       ruleTooLong,
			Title:    "message template is too long",
			Severity: diag.Error,
			Spec:     "docs/design/001-semantics.md",
			Why: "Nobody reads 16 KiB before pressing a button, and the part that matters scrolls away. Such a " +
				"template is not used; the " +
				"default message stands in for it. Say in a few sentences what will happen and what to check.",
			Bad:  "",
			Good: example("Refund {{tool_args.amount}} to {{tool_args.customer}}?"),
		},
		{
			ID:       ruleInvisible,
			Title:    "message template contains an invisible character",
			Severity: diag.Warning,
			Spec:     "docs/design/001-semantics.md",
			Why: "Control characters and those that change the direction of text can make a message read " +
				"differently from what is " +
				"written in the file. They are shown as an escape such as `\\u{202e}`. Most were pasted by " +
				"accident: remove them. " +
				"Line breaks, tabs and the joiners inside emoji are fine.",
			Bad:  example(`Pay \u202e{{tool_args.amount}}`),
			Good: example("Pay {{tool_args.amount}}"),
		},
	}
}

// example is the part of an agent file that a message template stands in.
func example(template string) string {
	return "action_space:\n  local_tools:\n    - alias: pay\n      approval:\n        message_template: \"" +
		template + "\"\n"
}
