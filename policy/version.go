package policy

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

// needs11 is what a finding expects about a part of a policy that version 1.0 does not have.
const needs11 = `needs schema_version "1.1.0"`

// isPolicy11 reports whether a policy may use the fields and operators of version 1.1: its
// schema_version is 1.N.z with N at least 1.
func isPolicy11(root *yamldoc.Node) bool { return yamldoc.AtLeastMinor(root, 1) }

// fields11 lists the fields that version 1.1 adds to parts of a rule.
var fields11 = map[string][]string{
	"":        {"when", "unknown"},
	"match":   {"server_refs", "takes", "except"},
	"require": {"any_of", "reason"},
}

// newerFields reports the fields of version 1.1 in a policy of version 1.0. It returns them too, so
// that nothing in them is reported again.
func newerFields(root *yamldoc.Node) (found []diag.Finding, fields []*yamldoc.Node) {
	if isPolicy11(root) {
		return nil, nil
	}
	for i, rule := range items(root.Get("rules")) {
		for part, names := range fields11 {
			of, at := rule, fmt.Sprintf("rules[%d]", i)
			if part != "" {
				of, at = rule.Get(part), at+"."+part
			}
			if of == nil {
				continue
			}
			for _, f := range of.Fields {
				if slices.Contains(names, f.Key.Text) {
					found = append(found, yamldoc.Stop(
						schema.UnknownField, f.Key.Range, fmt.Sprintf("%s: unknown field %q", at, f.Key.Text), needs11,
					))
					fields = append(fields, f.Value)
				}
			}
		}
	}

	return found, fields
}
