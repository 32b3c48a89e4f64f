package condition

import (
	"slices"

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
	if d.atoms&atomCompound == 0 {
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

	return inside
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
		if v.Kind != value.Absent {
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
	}
}
