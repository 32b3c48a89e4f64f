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
func listings() map[string]condition.Language {
	return map[string]condition.Language{
		"schema/agent.schema.json":  condition.AgentFormat,
		"policy/policy.schema.json": condition.Policy11,
		"docs/contracts/policy.md":  condition.AgentFormat, // the others have a table of their own
	}
}

var (
	operatorSentence = regexp.MustCompile("`gt`(, `[a-z_]+`)+")
	operatorSchema   = regexp.MustCompile(`(?m)^( *)"gt": \{.*\}(,\n *"[a-z_]+": \{.*\})+$`)
)

// list writes the operators of a language into a text that lists them.
func list(text string, language condition.Language) string {
	text = operatorSentence.ReplaceAllLiteralString(text, condition.OperatorList(language))
	return operatorSchema.ReplaceAllStringFunc(text, func(old string) string {
		indent := old[:strings.IndexByte(old, '"')]
		var lines []string
		for _, o := range condition.Operators(language) {
			lines = append(lines, indent+o.Schema())
		}
		return strings.Join(lines, ",\n")
	})
}

// writeListings brings the listings up to date. The linter reads the
// JSON Schemas when it is built, so pages that show what it prints are
// right from the next run on.
func writeListings() error {
	for file, language := range listings() {
		old, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a list of operators: %w", err)
		}
		if err := os.WriteFile(file, []byte(list(string(old), language)), 0o644); err != nil {
			return fmt.Errorf("write a list of operators: %w", err)
		}
	}

	return nil
}
