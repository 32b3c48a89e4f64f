package fix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// word is a name with or without quotes around it.
var word = regexp.MustCompile(`^(["']?)([\w.-]+)(["']?)$`)

// rename puts the nearest name in the place of one that is misspelt.
func (t *text) rename(f diag.Finding) (title string, edit Edit, ok bool) {
	name := word.FindStringSubmatch(t.at(f.Range))
	if f.Nearest == "" || name == nil || name[1] != name[3] || !word.MatchString(f.Nearest) {
		return "", Edit{}, false
	}
	edit = t.replace(f.Range, name[1]+f.Nearest+name[1])
	return fmt.Sprintf("rename %q to %q", name[2], f.Nearest), edit, name[2] != f.Nearest
}

// replace puts a text in the place of what stands in a range.
func (t *text) replace(r diag.Range, with string) Edit {
	start, end := t.span(r)
	return Edit{Start: start, End: end, Text: with}
}

// quote says that a scalar is text. One that YAML 1.2 reads as something
// else stays: what was meant is not known.
func (t *text) quote(f diag.Finding) (title string, edit Edit, ok bool) {
	n := t.node(f.Range)
	if n == nil || n.Kind != yamldoc.String || t.at(n.Range) != n.Text ||
		strings.ContainsAny(n.Text, `"\\`) {
		return "", Edit{}, false
	}
	quoted := `"` + n.Text + `"`
	return "write " + quoted + ", which is text for every reader", t.replace(n.Range, quoted), true
}

// escape takes the braces or the ampersand away that ask for raw output.
func (t *text) escape(f diag.Finding) (title string, edit Edit, ok bool) {
	raw := regexp.MustCompile(`^\{\{(?:\{\s*([\w.]+)\s*\}|&\s*([\w.]+)\s*)\}\}$`)
	tag := raw.FindStringSubmatch(t.at(f.Range))
	if tag == nil {
		return "", Edit{}, false
	}
	plain := "{{" + tag[1] + tag[2] + "}}"
	return "write " + plain, t.replace(f.Range, plain), true
}

// tightenOnly writes true for a false.
func (t *text) tightenOnly(f diag.Finding) (title string, edit Edit, ok bool) {
	return "write true", t.replace(f.Range, "true"), t.at(f.Range) == "false"
}

// removeComment takes a suppression out that silences nothing. One that
// also names a rule which it does silence stays.
func (t *text) removeComment(f diag.Finding) (title string, edit Edit, ok bool) {
	start, end := t.span(f.Range)
	names, _, _ := strings.Cut(t.at(f.Range), "--")
	if strings.Contains(names, ",") {
		return "", Edit{}, false
	}

	blank := strings.TrimRight(string(t.src[:start]), " \t")
	edit = Edit{Start: len(blank), End: end}
	if blank == "" || strings.HasSuffix(blank, "\n") {
		edit.End = t.offset(diag.Position{Line: f.Range.End.Line + 1, Column: 1})
	}
	return "remove the comment", edit, true
}

// removeItem takes an item out of a list.
func (t *text) removeItem(f diag.Finding) (title string, edit Edit, ok bool) {
	t.walk(t.doc.Root, func(n *yamldoc.Node) bool {
		for i, item := range n.Items {
			if holds(item, f.Range.Start) && len(n.Items) > 1 {
				edit, ok = t.without(n, places(n.Items), i)
				return true
			}
		}

		return false
	})

	return "remove this entry", edit, ok
}

// holds reports whether an item of a list is what stands at a place, or
// is an object with a field whose value stands there.
func holds(item *yamldoc.Node, at diag.Position) bool {
	return item.Range.Start == at || slices.ContainsFunc(item.Fields, func(f yamldoc.Field) bool {
		return f.Value.Range.Start == at
	})
}

