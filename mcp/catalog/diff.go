package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// Change is one difference between two definitions, or two servers.
type Change struct {
	Place string `json:"place"`         // description, inputSchema.properties.path.type, server.args[1]
	Was   string `json:"was,omitempty"` // JSON, or a number of elements; "" where there was nothing
	Is    string `json:"is,omitempty"`  // JSON; "" where there is nothing any more
}

// String describes the change on one line:
//
//	description: was "Reads a file", is "Deletes a file"
//	inputSchema.properties.all: added: {"type":"boolean"}
//	annotations.readOnlyHint: removed: true
//
// Long texts are shown from the place where they begin to differ.
func (c Change) String() string { return safetext.Line(c.Place) + ": " + c.words() }

func (c Change) words() string {
	switch "" {
	case c.Was:
		return "added: " + shown(c.Is)
	case c.Is:
		return "removed: " + shown(c.Was)
	}

	was, is := apart(c.Was, c.Is)
	return "was " + shown(was) + ", is " + shown(is)
}

// shown returns a JSON text on one line, escaped and shortened.
func shown(text string) string {
	const most = 240
	out, _ := safetext.Value{Text: text, JSON: true}.Show(most)
	return out
}

// apart removes most of the common prefix of two long texts.
func apart(a, b string) (shortA, shortB string) {
	const long, before = 200, 40
	if len(a) <= long && len(b) <= long {
		return a, b
	}
	ra, rb := []rune(a), []rune(b)
	same := 0
	for same < len(ra) && same < len(rb) && ra[same] == rb[same] {
		same++
	}
	if same <= before {
		return a, b
	}
	return "…" + string(ra[same-before:]), "…" + string(rb[same-before:])
}

// Diff lists the differences between two definitions of a tool, field by field: first in the order
// of was, then the members that only is has. The order of members and the spelling of numbers make
// no difference. The result is empty for texts that can't be parsed.
func Diff(was, is []byte) []Change { return differ("", was, is) }

// DiffServers lists the differences between two servers.
func DiffServers(was, is Server) []Change {
	a, errA := was.Text()
	b, errB := is.Text()
	if errA != nil || errB != nil {
		return nil
	}
	return differ("server", a, b)
}

func differ(top string, was, is []byte) []Change {
	lim := value.Limits{MaxBytes: maxTool, MaxDepth: maxDepth + 1}
	a, errA := value.Parse(was, lim)
	b, errB := value.Parse(is, lim)
	if errA != nil || errB != nil {
		return nil
	}
	var d difference
	if top != "" {
		d.path = []string{top}
	}
	d.values(a, b)
	return d.changes
}

type difference struct {
	path    []string
	changes []Change
}

func (d *difference) values(was, is value.Value) {
	switch {
	case was.Kind == value.Object && is.Kind == value.Object:
		d.objects(was, is)
	case was.Kind == value.Array && is.Kind == value.Array && len(was.Items) == len(is.Items):
		for i := range was.Items {
			d.below(strconv.Itoa(i), was.Items[i], is.Items[i])
		}
	case was.Kind == value.Array && is.Kind == value.Array:
		d.lists(was.Items, is.Items)
	case string(was.AppendCanonical(nil)) != string(is.AppendCanonical(nil)):
		d.add(text(was), text(is))
	}
}

func text(v value.Value) string {
	if v.Kind == value.Absent {
		return ""
	}
	return string(v.AppendJSON(nil))
}

func (d *difference) add(was, is string) {
	d.changes = append(d.changes, Change{Place: jsonmsg.Path(d.path), Was: was, Is: is})
}

func (d *difference) below(name string, was, is value.Value) {
	d.path = append(d.path, name)
	d.values(was, is)
	d.path = d.path[:len(d.path)-1]
}

func (d *difference) objects(was, is value.Value) {
	for _, m := range was.Members {
		other, _ := is.Get(m.Key)
		d.below(m.Key, m.Value, other)
	}
	d.fresh(was, is)
}

// fresh lists the members that were added.
func (d *difference) fresh(was, is value.Value) {
	for _, m := range is.Members {
		if _, both := was.Get(m.Key); !both {
			d.below(m.Key, value.Value{}, m.Value)
		}
	}
}

// lists compares lists of different length and adds the elements that only one of them has. If
// there are none, the order or the number of equal elements differs.
func (d *difference) lists(was, is []value.Value) {
	gone, fresh := without(was, is), without(is, was)
	for _, v := range gone {
		d.add(text(v), "")
	}
	for _, v := range fresh {
		d.add("", text(v))
	}

	if len(gone)+len(fresh) == 0 {
		d.add(fmt.Sprintf("%d elements", len(was)), fmt.Sprintf("%d elements", len(is)))
	}
}

// without returns the values of one list that another doesn't have.
func without(list, other []value.Value) []value.Value {
	has := map[string]bool{}
	for _, v := range other {
		has[string(v.AppendCanonical(nil))] = true
	}
	return slices.DeleteFunc(
		slices.Clone(list),
		func(v value.Value) bool { return has[string(v.AppendCanonical(nil))] },
	)
}
