package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// The names that allow-lists had before the standard renamed them
// (2026-03-10).
const (
	oldAllowTools  = "allow_tools"
	oldAllowSkills = "allow_skills"
)

// shape is the fields that the JSON Schema allows in one place.
type shape struct {
	fields map[string]*shape // the known fields
	names  []string          // their names, sorted
	values *shape            // every field not among them, where names are free
	items  *shape
	open   bool              // any field goes here, or the JSON Schema itself refuses the unknown
	byID   map[string]*shape // execution_policy: its shape for each id of the standard
}

// vocabulary is the shape of a whole agent file, derived from the JSON Schema so that the names
// have a single source. It doesn't change while the program runs.
var vocabulary = sync.OnceValue(func() *shape {
	root, _ := compiled().Raw().(map[string]any)
	v := vocabularyReader{named: map[string]*shape{}}
	v.defs, _ = root["$defs"].(map[string]any)

	return v.shape(root)
})

// vocabularyReader reads which fields there are from the decoded JSON Schema. Shapes of definitions
// are shared.
type vocabularyReader struct {
	defs  map[string]any
	named map[string]*shape
}

func (v *vocabularyReader) shape(raw any) *shape {
	schema, _ := raw.(map[string]any)
	ref, _ := schema["$ref"].(string)
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		return v.definition(name)
	}
	s := &shape{fields: map[string]*shape{}}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		s.fields[name] = v.shape(p)
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	if items := schema["items"]; items != nil {
		s.items = v.shape(items)
	}
	additional := schema["additionalProperties"]
	if _, ok := additional.(map[string]any); ok {
		s.values = v.shape(additional)
	}
	s.open = additional == false || len(s.names) == 0 && s.values == nil && s.items == nil

	return s
}

// definition returns the shape of a definition. It adds what can't be derived from the structure of the
// JSON Schema.
func (v *vocabularyReader) definition(name string) *shape {
	if s := v.named[name]; s != nil {
		return s
	}
	s := v.shape(v.defs[name])
	v.named[name] = s
	switch name {
	case "data-schema":
		s.open = true
	case "execution-policy":
		s.byID = map[string]*shape{}
		for id, def := range v.defs {
			if strings.HasPrefix(id, "agf.") {
				config := map[string]*shape{"id": s.fields["id"], "config": v.shape(def)}
				s.byID[id] = &shape{fields: config, names: s.names}
			}
		}
	}

	return s
}

// fields reports every field that the format doesn't know. Names that
// start with x- are extensions, which the format leaves to vendors, and
// $schema at the top is for editors.
func (r *reader) fields(root *yamldoc.Node) {
	w := fieldWalk{reader: r}
	w.visit("", root, vocabulary())
}

// fieldWalk walks through a document together with the shape of each place.
type fieldWalk struct {
	*reader
	places   []place
	reported int
}

// place is one step of the way: how it is written in a path and its shape.
type place struct {
	step  string
	shape *shape
}

// visit walks the node of one step.
func (w *fieldWalk) visit(step string, n *yamldoc.Node, s *shape) {
	if policy := s.byID[text(n.Get("id"))]; policy != nil {
		s = policy
	}
	w.places = append(w.places, place{step, s})
	for i, item := range n.Items {
		if s.items != nil {
			w.visit("["+strconv.Itoa(i)+"]", item, s.items)
		}
	}
	for _, f := range n.Fields {
		if child := w.child(n, f, s); child != nil {
			w.visit(f.Key.Text, f.Value, child)
		}
	}
	w.places = w.places[:len(w.places)-1]
}

// child returns the shape of a field's value, or nil if there is nothing to walk. It reports an
// unknown field.
func (w *fieldWalk) child(n *yamldoc.Node, f yamldoc.Field, s *shape) *shape {
	key, name := f.Key, f.Key.Text
	switch known, ok := s.fields[name]; {
	case ok:
		return known
	case s.values != nil:
		return s.values
	case s.open, isExtension(name), name == "$schema" && len(w.places) == 1:
	case name == oldAllowTools && s.fields["allowed_tools"] != nil:
		w.add(renamed(n, key, "allowed_tools"))
	case name == oldAllowSkills && s.fields["allowed_skills"] != nil:
		w.add(renamed(n, key, "allowed_skills"))
	default:
		w.foreign(n, f, s)
	}

	return nil
}

