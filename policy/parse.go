package policy

import (
	_ "embed"
	"slices"

	"github.com/assent-dev/assent/condition"
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

// Parse reads one policy document from YAML 1.2 or JSON. The policy is nil exactly if a finding
// stops the load. Unlike in an agent file, an unknown field stops the load of a policy: the format
// is our own, and skipping a field could loosen. Findings are in source order.
func Parse(file string, src []byte) (*Policy, []diag.Finding) {
	p, findings := ParseParts(file, src)
	if yamldoc.Stops(findings) {
		p = nil
	}
	return p, findings
}

// ParseParts is a variant of Parse for finding mistakes. If findings stop the load, it returns the
// policy without the broken rules, which must not be used for decisions. It returns nil if the
// document can't be read, or is broken outside of the rules.
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

// form reports a document that is not a policy at all with a single finding.
var form = yamldoc.Form{
	Marks:       []string{"policy_ref", "rules"},
	Foreign:     foreign,
	Unsupported: ruleUnsupportedVersion,
	Newer:       ruleNewerVersion,
	Minor:       1,
}

// reader reads one document and collects findings.
type reader struct {
	findings  []diag.Finding
	operators condition.Language // of conditions
}

func (r *reader) add(fs ...diag.Finding) { r.findings = append(r.findings, fs...) }

// document reads a policy in two steps: first it checks each value, then whether the values are
// consistent. If the document is broken, the second step checks only the valid rules.
func (r *reader) document(file string, doc *yamldoc.Document) *Policy {
	if isPolicy11(doc.Root) {
		r.operators = condition.Policy11
	}
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

// sound returns a document without the rules and the top-level fields that a finding stops. It
// returns nil if no policy_ref or no rule is left.
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

// foreign describes the kind of document that was found instead of a policy, and how its parts are
// written in one.
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

// homeMade suggests our fields for fields of common self-made policy formats. The standard names
// some of them as examples.
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

// shape checks every value against the JSON Schema. If the author's intention is known, a specific
// finding replaces the schema's general one.
func (r *reader) shape(root *yamldoc.Node) {
	own, excused := mistakes(root), followUps(root)
	newer, fields := newerFields(root)
	own = append(append(own, newer...), r.newerOperators(root)...)
	taken := map[diag.Position]bool{}
	for _, f := range own {
		taken[f.Range.Start] = true
	}
	r.add(own...)
	violations := schema.Violations(root, compiled())
	for _, f := range violations {
		reported := taken[f.Range.Start] || lacksEffect(&f) && excused[f.Range.Start] ||
			slices.ContainsFunc(fields, func(n *yamldoc.Node) bool { return within(f.Range.Start, n.Range) })
		if !reported {
			r.add(f)
		}
	}
	if !yamldoc.Stops(r.findings) {
		r.add(violations...)
	}
}

// newerOperators reports operators of version 1.1 in a policy of version 1.0.
func (r *reader) newerOperators(root *yamldoc.Node) []diag.Finding {
	if r.operators == condition.Policy11 {
		return nil
	}
	var found []diag.Finding
	for _, rule := range items(root.Get("rules")) {
		found = append(found, schema.NewerOperators(rule.Get("approval").Get("condition"), needs11)...)
	}
	return found
}

// digest returns the digest of the canonical form of the content, so comments, quotes and line ends
// don't change it. Only policies that don't load may have no canonical form; their digest is that
// of the source text.
func digest(doc *yamldoc.Document, src []byte) value.Digest {
	content, err := value.FromGo(doc.Root.Any(), value.Limits{MaxBytes: 1 << 30})
	if err != nil {
		return value.SumCanonical(src)
	}
	return content.Digest()
}
