package policy

import (
	_ "embed"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

//go:embed policy.schema.json
var policySchema string

// compiled is our JSON Schema, compiled on first use.
var compiled = jsonschema.Embedded("policy.schema.json", policySchema)

// JSON returns our JSON Schema (2020-12) of a policy document, for
// editors and other validators.
func JSON() []byte { return []byte(policySchema) }

// Parse reads one policy document from YAML 1.2 or JSON. The policy is
// nil exactly when some finding stops the load. Unlike an agent's, a
// policy's unknown fields do: the format is ours, and a field that is
// skipped could loosen. Findings come in source order.
func Parse(file string, src []byte) (*Policy, []diag.Finding) {
	p, findings := ParseParts(file, src)
	if yamldoc.Stops(findings) {
		p = nil
	}
	return p, findings
}

// ParseParts is Parse for those who look for mistakes. When findings
// stop the load it returns what is left of the policy without the rules
// that are broken: nothing may be decided from it. It is nil when the
// document can't be read, or is broken elsewhere.
func ParseParts(file string, src []byte) (*Policy, []diag.Finding) {
	doc, findings := form.Read(file, src)
	r := reader{findings: findings}
	var p *Policy
	if doc != nil {
		p = r.document(file, doc)
	}
	if p != nil {
		p.Digest = digest(doc, src)
	}
	return p, yamldoc.Finish(file, r.findings)
}

// form refuses what is no policy with one finding.
var form = yamldoc.Form{
	Marks:       []string{"policy_ref", "rules"},
	Foreign:     foreign,
	Unsupported: ruleUnsupportedVersion,
	Newer:       ruleNewerVersion,
}

// reader reads one document and collects what it finds.
type reader struct {
	findings []diag.Finding
}

func (r *reader) add(fs ...diag.Finding) { r.findings = append(r.findings, fs...) }

// document reads a policy in two steps: is every value what it should
// be, do the values make sense together. Of a broken document the sound
// rules take the second step.
func (r *reader) document(file string, doc *yamldoc.Document) *Policy {
	if r.shape(doc.Root); yamldoc.Stops(r.findings) {
		if doc = r.sound(doc); doc == nil {
			return nil
		}
	}
	p := r.policy(doc.Root)
	p.File, p.Doc = file, doc
	r.check(p)
	return p
}

// sound returns a document without the rules and the top-level fields
// that a finding stops, nil when there is no policy_ref or no rule
// left.
func (r *reader) sound(doc *yamldoc.Document) *yamldoc.Document {
	rules := doc.Root.Get("rules")
	if rules == nil || doc.Root.Get("policy_ref") == nil {
		return nil
	}
	stopped := func(n diag.Range) bool {
		return slices.ContainsFunc(
			r.findings,
			func(f diag.Finding) bool { return f.Stops && within(f.Range.Start, n) },
		)
	}
	left := *rules
	left.Items = slices.DeleteFunc(
		slices.Clone(rules.Items),
		func(n *yamldoc.Node) bool { return stopped(n.Range) },
	)
	if len(left.Items) == 0 {
		return nil
	}
	root := *doc.Root
	root.Fields = nil
	for _, f := range doc.Root.Fields {
		switch {
		case f.Key.Text == "rules":
			f.Value = &left
		case f.Key.Text != "policy_ref" && stopped(f.Value.Range):
			continue
		}

		root.Fields = append(root.Fields, f)
	}

	return &yamldoc.Document{File: doc.File, Root: &root, Comments: doc.Comments}
}

// within reports whether a place lies in a range.
func within(at diag.Position, r diag.Range) bool {
	after := at.Line > r.Start.Line || at.Line == r.Start.Line && at.Column >= r.Start.Column
	return after && (at.Line < r.End.Line || at.Line == r.End.Line && at.Column < r.End.Column)
}

// foreign says what a document seems to be instead of a policy, and how
// its parts are written in one.
func foreign(root *yamldoc.Node) diag.Finding {
	f := yamldoc.Stop(
		ruleForeign,
		yamldoc.Head(root),
		"this is no assent policy: it has neither policy_ref nor rules",
		`schema_version: "1.0.0", policy_ref and rules; print the format with "agf-validate schema policy"`,
	)
	if root.Get("action_space") != nil || root.Get("execution_policy") != nil || root.Get("metadata") != nil {
		f.Message = "this is an agent, not a policy"
		f.Expected = "a policy here; agents are files that end in .agf.yaml"
	}
	for _, field := range root.Fields {
		if hint := homeMade(field.Key.Text); hint != "" {
			f.Related = append(f.Related, diag.Related{Range: field.Key.Range, Message: hint})
		}
	}
	return f
}

// homeMade translates fields of policy formats that people have written
// themselves. The standard names some of them as examples.
func homeMade(key string) string {
	switch key {
	case "name", "id":
		return "the name is `policy_ref` here"
	case "deny_tools", "denied_tools", "forbidden_tools":
		return "written as a rule: {id: …, match: {targets: […]}, deny: why}"
	case "approval_tools", "approve_tools", "require_approval":
		return "written as a rule: {id: …, match: {targets: […]}, approval: true}"
	case "redact":
		return "written in a rule: require: {arguments: {redact: [paths]}}"
	}

	return ""
}

// shape checks every value against the JSON Schema. Where we know what
// the author meant, our own finding takes the place of the general one.
func (r *reader) shape(root *yamldoc.Node) {
	own, excused := mistakes(root), followUps(root)
	taken := map[diag.Position]bool{}
	for _, f := range own {
		taken[f.Range.Start] = true
	}
	r.add(own...)
	violations := schema.Violations(root, compiled())
	for _, f := range violations {
		if !taken[f.Range.Start] && !(lacksEffect(&f) && excused[f.Range.Start]) {
			r.add(f)
		}
	}
	if !yamldoc.Stops(r.findings) {
		r.add(violations...)
	}
}

// digest is taken of the canonical form of the content, so comments,
// quotes and line ends don't change it. Content without a canonical
// form, which only policies that don't load have, is digested as it is
// written.
func digest(doc *yamldoc.Document, src []byte) value.Digest {
	content, err := value.FromGo(doc.Root.Any(), value.Limits{MaxBytes: 1 << 30})
	if err != nil {
		return value.SumCanonical(src)
	}
	return content.Digest()
}
