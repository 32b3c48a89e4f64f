package apidocs

import (
	"encoding/json"
	"html/template"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// page is the data of the page.
type page struct {
	Style       template.CSS
	Title       string
	Version     string
	Description string
	Groups      []*group
	Schemas     []schema
}

// group has the operations of one tag.
type group struct {
	Name        string
	Description string
	Operations  []operation
}

// operation is one method at one path.
type operation struct {
	ID          string
	Method      string
	Path        string
	Summary     string
	Description string
	Scopes      []string // of which one is required; if empty, no token is needed
	Parameters  []field
	Body        shape
	Responses   []response
}

// response is one answer.
type response struct {
	Status      string
	Description string
	Body        shape
}

// shape describes a body.
type shape struct {
	Type    string // "" for none
	Ref     string // name of the schema; may be empty
	Example string // JSON; may be empty
}

// schema is one named schema.
type schema struct {
	Name        string
	Description string
	Type        string
	Values      []string
	Fields      []field
}

// field is a parameter, or a member of an object.
type field struct {
	Name        string
	In          string // parameters: path, query or header
	Type        string
	Ref         string
	Required    bool
	Description string
	Values      []string
}

// reader reads the contract.
type reader struct{ root *yamldoc.Node }

func read(root *yamldoc.Node) page {
	r := reader{root}
	info := root.Get("info")

	return page{
		Title:       text(info, "title"),
		Version:     text(info, "version"),
		Description: text(info, "description"),
		Groups:      r.groups(),
		Schemas:     r.schemas(),
	}
}

// groups returns the tags in order, each with the operations whose first tag it is.
func (r reader) groups() []*group {
	byName := map[string]*group{}
	var out []*group
	add := func(name, description string) *group {
		g := &group{Name: name, Description: description}
		byName[name] = g
		out = append(out, g)
		return g
	}
	for _, tag := range items(r.root.Get("tags")) {
		add(text(tag, "name"), text(tag, "description"))
	}
	for _, path := range fields(r.root.Get("paths")) {
		for _, method := range fields(path.Value) {
			if method.Key.Text == "parameters" {
				continue
			}
			name := items(method.Value.Get("tags"))[0].Text
			g := byName[name]
			if g == nil {
				g = add(name, "")
			}
			g.Operations = append(g.Operations, r.operation(path, method))
		}
	}

	return out
}

func (r reader) operation(path, method yamldoc.Field) operation {
	n := method.Value
	o := operation{
		ID:          text(n, "operationId"),
		Method:      strings.ToUpper(method.Key.Text),
		Path:        path.Key.Text,
		Summary:     text(n, "summary"),
		Description: text(n, "description"),
		Scopes:      scopes(n.Get("security")),
		Body:        r.body(n.Get("requestBody")),
	}
	for _, p := range append(items(path.Value.Get("parameters")), items(n.Get("parameters"))...) {
		o.Parameters = append(o.Parameters, r.parameter(r.resolve(p)))
	}
	for _, a := range fields(n.Get("responses")) {
		answer := r.resolve(a.Value)
		o.Responses = append(o.Responses, response{
			Status:      a.Key.Text,
			Description: text(answer, "description"),
			Body:        r.body(answer),
		})
	}

	return o
}

// scopes returns the scopes of which an operation requires one.
func scopes(security *yamldoc.Node) []string {
	var out []string
	for _, one := range items(security) {
		for _, name := range items(one.Get("bearer")) {
			out = append(out, name.Text)
		}
	}

	return out
}

func (r reader) parameter(n *yamldoc.Node) field {
	f := r.field(n.Get("schema"))
	f.Name = text(n, "name")
	f.In = text(n, "in")
	f.Description = text(n, "description")
	f.Required = n.Get("required") != nil && n.Get("required").Bool

	return f
}

// body returns the first media type of a body.
func (r reader) body(n *yamldoc.Node) shape {
	all := fields(n.Get("content"))
	if len(all) == 0 {
		return shape{}
	}
	content := all[0].Value
	f := r.field(content.Get("schema"))
	out := shape{Type: all[0].Key.Text, Ref: f.Ref, Example: example(content.Get("example"))}
	if more := fields(content.Get("examples")); out.Example == "" && len(more) > 0 {
		out.Example = example(more[0].Value.Get("value"))
	}

	return out
}

func example(n *yamldoc.Node) string {
	if n == nil || n.Kind == yamldoc.String {
		return ""
	}
	out, err := json.MarshalIndent(n.Any(), "", "  ")
	if err != nil {
		return "" // every value in the document has a JSON form
	}

	return string(out)
}

func (r reader) schemas() []schema {
	var out []schema
	for _, one := range fields(r.root.Get("components").Get("schemas")) {
		f := r.field(one.Value)
		s := schema{
			Name:        one.Key.Text,
			Description: text(one.Value, "description"),
			Type:        f.Type,
			Values:      f.Values,
		}
		required := map[string]bool{}
		for _, name := range items(one.Value.Get("required")) {
			required[name.Text] = true
		}
		for _, member := range fields(one.Value.Get("properties")) {
			m := r.field(member.Value)
			m.Name = member.Key.Text
			m.Required = required[m.Name]
			s.Fields = append(s.Fields, m)
		}

		out = append(out, s)
	}

	return out
}

// field reads the schema of one value.
func (r reader) field(n *yamldoc.Node) field {
	f := field{Ref: refName(n), Type: typeOf(n), Description: text(n, "description")}
	if list := n.Get("items"); f.Ref == "" && list != nil {
		f.Ref, f.Type = refName(list), "list of "+typeOf(list)
	}
	if all := items(n.Get("allOf")); f.Ref == "" && len(all) > 0 {
		f.Ref = refName(all[0])
	}
	for _, v := range items(n.Get("enum")) {
		f.Values = append(f.Values, v.Text)
	}

	return f
}

func typeOf(n *yamldoc.Node) string {
	switch t := n.Get("type"); {
	case t == nil:
		return refName(n)
	case len(t.Items) > 0:
		var names []string
		for _, one := range t.Items {
			names = append(names, one.Text)
		}
		return strings.Join(names, " or ")
	default:
		return t.Text
	}
}

// refName returns the last part of a reference, or an empty string if there is none.
func refName(n *yamldoc.Node) string {
	ref := text(n, "$ref")

	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// resolve follows a reference within the document.
func (r reader) resolve(n *yamldoc.Node) *yamldoc.Node {
	ref, ok := strings.CutPrefix(text(n, "$ref"), "#/")
	if !ok {
		return n
	}
	at := r.root
	for _, part := range strings.Split(ref, "/") {
		at = at.Get(part)
	}

	return at
}

func text(n *yamldoc.Node, key string) string {
	if v := n.Get(key); v != nil {
		return v.Text
	}

	return ""
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}

	return n.Items
}

func fields(n *yamldoc.Node) []yamldoc.Field {
	if n == nil {
		return nil
	}

	return n.Fields
}

// part is a piece of a description: text, or code between backticks.
type part struct {
	Text string
	Code bool
}

// prose splits a description at its backticks.
func prose(description string) []part {
	var out []part
	for i, piece := range strings.Split(strings.TrimSpace(description), "`") {
		if piece != "" {
			out = append(out, part{Text: piece, Code: i%2 == 1})
		}
	}

	return out
}
