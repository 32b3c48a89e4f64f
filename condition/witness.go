package condition

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// tree has the relations of a question's places: `order.amount` can be present only if `order`
// is an object. A place's parent is the longest other place that is a prefix of it.
type tree struct {
	roots    []int
	children [][]int
}

func treeOf(places [][]string) *tree {
	t := &tree{children: make([][]int, len(places))}
	for i, p := range places {
		parent := -1
		for j, o := range places {
			if len(o) < len(p) && slices.Equal(o, p[:len(o)]) && (parent < 0 || len(o) > len(places[parent])) {
				parent = j
			}
		}
		if parent < 0 {
			t.roots = append(t.roots, i)
		} else {
			t.children[parent] = append(t.children[parent], i)
		}
	}

	return t
}

// choice has the chosen value of a witness at each place.
type choice struct {
	q   *question
	box box
	at  []value.Value
}

// witness returns arguments of a box, or No if there are none.
func (q *question) witness(b box) (Verdict, value.Value) {
	if q.tree == nil {
		q.tree = treeOf(q.places)
	}
	c := choice{q: q, box: b, at: make([]value.Value, len(q.places))}
	result := Yes
	for _, root := range c.q.tree.roots {
		switch c.fill(root) {
		case No:
			return No, value.Value{}
		case Undecided:
			result = Undecided
		}
	}

	if result != Yes {
		return result, value.Value{}
	}
	return Yes, c.document()
}

// fill chooses a value for a place and the places below it: either it is not an object and they
// are absent, or it is an object and they are free. Arrays need no case of their own, because
// an object can have everything that an array can.
func (c *choice) fill(place int) Verdict {
	d := c.box.at(place)
	below := c.q.tree.children[place]
	if len(below) == 0 {
		return c.pick(place, d)
	}
	result := No
	if c.absentBelow(place) {
		if result = c.pick(place, d.without(atomCompound)); result == Yes {
			return Yes
		}
	}
	if d.compounds != nil {
		switch c.list(place, d) {
		case Yes:
			return Yes
		case Undecided:
			result = Undecided
		}
	}
	if d.atoms&atomCompound == 0 || d.compounds != nil && d.compounds.objects.empty() {
		return result
	}
	c.at[place] = value.Value{Kind: value.Object}
	inside := Yes
	for _, child := range below {
		switch c.fill(child) {
		case No:
			return result
		case Undecided:
			inside = Undecided
		}
	}

	if d.compounds != nil {
		switch c.members(place, d.compounds.objects) {
		case No:
			return result
		case Undecided:
			inside = Undecided
		}
	}
	return inside
}

// list chooses a list for a place with places below it. They are absent, unless they name elements
// of the list, which is not tried.
func (c *choice) list(place int, d domain) Verdict {
	lists := &compounds{lists: d.compounds.lists}
	switch {
	case lists.empty():
		return No
	case slices.ContainsFunc(c.q.tree.children[place], func(child int) bool { return isIndex(c.step(place, child)) }):
		return Undecided
	case !c.absentBelow(place):
		return No
	}
	return c.pick(place, domain{}.onlyCompounds(lists))
}

// step returns the key below a place that leads to another.
func (c *choice) step(place, below int) string { return c.q.places[below][len(c.q.places[place])] }

func isIndex(segment string) bool {
	return strings.Trim(segment, "0123456789") == "" && (segment == "0" || !strings.HasPrefix(segment, "0"))
}

// members gives the object at a place one of the allowed numbers of members, by leaving out those
// that may be absent and adding others.
func (c *choice) members(place int, allowed counts) Verdict {
	present := map[string]bool{}
	for _, child := range c.q.tree.children[place] {
		step := c.step(place, child)
		present[step] = present[step] || c.present(child)
	}
	n := 0
	for _, is := range present {
		n += index(is)
	}

	total, ok := allowed.from(n)
	for _, child := range c.q.tree.children[place] {
		step := c.step(place, child)
		if ok || !present[step] || !c.dropped(place, step) {
			continue
		}
		n--
		present[step] = false
		total, ok = allowed.from(n)
	}
	if !ok {
		return No
	}
	if total-n > maxPicked {
		return Undecided
	}
	extra := padded(total - n + len(present))
	extra.Members = slices.DeleteFunc(extra.Members, func(m value.Member) bool {
		_, tracked := present[m.Key]
		return tracked
	})[:total-n]
	c.at[place] = extra
	return Yes
}

// present reports whether a place or one below it has a value.
func (c *choice) present(place int) bool {
	return c.at[place].Kind != value.Absent || slices.ContainsFunc(c.q.tree.children[place], c.present)
}

// dropped sets every place below a member of an object absent, if all of them may be.
func (c *choice) dropped(place int, step string) bool {
	var below []int
	for _, child := range c.q.tree.children[place] {
		if c.step(place, child) == step {
			below = append(below, child)
		}
	}
	for _, child := range below {
		if c.box.at(child).atoms&atomAbsent == 0 || !c.mayBeAbsentBelow(child) {
			return false
		}
	}
	for _, child := range below {
		c.at[child] = value.Value{}
		c.absentBelow(child)
	}
	return true
}

func (c *choice) mayBeAbsentBelow(place int) bool {
	return !slices.ContainsFunc(c.q.tree.children[place], func(child int) bool {
		return c.box.at(child).atoms&atomAbsent == 0 || !c.mayBeAbsentBelow(child)
	})
}

func (c *choice) pick(place int, d domain) Verdict {
	v, verdict := d.pick(&c.q.effort)
	c.at[place] = v
	return verdict
}

// absentBelow reports whether all places below a place may be absent, and sets them absent.
func (c *choice) absentBelow(place int) bool {
	for _, child := range c.q.tree.children[place] {
		if c.box.at(child).atoms&atomAbsent == 0 || !c.absentBelow(child) {
			return false
		}
		c.at[child] = value.Value{}
	}

	return true
}

// document returns an object with the chosen values.
func (c *choice) document() value.Value {
	root := value.Value{Kind: value.Object}
	for i, v := range c.at {
		switch {
		case v.Kind == value.Absent:
		case len(c.q.places[i]) == 0 && v.Kind != value.Object: // an element of a list
			root = v
		case len(c.q.places[i]) == 0:
			root.Members = append(root.Members, v.Members...)
		default:
			put(&root, c.q.places[i], v)
		}
	}
	return root
}

// put sets a value at a path, and creates objects on the way. An existing object is kept.
func put(v *value.Value, segments []string, leaf value.Value) {
	i := slices.IndexFunc(v.Members, func(m value.Member) bool { return m.Key == segments[0] })
	if i < 0 {
		i = len(v.Members)
		v.Members = append(v.Members, value.Member{Key: segments[0], Value: value.Value{Kind: value.Object}})
	}

	switch member := &v.Members[i].Value; {
	case len(segments) > 1:
		put(member, segments[1:], leaf)
	case leaf.Kind != value.Object:
		*member = leaf
	default:
		member.Members = append(member.Members, leaf.Members...)
	}
}
