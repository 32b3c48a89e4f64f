package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/assent-dev/assent/condition"
)

// listings are the files that list the operators of args_match, in a
// sentence or in a JSON Schema.
func listings() []string {
	return []string{"schema/agent.schema.json", "policy/policy.schema.json", "docs/contracts/policy.md"}
}

var (
	operatorSentence = regexp.MustCompile("`gt`(, `[a-z_]+`)+")
	operatorSchema   = regexp.MustCompile(`(?m)^( *)"gt": \{.*\}(,\n *"[a-z_]+": \{.*\})+$`)
)

// list writes the operators into a text that lists them.
func list(text string) string {
	text = operatorSentence.ReplaceAllLiteralString(text, condition.OperatorList())
	return operatorSchema.ReplaceAllStringFunc(text, func(old string) string {
		indent := old[:strings.IndexByte(old, '"')]
		var lines []string
		for _, o := range condition.Operators() {
			lines = append(lines, indent+o.Schema())
		}
		return strings.Join(lines, ",\n")
	})
}

// writeListings brings the listings up to date. The linter reads the
// JSON Schemas when it is built, so pages that show what it prints are
// right from the next run on.
func writeListings() error {
	for _, file := range listings() {
		old, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a list of operators: %w", err)
		}
		if err := os.WriteFile(file, []byte(list(string(old))), 0o644); err != nil {
			return fmt.Errorf("write a list of operators: %w", err)
		}
	}

	return nil
}
