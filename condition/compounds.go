package condition

import (
	"slices"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// compounds is a set of objects, by the number of their members, and of lists.
type compounds struct {
	objects counts
	lists   []listBox // the union of these
}

// listBox is a set of lists: those of some lengths whose elements are all in one of the sets of
// every, and that have an element in each of the sets of some. A set of elements is a union of
// boxes of a question whose document is the element (its first place).
type listBox struct {
	lengths counts
	every   []box // of q; nil: no restriction
	some    [][]box
	q       *question // nil if every and some are
}

func allLists() []listBox { return []listBox{{lengths: allCounts(true)}} }

func (c *compounds) empty() bool { return c.objects.empty() && len(c.lists) == 0 }

func (c *compounds) and(d *compounds) *compounds {
	return &compounds{c.objects.and(d.objects), intersection(c.lists, d.lists)}
}

func (c *compounds) or(d *compounds) *compounds {
	return &compounds{c.objects.or(d.objects), slices.Concat(c.lists, d.lists)}
}

func (c *compounds) not() *compounds {
	lists := allLists()
	for i := range c.lists {
		lists = intersection(lists, c.lists[i].not())
	}
	return &compounds{c.objects.not(), lists}
}

// intersection returns the lists that are in both unions. If it has too many boxes, the questions
// about their elements become vague, and have no answer.
func intersection(a, b []listBox) []listBox {
	var out []listBox
	for i := range a {
		for j := range b {
			if l := a[i].and(&b[j]); !l.lengths.empty() {
				out = append(out, l)
			}
		}
	}
	if len(out) > maxBoxes {
		for _, l := range out {
			if l.q != nil {
				l.q.vague = true
			}
		}
		out = out[:1]
	}
	return out
}

func (l *listBox) and(m *listBox) listBox {
	both := listBox{lengths: l.lengths.and(m.lengths), every: l.every, q: l.q}
	if both.q == nil {
		both.q = m.q
	}
	if both.every == nil {
		both.every = m.every
	} else if m.every != nil {
		both.every = spread(clones(l.every), m.every)
	}
	if both.every != nil && len(both.every) == 0 { // only the empty list
		both.lengths = both.lengths.and(counts{true, []int{1}})
	}
	both.some = slices.Concat(l.some, m.some)
	if len(both.some) > 0 {
		both.lengths = both.lengths.and(counts{false, []int{1}})
	}
	return both
}

// clones copies boxes, because spread may modify them.
func clones(list []box) []box {
	out := make([]box, len(list))
	for i, b := range list {
		out[i] = slices.Clone(b)
	}
	return out
}

// not returns the lists that are not in the box.
func (l *listBox) not() []listBox {
	var out []listBox
	if !l.lengths.full() {
		out = append(out, listBox{lengths: l.lengths.not()})
	}
	if l.every != nil {
		out = append(out, anyOf(l.q, l.q.others(l.every))...)
	}
	for _, set := range l.some {
		out = append(out, allOf(l.q, l.q.others(set)))
	}
	return out
}

// anyOf returns the lists that have an element in a set.
func anyOf(q *question, set []box) []listBox {
	if len(set) == 0 {
		return nil
	}
	return []listBox{{lengths: counts{false, []int{1}}, some: [][]box{set}, q: q}}
}

// allOf returns the lists whose elements are all in a set.
func allOf(q *question, set []box) listBox {
	l := listBox{lengths: allCounts(true), every: set, q: q}
	if len(set) == 0 {
		l.every, l.lengths = []box{}, counts{true, []int{1}}
	}
	return l
}

// element is the box of all elements: a place that is never absent.
func element() box { return box{{0, everything().without(atomAbsent)}} }

// others returns the elements that are in none of the boxes.
func (q *question) others(set []box) []box { return q.carve(element(), set, nil) }

// elementsOf returns the question about the elements of lists.
func (q *question) elementsOf() *question {
	if q.elements == nil {
		sem := q.reading.sem
		sem.OnMissing, sem.OnMismatch = Ask, Ask
		q.elements = &question{
			a:       q.a,
			reading: reading{use: ToolArgs, sem: sem},
			index:   map[string]int{},
			work:    q.work,
			effort:  q.effort,
		}
		q.elements.place(nil)
	}
	q.elements.reading.sem.Anchor, q.elements.reading.sem.Trim = q.reading.sem.Anchor, q.reading.sem.Trim
	return q.elements
}

// unclear reports whether some set of the question could not be represented.
func (q *question) unclear() bool { return q != nil && (q.vague || q.elements.unclear()) }

// pick returns an object or a list of the set.
func (c *compounds) pick(e *effort) (value.Value, Verdict) {
	if n, ok := c.objects.from(0); ok && n <= maxPicked {
		return padded(n), Yes
	}
	result := No
	if !c.objects.empty() {
		result = Undecided
	}
	for i := range c.lists {
		switch v, found := c.lists[i].pick(); found {
		case Yes:
			return v, Yes
		case Undecided:
			result = Undecided
		}
	}
	return value.Value{}, result
}

// Limits of examples.
const (
	maxPicked = 10_000 // members and elements
	maxSome   = 7      // elements that a list must have, if it can't have one for each
)

// padded returns an object with a number of members.
func padded(n int) value.Value {
	v := value.Value{Kind: value.Object}
	for i := range n {
		v.Members = append(v.Members, value.Member{
			Key: "other" + strconv.Itoa(i+1), Value: value.Value{Kind: value.Bool, Bool: true},
		})
	}
	return v
}

// pick returns a list of the box.
func (l *listBox) pick() (value.Value, Verdict) {
	every := l.every
	if every == nil {
		every = []box{element()}
	}
	var needed [][]box
	for _, set := range l.some {
		needed = append(needed, spread(clones(every), set))
	}
	n, ok := l.lengths.from(len(needed))
	if ok {
		return l.fill(every, needed, n)
	}
	if len(needed) > maxSome {
		return value.Value{}, Undecided
	}
	return l.merge(every, needed)
}

// merge looks for elements that are in several of the needed sets, for lists that may not have one
// for each.
func (l *listBox) merge(every []box, needed [][]box) (value.Value, Verdict) {
	result := No
	for i := range needed {
		for j := range i {
			fewer := slices.Delete(slices.Clone(needed), i, i+1)
			fewer[j] = spread(clones(needed[j]), needed[i])
			n, ok := l.lengths.from(len(fewer))
			find := l.merge
			if ok {
				find = func(every []box, sets [][]box) (value.Value, Verdict) { return l.fill(every, sets, n) }
			}
			switch v, found := find(every, fewer); found {
			case Yes:
				return v, Yes
			case Undecided:
				result = Undecided
			}
		}
	}
	return value.Value{}, result
}

// fill returns a list of n elements: one in each of the needed sets, and then any.
func (l *listBox) fill(every []box, needed [][]box, n int) (value.Value, Verdict) {
	v := value.Value{Kind: value.Array, Items: []value.Value{}}
	if n > maxPicked {
		return v, Undecided
	}
	for i := range n {
		if i > len(needed) {
			v.Items = append(v.Items, v.Items[i-1])
			continue
		}
		set := every
		if i < len(needed) {
			set = needed[i]
		}
		item, found := l.witness(set)
		if found != Yes {
			return v, found
		}
		v.Items = append(v.Items, item)
	}
	return v, Yes
}

func (l *listBox) witness(set []box) (value.Value, Verdict) {
	if l.q == nil {
		return value.Value{Kind: value.Bool, Bool: true}, Yes
	}
	result := No
	for _, b := range set {
		switch found, v := l.q.witness(b); found {
		case Yes:
			return v, Yes
		case Undecided:
			result = Undecided
		}
	}
	return value.Value{}, result
}

func (c *compounds) has(v value.Value) bool {
	if v.Kind == value.Object {
		return c.objects.has(len(v.Members))
	}
	return slices.ContainsFunc(c.lists, func(l listBox) bool { return l.has(v.Items) })
}

func (l *listBox) has(items []value.Value) bool {
	in := func(set []box) func(value.Value) bool {
		return func(v value.Value) bool {
			return slices.ContainsFunc(set, func(b box) bool { return l.q.contains(b, v) })
		}
	}
	for _, set := range l.some {
		if !slices.ContainsFunc(items, in(set)) {
			return false
		}
	}
	outside := func(v value.Value) bool { return !in(l.every)(v) }
	return l.lengths.has(len(items)) && (l.every == nil || !slices.ContainsFunc(items, outside))
}

// contains reports whether a document is in a box.
func (q *question) contains(b box, doc value.Value) bool {
	return !slices.ContainsFunc(b, func(s side) bool {
		v, _ := doc.Get(q.places[s.place]...)
		return !s.has(v)
	})
}

// words describes the set, which is not empty.
func (c *compounds) words(name string) string {
	var parts []string
	switch {
	case c.objects.full():
		parts = append(parts, name+" is an object")
	case !c.objects.empty():
		parts = append(parts, name+" is an object with "+c.objects.words("member", "members"))
	}
	for i := range c.lists {
		parts = append(parts, c.lists[i].words(name))
	}
	return enumerate(parts, " or ")
}

func (l *listBox) words(name string) string {
	text := name + " is a list"
	if !l.lengths.full() && (len(l.some) == 0 || !slices.Equal(l.lengths.cuts, []int{1})) {
		text += " with " + l.lengths.words("element", "elements")
	}
	var parts []string
	if len(l.every) > 0 {
		parts = append(parts, "each element "+l.q.elementWords(l.every))
	}
	for _, set := range l.some {
		parts = append(parts, "some element "+l.q.elementWords(set))
	}
	for i, part := range parts {
		text += map[bool]string{true: " of which ", false: " and "}[i == 0] + part
	}
	return text
}

// isObject reports whether a domain has all objects and nothing else.
func (d *domain) isObject() bool {
	return d.atoms == atomCompound && d.numbers.empty() && d.texts.empty() && d.compounds != nil &&
		d.compounds.objects.full() && len(d.compounds.lists) == 0
}

// anyObject is the domain of all objects.
func anyObject() domain { return domain{}.onlyCompounds(&compounds{objects: allCounts(true)}) }

// elementWords describes a set of elements, after the word "element".
func (q *question) elementWords(set []box) string {
	var alternatives []string
	for _, b := range set {
		var all []string
		for _, s := range b {
			if s.place == 0 {
				if len(b) > 1 && s.isObject() {
					continue // the other sides say so
				}
				all = append(all, s.words("it"))
				continue
			}
			all = append(all, s.words("its "+nameOf(q.places[s.place])))
		}
		alternatives = append(alternatives, enumerate(all, " and "))
	}
	return "(" + enumerate(alternatives, " or ") + ")"
}
