package yamldoc

import (
	"slices"

	"github.com/assent-dev/assent/diag"
)

// Stop returns a finding of an error that stops the load.
func Stop(rule string, at diag.Range, message, expected string) diag.Finding {
	f := Warn(rule, at, message, expected)
	f.Severity, f.Stops = diag.Error, true

	return f
}

// Fail returns a finding of an error that does not stop the load.
func Fail(rule string, at diag.Range, message, expected string) diag.Finding {
	f := Warn(rule, at, message, expected)
	f.Severity = diag.Error

	return f
}

// Warn returns a finding of a warning.
func Warn(rule string, at diag.Range, message, expected string) diag.Finding {
	return diag.Finding{
		Rule:     rule,
		Severity: diag.Warning,
		Range:    at,
		Message:  message,
		Expected: expected,
	}
}

// Stops reports whether a finding stops the load.
func Stops(findings []diag.Finding) bool {
	return slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Stops })
}

// Stopping returns the findings that stop the load.
func Stopping(findings []diag.Finding) []diag.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool { return !f.Stops })
}

// Finish sets the file of findings and sorts them in source order.
func Finish(file string, findings []diag.Finding) []diag.Finding {
	diag.Stamp(findings, file)
	diag.Sort(findings)

	return findings
}

// Head returns the range for a finding about a missing field of a mapping: its first key.
func Head(n *Node) diag.Range {
	if len(n.Fields) > 0 {
		return n.Fields[0].Key.Range
	}

	return n.Range
}
