package editor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/template"
)

// completer finds what may be typed at a place in a document.
type completer struct{ *document }

// These match lines of block style, in which most files are written.
var (
	beginsField = regexp.MustCompile(`^([ ]*)((?:- +)*)["']?([\w.$-]*)["']?$`)
	hasField    = regexp.MustCompile(`^([ ]*)((?:- +)*)["']?([\w.$-]+)["']?:(?: +(.*))?$`)
)

// complete returns completions at the cursor: fields, or values of the field on its line. The text
// may be invalid YAML.
func complete(in *document, set *Settings, p placed) ([]completion, error) {
	d := completer{in}
	before := d.before(p.Position)
	if at, ok := d.flowAt(p.Position); ok {
		return d.completeFlow(set, at), nil
	}
	if m := beginsField.FindStringSubmatch(before); m != nil {
		return d.completeField(p.Position.Line, m), nil
	}
	if m := hasField.FindStringSubmatch(before); m != nil {
		path := append(d.above(p.Position.Line, indent(m)), m[3])
		return d.completeValue(set, path, m[4]), nil
	}
	return []completion{}, nil
}

// indentation determines the object to which a line belongs.
type indentation struct {
	dash  int // column of its first dash; -1 without one
	field int // column of its field
}

func indent(m []string) indentation {
	at := indentation{dash: -1, field: len(m[1]) + len(m[2])}
	if m[2] != "" {
		at.dash = len(m[1])
	}
	return at
}

func (d completer) completeField(line int, m []string) []completion {
	return d.completeName(d.above(line, indent(m)))
}

// completeFlow offers names and values inside of braces and brackets.
func (d completer) completeFlow(set *Settings, at flow) []completion {
	switch {
	case at.name:
		return d.completeName(at.path)
	case len(at.path) == 0:
		return []completion{}
	}

	return d.completeValue(set, at.path, at.written)
}

// completeName returns the fields of the object at a path.
func (d completer) completeName(path []string) []completion {
	list := []completion{}
	names, meanings := d.format().names(path)
	for _, name := range names {
		if d.lacks(path, name) {
			continue
		}
		list = append(list, completion{
			Label:  name,
			Kind:   kindField,
			Detail: meanings[name],
			Insert: name + ": ",
		})
	}

	if len(list) == 0 { // an item of a list of words
		list = d.words(d.format().values(path))
	}
	return list
}

// version10 matches the version of policies that have no operators of version 1.1.
var version10 = regexp.MustCompile(`(?m)^schema_version:\s*["']?1\.0+\.`)

// lacks reports whether a name is an operator that policies of the document's version don't have.
func (d completer) lacks(path []string, name string) bool {
	op := condition.Op(name)
	return d.content == lint.PolicyContent && slices.Contains(path, "args_match") && version10.Match(d.src) &&
		condition.Policy11.Has(op) && !condition.AgentFormat.Has(op)
}

// above returns the fields that lead to a line.
func (d *document) above(line int, at indentation) (path []string) {
	limit, item := at.field, false
	if at.dash >= 0 {
		limit, item = at.dash, true
	}
	for i := line - 1; i >= 0 && (limit > 0 || item); i-- {
		m := hasField.FindStringSubmatch(d.line(i))
		if m == nil {
			continue
		}
		above := indent(m)
		empty := m[4] == "" || strings.HasPrefix(m[4], "#")
		switch {
		case !item && above.field == limit && above.dash >= 0:
			limit, item = above.dash, true
		case empty && (above.field < limit || item && above.field == limit && above.dash < 0):
			path = append([]string{m[3]}, path...)
			limit, item = above.field, false
			if above.dash >= 0 {
				limit, item = above.dash, true
			}
		}
	}

	return path
}

// completeValue returns values of a field, of which a part may have been typed.
func (d completer) completeValue(set *Settings, path []string, written string) []completion {
	field := path[len(path)-1]
	if open := strings.LastIndex(written, "{{"); open > strings.LastIndex(written, "}}") {
		return d.words(d.variables(path))
	}
	switch {
	case field == "policy_ref" && d.content == lint.AgentContent:
		var refs []string
		for _, p := range set.Policies {
			refs = append(refs, p.Ref)
		}
		return d.words(refs)
	case field == "group" || field == "groups":
		return d.words(set.Groups)
	case refersToAgent(path):
		return d.words(d.aliases("local_agents"))
	}

	return d.words(d.format().values(path))
}

func (completer) words(list []string) []completion {
	out := []completion{}
	for _, word := range list {
		out = append(out, completion{Label: word, Kind: kindValue})
	}
	return out
}

// variables returns the variables that a message at a path may show.
func (d completer) variables(path []string) (names []string) {
	for ctx := template.LocalTool; ctx <= template.RemoteDelegation; ctx++ {
		if !d.shows(path, ctx) {
			continue
		}
		for _, name := range template.Variables(ctx) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}

	return names
}

// shows reports whether a message at a path may be about a kind of call.
func (d completer) shows(path []string, ctx template.Context) bool {
	if d.content == lint.PolicyContent {
		return true
	}
	has := func(name string) bool { return slices.Contains(path, name) }
	switch ctx {
	case template.LocalTool:
		return has("local_tools")
	case template.MCPTool:
		return has("mcp_servers")
	case template.Skill:
		return has("allowed_skills")
	case template.LocalDelegation:
		return has("local_agents")
	}

	return has("remote_agents") && !has("allowed_skills")
}
