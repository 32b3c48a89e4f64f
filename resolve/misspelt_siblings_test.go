package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// TestSiblingsOfAMisspeltGate checks the table of docs/design/020-misspelt-gates.md: the ways in
// which a gate can be unreadable, the finding for each, and the decision about a call of the tool
// a.
func TestSiblingsOfAMisspeltGate(t *testing.T) {
	const refused, allow, always = "refused", "allow", "ask always"
	const ask = "ask approval_misspelt"
	tool := func(fields string) string {
		return misspeltHead + "action_space: {local_tools: [{alias: a, " + fields + "}]}\n"
	}
	plain := misspeltHead + "action_space: {local_tools: [{alias: a}]}\n"
	in := func(from, to string) string { return strings.Replace(plain, from, to, 1) }
	for _, test := range []struct{ name, text, rule, want string }{
		{"a merge key", "x-defaults: &d {approval: true}\n" + tool("<<: *d"), "yaml-merge-key", refused},
		{"an anchor", tool("approval: &x true"), "", always},
		{"an entry that is an alias", misspeltHead + "x-tool: &t {alias: a, aproval: true}\naction_space: " +
			"{local_tools: [*t]}\n",
			"approval-misplaced", ask},
		{"the right one twice", tool("approval: false, approval: true"), "yaml-duplicate-key", refused},
		{"a misspelt one twice", tool("aproval: false, aproval: true"), "yaml-duplicate-key", refused},
		{"a key that is a number", tool("1: true"), "yaml-key", refused},
		{"a key that YAML 1.1 takes for a boolean", tool("on: true"), "yaml-key", refused},
		{"a key that is an alias", "x-a: &k approval\n" + tool("*k : true"), "yaml-key", refused},
		{"a key that is a list", tool("? [approval]\n: true"), "yaml-key", refused},
		{"a key with an anchor", tool("&k aproval: true"), "approval-misplaced", ask},
		{"a key with a tag", tool("!!str aproval: true"), "approval-misplaced", ask},
		{"a key in single quotes", tool("'aproval': true"), "approval-misplaced", ask},
		{"an explicit key", tool("? aproval : true"), "approval-misplaced", ask},
		{"a space behind", tool(`"approval ": true`), "approval-misplaced", ask},
		{"a space that breaks no line", tool(`"approval\u00a0": true`), "approval-misplaced", ask},
		{"no width", tool(`"approval\u200b": true`), "approval-misplaced", ask},
		{"a Cyrillic letter", tool("\u0430pproval: true"), "approval-misplaced", ask},
		{"full width", tool("\uff41\uff50\uff50\uff52\uff4f\uff56\uff41\uff4c: true"), "approval-misplaced", ask},
		{"a byte order mark", tool(`"\ufeffapproval": true`), "approval-misplaced", ask},
		{"text as a value", tool(`approval: "true"`), "wrong-type", refused},
		{"no value", tool("approval: "), "wrong-type", refused},
		{"a number as a value", tool("approval: 1"), "wrong-type", refused},
		{"a list as a value", tool("approval: [true]"), "wrong-type", refused},
		{"a tag that changes the type", tool("approval: !!str true"), "yaml-tag", refused},
		{"a mapping where the list is", misspeltHead + "action_space: {local_tools: {a: {approval: " +
			"true}}}\n", "wrong-type", refused},
		{"at the top", plain + "approval: true\n", "approval-misplaced", ask},
		{"on the action space", in("action_space: {", "action_space: {approval: true, "), "approval-misplaced", ask},
		{"in constraints", plain + "constraints: {approval: true}\n", "approval-misplaced", ask},
		{"in a limit", plain + "constraints: {limits: {hitl: true}}\n", "approval-misplaced", ask},
		{"in memory", plain + "memory: {require_approval: true}\n", "approval-misplaced", ask},
		{"in the interface", in("interface: {", "interface: {approval: true, "), "approval-misplaced", ask},
		{"in the execution policy", in("execution_policy: {", "execution_policy: {approval: true, "+
			""), "approval-misplaced", ask},
		{"in its config", in("config: {", "config: {human_approval: true, "), "approval-misplaced", ask},
		{"in an unknown list of its config", in("config: {", "config: {tools: [{name: a, approval: true}], "),
			"approval-misplaced", ask},
		{"in a vendor's config", strings.Replace(in("config: {", "config: {approval: true, "+
			""), "agf.react", "x-acme.run", 1),
			"", allow},
		{"in metadata", in("metadata: {", "metadata: {approval: true, "), "", allow},
		{"in labels", in("metadata: {", `metadata: {labels: {approval: required}, `), "", allow},
		{"an argument of that name", tool("input_schema: {type: object, properties: {approval: {type: " +
			"boolean}}}"), "", allow},
		{"an extension", tool("x-approval: true"), "", allow},
		{"an extension by a Cyrillic letter", tool("\u0445-approval: true"), "approval-misplaced", ask},
		{"a capital extension", tool("X-approval: true"), "approval-misplaced", ask},
		{"in an approval that has a condition", tool("approval: {condition: {args_match: {n: 5}}, aproval: " +
			"true}"), "",
			"ask condition_unknown"},
		{"in an approval that has nothing", tool("approval: {conditions: {args_match: {n: 5}}}"), "", always},
		{"a top-level list with another name", in("action_space: {", "x: 1\naction_space: {") + "tools: [{id: " +
			"a, approval: true}]\n",
			"approval-misplaced", ask},
		{"a list with the name in another case", plain + "tools: [{name: A, approval: " +
			"true}]\n", "approval-misplaced", ask},
		{"a misspelt action space beside it", plain + "actionspace: {local_tools: [{alias: a, approval: true}]}\n",
			"approval-misplaced", ask},
		{"an unknown field without a gate", plain + "tools: [{name: a, description: Works.}]\n", "", allow},
		{"two documents", plain + "---\napproval: true\n", "yaml-documents", refused},
	} {
		agent, findings := schema.Parse("a.agf.yaml", []byte(test.text))
		if reported := slices.ContainsFunc(findings, func(f diag.Finding) bool {
			return f.Severity == diag.Error && (f.Rule == test.rule || test.rule == "")
		}); reported != (test.rule != "") {
			t.Errorf("%s: %v", test.name, findings)
		}
		got := refused
		if agent != nil {
			plan, err := resolve.Compile(agent, nil, resolve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, got, _ = strings.Cut(shortOutcomes(plan, "tool a"), ": ")
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s\n%s", test.name, got, test.want, test.text)
		}
	}
}
