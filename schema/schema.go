// Package schema reads an `.agf.yaml` (Agent Format 1.0) into a typed agent with a source range on
// every part, and its local sub-agents into a graph. Our own JSON Schema, which is embedded and
// published for editors, checks the shape of a file. This package checks what a JSON Schema can't
// express: duplicate aliases, references, paths, unknown fields. It makes no decisions about calls.
package schema

import (
	_ "embed"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
)

//go:embed agent.schema.json
var agentSchema string

// compiled is our JSON Schema, compiled on first use.
var compiled = jsonschema.Embedded("agent.schema.json", agentSchema)

// JSON returns our JSON Schema (2020-12) of an agent file, for editors
// and other validators.
func JSON() []byte { return []byte(agentSchema) }

// Parse reads an agent from YAML 1.2 or JSON. The agent is nil exactly
// when some finding stops the load (docs/design/001-semantics.md): it
// is unreadable, breaks the JSON Schema or breaks a MUST rule of the
// standard. Every other finding, an unknown field among them, leaves a
// usable agent. Findings come in source order.
func Parse(file string, src []byte) (*Agent, []diag.Finding) {
	agent, findings := ParseParts(file, src)
	if yamldoc.Stops(findings) {
		agent = nil
	}
	return agent, findings
}

// ParseParts is a variant of Parse for finding mistakes. If findings stop the load, it returns the
// agent without the parts that violate the JSON Schema, and Cut names the blocks concerned. The
// result must not be used for decisions. It is nil if the document can't be read at all.
func ParseParts(file string, src []byte) (*Agent, []diag.Finding) {
	doc, findings := yamldoc.ReadDocument(file, src)
	if doc == nil {
		return nil, yamldoc.Finish(file, findings)
	}
	r := reader{findings: findings}
	r.fields(doc.Root)
	r.version(doc.Root)
	failures, violations := violations(doc.Root, compiled())
	r.add(violations...)
	var cut map[string]bool
	if len(violations) > 0 {
		if doc, cut = sound(doc, failures); doc == nil || len(failures) == 0 {
			return nil, yamldoc.Finish(file, r.findings)
		}
	}
	agent := r.agent(file, doc)
	agent.Cut = cut
	r.check(agent)
	return agent, yamldoc.Finish(file, r.findings)
}

// reader reads one file and collects findings.
type reader struct {
	findings []diag.Finding
	gates    map[*yamldoc.Node][]MisspeltGate // by entry
	lists    map[*yamldoc.Node][]MisspeltList // by entry
	strays   map[string][]MisspeltGate        // see Agent.Strays
}

func (r *reader) add(f ...diag.Finding) { r.findings = append(r.findings, f...) }
