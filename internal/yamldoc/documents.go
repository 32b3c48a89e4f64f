package yamldoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// ReadDocument reads a document of ours. Where nothing can be read the document is nil, and
// every error stops.
func ReadDocument(file string, src []byte) (*Document, []diag.Finding) {
	doc, findings := Parse(file, src, Limits{})
	if doc == nil {
		for i := range findings {
			findings[i].Stops = findings[i].Severity == diag.Error
		}
	}

	return doc, findings
}

// CheckVersion judges the schema_version of a document of ours. A major
// version that we don't know may change what a field means, so it
// stops; a minor one only adds. What is no version at all is for the
// JSON Schema to report.
func CheckVersion(root *Node, unsupported, newer string) []diag.Finding {
	n := root.Get("schema_version")
	if n == nil || n.Kind != String {
		return nil
	}
	parts := strings.Split(n.Text, ".")
	if len(parts) != 3 {
		return nil
	}
	switch major, minor := strings.TrimLeft(parts[0], "0"), strings.TrimLeft(parts[1], "0"); {
	case major != "1":
		message := fmt.Sprintf("schema_version %s is of a major version that assent does not know", n.Text)
		return []diag.Finding{Stop(unsupported, n.Range, message, `"1.0.0"`)}
	case minor != "":
		message := fmt.Sprintf(
			"schema_version %s is newer than 1.0; a field that it adds is refused as unknown",
			n.Text,
		)
		return []diag.Finding{Warn(newer, n.Range, message, `"1.0.0", or an assent that knows the newer version`)}
	}

	return nil
}

// Stop makes the finding of an error that stops the load.
func Stop(rule string, at diag.Range, message, expected string) diag.Finding {
	f := Warn(rule, at, message, expected)
	f.Severity, f.Stops = diag.Error, true

	return f
}

// Fail makes the finding of an error that does not stop the load.
func Fail(rule string, at diag.Range, message, expected string) diag.Finding {
	f := Warn(rule, at, message, expected)
	f.Severity = diag.Error

	return f
}

// Warn makes the finding of a warning.
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

// Stopping are the findings that stop.
func Stopping(findings []diag.Finding) []diag.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool { return !f.Stops })
}

// Finish puts the findings of a file into source order.
func Finish(file string, findings []diag.Finding) []diag.Finding {
	diag.Stamp(findings, file)
	diag.Sort(findings)

	return findings
}

// Head is the place to show for something that a mapping lacks: its
// first key.
func Head(n *Node) diag.Range {
	if len(n.Fields) > 0 {
		return n.Fields[0].Key.Range
	}

	return n.Range
}