func renamed(n, key *yamldoc.Node, now string) diag.Finding {
	f := yamldoc.Fail(
		ruleRenamedField,
		key.Range,
		fmt.Sprintf("%q was renamed to %q, so this list and the approvals in it are not read", key.Text, now),
		now+"; until then every call of this entry asks",
	)
	f.Nearest = now
	if right := n.Field(now); right != nil {
		f.Nearest, f.Expected = "", now+" alone, which stands beside it"
		f.Related = []diag.Related{{Range: right.Key.Range, Message: "the list that is read"}}
	}
	return f
}

func (w *fieldWalk) unknown(n, key *yamldoc.Node, s *shape) diag.Finding {
	f := yamldoc.Warn(
		ruleUnknownField,
		key.Range,
		fmt.Sprintf("unknown field %q %s, ignored at run time", key.Text, w.here()),
		oneOf(s.names),
	)
	if w.reported++; w.reported > maxCompared {
		return f // so many are no typing mistakes
	}
	if s.fields["message_template"] != nil && !hasAny(n, s.names) {
		f.Message = fmt.Sprintf(
			"unknown field %q %s, which holds no known field and so asks always",
			key.Text,
			w.here(),
		)
	}

	if f.Nearest = diag.Suggest(key.Text, s.names); f.Nearest == "" {
		if home := w.home(key.Text); home != "" {
			f.Expected = fmt.Sprintf("%s; %q belongs at %s", f.Expected, key.Text, home)
		}
	}
	return f
}

// here names the place that the walk is at: "in metadata", "at the top".
func (w *fieldWalk) here() string {
	if at := joinSteps(w.places); at != "" {
		return "in " + at
	}
	return "at the top"
}

func joinSteps(places []place) string {
	var b strings.Builder
	for _, p := range places {
		if b.Len() > 0 && !strings.HasPrefix(p.step, "[") {
			b.WriteByte('.')
		}
		b.WriteString(p.step)
	}

	return b.String()
}

func hasAny(n *yamldoc.Node, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return n.Field(name) != nil })
}

// home returns the place where a field of that name belongs: anywhere below the current place, or
// else in the closest objects above. Places further away are not considered, because names such as
// description belong everywhere.
func (w *fieldWalk) home(name string) string {
	here := len(w.places) - 1
	if path := w.places[here].shape.find(name, 4); path != "" {
		return strings.TrimPrefix(joinSteps(w.places)+path, ".")
	}
	for i := here - 1; i >= 0 && i >= here-2; i-- {
		if path := w.places[i].shape.find(name, 2); path != "" {
			return strings.TrimPrefix(joinSteps(w.places[:i+1])+path, ".")
		}
	}
	return ""
}

// find returns the shallowest path to a field of that name, at most depth steps below s, or an
// empty string if there is none.
func (s *shape) find(name string, depth int) string {
	if s == nil || depth == 0 || s.open {
		return ""
	}
	if s.fields[name] != nil {
		return "." + name
	}
	best := ""
	for step, below := range s.below() {
		path := below.find(name, depth-1)
		if path != "" && (best == "" || less(step+path, best)) {
			best = step + path
		}
	}

	return best
}

// below returns the shapes one step down, by how the step is written.
func (s *shape) below() map[string]*shape {
	steps := map[string]*shape{}
	for name, child := range s.fields {
		steps["."+name] = child
	}
	if s.items != nil {
		steps["[]"] = s.items
	}
	return steps
}

func less(a, b string) bool {
	if n, m := strings.Count(a, "."), strings.Count(b, "."); n != m {
		return n < m
	}
	return a < b
}
