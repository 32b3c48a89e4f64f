package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

// TestOneBlockDoesNotHideTheOthers checks that a violation of the format in one place, and mistakes
// in the rest, are reported in one run.
func TestOneBlockDoesNotHideTheOthers(t *testing.T) {
	const agent = `schema_version: "1.0.0"
metadata: {id: desk, name: 7, description: Trades, lables: {a: b}}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.raect, config: {instructions: Trade., model: any}}
action_space:
  local_tools:
    - alias: wire
      approval: {condition: {args_match: {memo: {pattern: "(?=x)"}}}}
    - alias: 9
      approval: {condition: {args_match: {amount: {gt: 1, lt: 0}}}}
    - alias: pay
      approval: {condition: {args_match: {amount: {gt: 10, lt: 5}}}} # agf-validate: ignore dotted-key -- not judged in a broken file
    - alias: show
      approval: {message_template: "{{tool_args.amount", condition: {args_match: {operation: DELETE}}}
`
	expect(
		t,
		"agent",
		said(lint.New(rules.All(), lint.Options{}).Worker().Agent("a.agf.yaml", []byte(agent), nil).Findings),
		"2 error missing-field",
		"2 error wrong-type",
		"2 warning unknown-field",
		"4 warning unknown-execution-policy",
		"8 error regex-not-re2",
		"9 error wrong-type",
		"12 error condition-unsatisfiable",
		"14 error template-unbalanced",
		"14 warning case-dodged",
	)

	const pol = `schema_version: 1
policy_ref: acme.p
aplies: implicit
rules:
  - {id: one, match: {targets: trade}, approval: {condition: {args_match: {a: {pattern: "("}}}}}
  - {id: two, match: {kinds: [tool], targets: [pay]}, approval: {condition: {args_match: {amount: {gt: 10, lt: 5}}}}}
  - {id: two, match: {kinds: [tool], targets: [wire]}, approval: {condition: {args_match: {memo: {pattern: "(?=x)"}}}}}
`
	expect(
		t,
		"policy",
		said(lint.New(rules.All(), lint.Options{}).Worker().Policy("a.policy.yaml", []byte(pol)).Findings),
		"1 error wrong-type",
		"3 error unknown-field",
		"5 error wrong-type",
		"6 error condition-unsatisfiable",
		"7 error policy-duplicate-rule",
		"7 error regex-not-re2",
	)
}

// TestNoFollowUpsAreInvented replaces each scalar of a valid file by a list. Only the part of the
// file that contains it may have findings.
func TestNoFollowUpsAreInvented(t *testing.T) {
	var files []string
	for _, pattern := range []string{
		"../examples/*/*.agf.yaml",
		"../agent/examples/*/*.agf.yaml",
		"../examples/*/policies/*.policy.yaml",
		"../agent/examples/*/policies/*.policy.yaml",
		"rules/*/good*.yaml",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}

	w := lint.New(rules.All(), lint.Options{}).Worker()
	report := func(file string, src []byte) []diag.Finding {
		if strings.HasSuffix(file, ".policy.yaml") {
			return w.Policy(file, src).Findings
		}
		return w.Agent(file, src, nil).Findings
	}
	broken := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		must.Do(t, err)
		doc, _ := yamldoc.Parse(file, src, yamldoc.Limits{})
		before := report(file, src)
		for _, s := range scalars(doc.Root, nil) {
			text := replaced(src, s.node.Range, "[[]]")
			if text == nil {
				continue
			}
			findings := report(file, text)
			if slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Stops }) {
				broken++
			}
			for _, f := range findings {
				same := func(o diag.Finding) bool { return o.Rule == f.Rule && o.Message == f.Message }
				silenced := strings.Contains(string(src), "ignore "+f.Rule)
				if f.Stops || silenced || slices.ContainsFunc(before, same) || inside(f.Range.Start, s.part) {
					continue
				}
				t.Errorf(
					"%s:%d: a list instead of %q: line %d: %s [%s]",
					file,
					s.node.Range.Start.Line,
					s.node.Text,
					f.Range.Start.Line,
					f.Message,
					f.Rule,
				)
			}
		}
	}

	if broken < 1_000 {
		t.Errorf("only %d files were broken", broken)
	}
}

// scalar is a scalar of a document and the block, or entry of a list in
// a block, that holds it.
type scalar struct {
	node *yamldoc.Node
	part diag.Range
}

func scalars(n *yamldoc.Node, above []diag.Range) []scalar {
	above = append(above[:len(above):len(above)], n.Range)
	if len(n.Items) == 0 && len(n.Fields) == 0 {
		return []scalar{{n, above[min(len(above)-1, 3)]}}
	}
	var all []scalar
	for _, item := range n.Items {
		all = append(all, scalars(item, above)...)
	}
	for _, f := range n.Fields {
		all = append(all, scalars(f.Value, above)...)
	}
	return all
}

// replaced replaces the text of a range on one line. It returns nil if the range has several lines.
func replaced(src []byte, at diag.Range, text string) []byte {
	if at.Start.Line != at.End.Line {
		return nil
	}
	lines := strings.SplitAfter(string(src), "\n")
	line := []rune(lines[at.Start.Line-1])
	lines[at.Start.Line-1] = string(line[:at.Start.Column-1]) + text + string(line[at.End.Column-1:])
	return []byte(strings.Join(lines, ""))
}

func inside(at diag.Position, r diag.Range) bool {
	return at.Line >= r.Start.Line && at.Line <= r.End.Line
}
