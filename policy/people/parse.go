package people

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

//go:embed people.schema.json
var peopleSchema string

// compiled is the JSON Schema, compiled on first use.
var compiled = jsonschema.Embedded("people.schema.json", peopleSchema)

// JSON returns the JSON Schema (2020-12) of people.yaml, for editors and other validators.
func JSON() []byte { return []byte(peopleSchema) }

// Parse reads a people.yaml. The directory is nil if and only if a finding stops the load, because
// a partly understood file could let the wrong people answer. Findings are in source order.
func Parse(file string, src []byte) (*Directory, []diag.Finding) {
	doc, findings := form.Read(file, src)
	r := reader{findings: findings}
	if doc != nil {
		r.findings = append(r.findings, schema.Violations(doc.Root, compiled())...)
	}
	if !yamldoc.Stops(r.findings) {
		r.check(doc.Root)
	}
	findings = yamldoc.Finish(file, r.findings)
	if yamldoc.Stops(findings) {
		return nil, findings
	}
	return directory(doc.Root), findings
}

// form refuses a document that is not a directory with a single finding.
var form = yamldoc.Form{
	Marks: []string{"people", "groups"},
	Foreign: func(root *yamldoc.Node) diag.Finding {
		return yamldoc.Stop(
			ruleForeign,
			yamldoc.Head(root),
			"this is no directory of people: it has no list of people",
			`schema_version: "1.0.0" and people`,
		)
	},
	Unsupported: ruleUnsupportedVersion,
	Newer:       ruleNewerVersion,
}

// reader reads one document and collects findings.
type reader struct {
	findings []diag.Finding
}

func (r *reader) add(f diag.Finding) { r.findings = append(r.findings, f) }

// check checks what the JSON Schema can't express.
func (r *reader) check(root *yamldoc.Node) {
	for _, n := range items(root.Get("blocked")) {
		if message, expected := IdentityProblem(n.Text); message != "" {
			r.add(yamldoc.Stop(ruleName, n.Range, message, expected))
		}
	}
	declared := r.declared(root.Get("groups"))
	names := map[string]taken{}
	for _, n := range root.Get("people").Items {
		r.name(names, n, n.Get("id"))
		for _, also := range items(n.Get("also")) {
			r.name(names, n, also)
		}
		if shown := n.Get("name"); shown != nil {
			r.text(shown)
		}
		for _, g := range items(n.Get("groups")) {
			r.group(g, declared)
		}
	}
	r.readers(root, declared)
}

// readers reports the reading groups that no person can be in, because they are probably misspelt. A
// file without declared groups only has the groups of its people.
func (r *reader) readers(root *yamldoc.Node, declared []string) {
	if declared == nil {
		declared = []string{}
		for _, person := range root.Get("people").Items {
			for _, g := range items(person.Get("groups")) {
				declared = append(declared, g.Text)
			}
		}
	}
	for _, g := range items(root.Get("readers")) {
		r.group(g, set(declared))
	}
}

// taken is a name and the person who has it.
type taken struct{ person, name *yamldoc.Node }

// name refuses a name that is invalid or belongs to another person: one human must not be two
// people, and two humans must not be one (threat 22).
func (r *reader) name(names map[string]taken, person, n *yamldoc.Node) {
	if message, expected := IdentityProblem(n.Text); message != "" {
		r.add(yamldoc.Stop(ruleName, n.Range, message, expected))
		return
	}
	first, ok := names[Key(n.Text)]
	if !ok {
		names[Key(n.Text)] = taken{person, n}
		return
	}
	f := yamldoc.Stop(
		ruleDuplicate,
		n.Range,
		fmt.Sprintf("%q is a name of %q already (line %d)", n.Text, first.person.Get("id").Text,
			first.name.Range.Start.Line),
		"each name at one person; case doesn't tell names apart",
	)
	if first.person == person {
		f.Message = fmt.Sprintf("%q stands twice at one person", n.Text)
	}
	f.Related = []diag.Related{{Range: first.name.Range, Message: "first here"}}
	r.add(f)
}

func (r *reader) text(n *yamldoc.Node) bool {
	message, expected := TextProblem(n.Text)
	if message != "" {
		r.add(yamldoc.Stop(ruleName, n.Range, message, expected))
	}
	return message == ""
}

// declared returns the closed list of groups, or nil if the file has none.
func (r *reader) declared(n *yamldoc.Node) []string {
	if n == nil {
		return nil
	}
	names := []string{}
	for _, f := range n.Fields {
		r.text(f.Key)
		names = append(names, f.Key.Text)
	}

	return names
}

func (r *reader) group(n *yamldoc.Node, declared []string) {
	if !r.text(n) || declared == nil || slices.Contains(declared, n.Text) {
		return
	}
	expected := "a group of the list `groups`"
	if len(declared) > 0 && len(declared) <= 10 {
		expected += ": " + strings.Join(declared, ", ")
	}
	f := yamldoc.Stop(ruleUnknownGroup, n.Range, fmt.Sprintf("there is no group %q", n.Text), expected)
	f.Nearest = diag.Nearest(n.Text, declared)
	r.add(f)
}

// entry is a person in the format of the file.
type entry struct {
	Person
	Owns []string `doc:"owns"`
}

// directory reads a document that has passed every check.
func directory(root *yamldoc.Node) *Directory {
	var read struct {
		People  []entry             `doc:"people"`
		Groups  map[string]struct{} `doc:"groups"`
		Blocked []string            `doc:"blocked"`
	}
	yamldoc.Fill(root, &read)
	d := &Directory{names: map[string]int{}, owners: map[string][]string{}, blocked: map[string]bool{}}
	readers := root.Get("readers")
	d.everybody = readers != nil && readers.Text == Everybody
	for _, g := range items(readers) {
		d.readers = append(d.readers, g.Text)
	}
	for _, name := range read.Blocked {
		d.blocked[Key(name)] = true
	}
	read.People = slices.DeleteFunc(read.People, func(p entry) bool { return d.block(p) })
	if read.Groups != nil {
		d.groups = set(slices.Collect(maps.Keys(read.Groups)))
	}
	slices.SortFunc(read.People, func(a, b entry) int { return strings.Compare(a.ID, b.ID) })
	for i, p := range read.People {
		p.Groups = set(p.Groups)
		d.people = append(d.people, p.Person)
		for _, name := range append(p.Also, p.ID) {
			d.names[Key(name)] = i
		}
		for _, agent := range set(p.Owns) {
			d.owners[agent] = append(d.owners[agent], p.ID)
		}
	}

	return d
}

// block reports whether a person in the file has a blocked name, and also blocks their other names.
// They keep owning their agents.
func (d *Directory) block(p entry) bool {
	names := append(slices.Clone(p.Also), p.ID)
	if !slices.ContainsFunc(names, func(name string) bool { return d.blocked[Key(name)] }) {
		return false
	}
	for _, name := range names {
		d.blocked[Key(name)] = true
	}
	for _, agent := range set(p.Owns) {
		d.owners[agent] = append(d.owners[agent], p.ID)
	}
	return true
}

// set returns the names sorted and without duplicates. It never returns nil.
func set(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))

	return append([]string{}, slices.Compact(sorted)...)
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}