// removeField takes a field out of an object, by the place of its name
// or of its value.
func (t *text) removeField(f diag.Finding) (title string, edit Edit, ok bool) {
	t.walk(t.doc.Root, func(n *yamldoc.Node) bool {
		for i, field := range n.Fields {
			if at := f.Range.Start; field.Key.Range.Start != at && !begins(field.Value, at) {
				continue
			}
			title = fmt.Sprintf("remove %q", field.Key.Text)
			if len(n.Fields) > 1 {
				edit, ok = t.without(n, fields(n.Fields), i)
			}
			return true
		}

		return false
	})
	return title, edit, ok
}

// begins reports whether a value begins at a place, before or behind
// its quote.
func begins(n *yamldoc.Node, at diag.Position) bool {
	quote := n.Range.Start
	quote.Column++
	return n.Range.Start == at || n.Kind == yamldoc.String && quote == at
}

// places are where the items of a list stand, fields where the fields
// of an object do.
func places(items []*yamldoc.Node) (all []diag.Range) {
	for _, item := range items {
		all = append(all, item.Range)
	}
	return all
}

func fields(list []yamldoc.Field) (all []diag.Range) {
	for _, f := range list {
		all = append(all, diag.Range{Start: f.Key.Range.Start, End: f.Value.Range.End})
	}
	return all
}

// without takes the i-th part out of a collection.
func (t *text) without(n *yamldoc.Node, parts []diag.Range, i int) (Edit, bool) {
	for _, c := range t.doc.Comments {
		if c.Alone && c.Line > parts[i].Start.Line && c.Line <= parts[i].End.Line {
			return Edit{}, false // somebody wrote about what is inside
		}
	}

	edit, ok := t.withoutLines(parts[i])
	if open := t.src[t.offset(n.Range.Start)]; open == '[' || open == '{' {
		edit, ok = t.withoutFlow(parts, i)
	}
	edit.from = n
	return edit, ok
}

// withoutFlow takes a part out that commas separate from the others.
func (t *text) withoutFlow(parts []diag.Range, i int) (Edit, bool) {
	if i == 0 {
		start, end := t.offset(parts[0].Start), t.offset(parts[1].Start)
		return Edit{Start: start, End: end}, parts[0].Start.Line == parts[1].Start.Line
	}
	start, end := t.offset(parts[i-1].End), t.offset(parts[i].End)
	return Edit{Start: start, End: end}, parts[i-1].End.Line == parts[i].End.Line
}

// withoutLines takes a part out that has its lines for itself.
func (t *text) withoutLines(part diag.Range) (Edit, bool) {
	begin := t.offset(diag.Position{Line: part.Start.Line, Column: 1})
	before := strings.TrimSpace(string(t.src[begin:t.offset(part.Start)]))
	end := t.offset(diag.Position{Line: part.End.Line + 1, Column: 1})
	last := t.offset(part.End)
	if last == t.offset(diag.Position{Line: part.End.Line, Column: 1}) {
		end = last // the range ends where the next line begins
	}

	rest := strings.TrimSpace(string(t.src[last:max(last, end)]))
	alone := (before == "" || before == "-") && (rest == "" || strings.HasPrefix(rest, "#"))
	return Edit{Start: begin, End: end}, alone
}

// node is the value or name that stands at a place.
func (t *text) node(at diag.Range) (found *yamldoc.Node) {
	t.walk(t.doc.Root, func(n *yamldoc.Node) bool {
		for _, f := range n.Fields {
			if f.Key.Range == at {
				found = f.Key
			}
		}
		if n.Range == at {
			found = n
		}
		return found != nil
	})
	return found
}

// walk visits a node and what is inside of it, until it is told to stop.
func (t *text) walk(n *yamldoc.Node, visit func(*yamldoc.Node) bool) bool {
	if n == nil || visit(n) {
		return n != nil
	}
	for _, item := range n.Items {
		if t.walk(item, visit) {
			return true
		}
	}
	for _, f := range n.Fields {
		if t.walk(f.Value, visit) {
			return true
		}
	}
	return false
}
