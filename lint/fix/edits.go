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

// rename replaces a misspelt name by the nearest correct one.
func (t *text) rename(f diag.Finding) (title string, edit Edit, ok bool) {
	name := word.FindStringSubmatch(t.at(f.Range))
	if f.Nearest == "" || name == nil || name[1] != name[3] || !word.MatchString(f.Nearest) {
		return "", Edit{}, false
	}
	edit = t.replace(f.Range, name[1]+f.Nearest+name[1])
	return fmt.Sprintf("rename %q to %q", name[2], f.Nearest), edit, name[2] != f.Nearest
}

// replace replaces the text in a range.
func (t *text) replace(r diag.Range, with string) Edit {
	start, end := t.span(r)
	return Edit{Start: start, End: end, Text: with}
}

// quote adds quotes to make a scalar a text. A scalar that YAML 1.2 reads as another type is not
// changed, because the author's intention is not known.
func (t *text) quote(f diag.Finding) (title string, edit Edit, ok bool) {
	n := t.node(f.Range)
	if n == nil || n.Kind != yamldoc.String || t.at(n.Range) != n.Text ||
		strings.ContainsAny(n.Text, `"\\`) {
		return "", Edit{}, false
	}
	quoted := `"` + n.Text + `"`
	return "write " + quoted + ", which is text for every reader", t.replace(n.Range, quoted), true
}

// escape removes the braces or the ampersand that request raw output.
func (t *text) escape(f diag.Finding) (title string, edit Edit, ok bool) {
	raw := regexp.MustCompile(`^\{\{(?:\{\s*([\w.]+)\s*\}|&\s*([\w.]+)\s*)\}\}$`)
	tag := raw.FindStringSubmatch(t.at(f.Range))
	if tag == nil {
		return "", Edit{}, false
	}
	plain := "{{" + tag[1] + tag[2] + "}}"
	return "write " + plain, t.replace(f.Range, plain), true
}

// tightenOnly replaces false by true.
func (t *text) tightenOnly(f diag.Finding) (title string, edit Edit, ok bool) {
	return "write true", t.replace(f.Range, "true"), t.at(f.Range) == "false"
}

// removeComment removes a suppression that silences nothing. A comment that also names a rule which
// it does silence is not changed.
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

// holds reports whether an item of a list starts at a position, or is an object with a field whose
// value starts there.
func holds(item *yamldoc.Node, at diag.Position) bool {
	return item.Range.Start == at || slices.ContainsFunc(item.Fields, func(f yamldoc.Field) bool {
		return f.Value.Range.Start == at
	})
}

// removeField removes a field from an object, given the position of its name or of its value.
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

// begins reports whether a value begins at a position, including or excluding its quote.
func begins(n *yamldoc.Node, at diag.Position) bool {
	quote := n.Range.Start
	quote.Column++
	return n.Range.Start == at || n.Kind == yamldoc.String && quote == at
}

// places returns the ranges of the items of a list; fields returns those of the fields of an
// object.
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

// without removes the i-th part of a collection.
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

// withoutFlow removes a part that is separated from the others by commas.
func (t *text) withoutFlow(parts []diag.Range, i int) (Edit, bool) {
	if i == 0 {
		start, end := t.offset(parts[0].Start), t.offset(parts[1].Start)
		return Edit{Start: start, End: end}, parts[0].Start.Line == parts[1].Start.Line
	}
	start, end := t.offset(parts[i-1].End), t.offset(parts[i].End)
	return Edit{Start: start, End: end}, parts[i-1].End.Line == parts[i].End.Line
}

// withoutLines removes a part that has lines of its own.
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

// node returns the value or name at a range.
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

// walk visits a node and everything inside it, until visit returns true.
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
