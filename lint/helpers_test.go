package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

// head starts every agent of these tests; the body of a test begins in
// line 5.
const head = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
`

// said returns the findings as text, one line each: line, severity, rule.
func said(findings []diag.Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%d %s %s", f.Range.Start.Line, f.Severity, f.Rule))
	}
	return lines
}

// agent lints the body of an agent with all rules.
func agent(t *testing.T, body string, opt lint.Options) diag.Report {
	t.Helper()
	return lint.New(rules.All(), opt).Worker().Agent("clerk.agf.yaml", []byte(head+body), nil)
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
