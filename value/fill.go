package value

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fill does for a decoded Go value (see FromGo) what Scan does for text: it checks the whole
// value and fills sc.Slots and sc.Top. Integers, integral floats, json.Number, strings and
// booleans are read without allocations. The value must not change during the call or while the
// slots are in use.
func (s *Shape) Fill(doc any, lim Limits, sc *Scratch) error {
	sc.prepare(s.slots)
	f := filler{budget: newBudget(lim), nodes: s.nodes, sc: sc}
	if sc.Top = f.value(doc, root, f.lim.MaxDepth); sc.Top != Absent {
		return nil
	}
	sc.Reset()
	// Map iteration is random, so any of several errors may have occurred. FromGo always
	// returns the same one.
	if _, err := FromGo(doc, lim); err != nil {
		return err
	}
	return goError(UnsupportedType, "the value changed while it was read")
}

// Look is like Fill, for a map from a JSON decoder. It looks up and checks only the values of
// slots, and trusts the rest.
func (s *Shape) Look(doc map[string]any, lim Limits, sc *Scratch) error {
	sc.prepare(s.slots)
	sc.Top = Object
	l := looker{nodes: s.nodes, sc: sc, lim: lim}
	if l.found(doc, root, 0) {
		return nil
	}
	return s.Fill(doc, lim, sc) // which returns the error with its path
}

// looker visits only the paths of slots. It leaves everything except plain maps and leaves to a
// filler.
type looker struct {
	nodes []node
	sc    *Scratch
	lim   Limits
}

// look visits the children that lead to slots.
func (l *looker) look(m map[string]any, at int32, level int) bool {
	for _, head := range l.nodes[at].buckets {
		for c := head; c != dead; c = l.nodes[c].next {
			if v, ok := m[l.nodes[c].key]; ok && !l.found(v, c, level) {
				return false
			}
		}
	}

	return true
}

// found fills the slots at and below one value. It returns false if there is an error.
func (l *looker) found(v any, at int32, level int) bool {
	slot := l.nodes[at].slot
	if slot >= 0 && leaf(v, &l.sc.Slots[slot]) {
		return true
	}
	m, ok := v.(map[string]any)
	if !ok || m == nil {
		return l.fill(v, at, level)
	}
	if slot >= 0 {
		l.sc.Slots[slot].Kind, l.sc.Slots[slot].doc = Object, v
	}
	return level < l.lim.orDefault().MaxDepth && l.look(m, at, level+1)
}

func (l *looker) fill(v any, at int32, level int) bool {
	f := filler{budget: newBudget(l.lim), nodes: l.nodes, sc: l.sc}
	return f.value(v, at, f.lim.MaxDepth-level) != Absent
}

// leaf fills a slot with an ordinary scalar, which needs no accounting against the limits. It
// returns false for all other values.
func leaf(v any, s *Slot) bool {
	switch v := v.(type) {
	case float64:
		i, whole := wholeFloat(v)
		if whole {
			s.Kind, s.Num = Number, IntNum(i)
		}
		return whole
	case string:
		short := len(v) <= 256 && validText(v)
		if short {
			s.Kind, s.Text = String, v
		}
		return short
	case bool:
		s.Kind, s.Bool = Bool, v
		return true
	}

	return false
}

type filler struct {
	budget
	nodes []node
	sc    *Scratch
}

// value reads one value and returns its kind, or Absent if the value is refused.
func (f *filler) value(doc any, at int32, depth int) Kind {
	var k Kind
	slot := f.nodes[at].slot
	switch v := doc.(type) {
	case string:
		k = f.str(v, slot)
	case float64:
		k = f.float(v, slot)
	case bool:
		k = f.bool(v, slot)
	case map[string]any:
		k = f.members(v, at, depth)
	case nil:
		k = f.scalar(Null)
	case int:
		k = f.int(int64(v), slot)
	case []any:
		k = f.items(v, at, depth)
	case json.RawMessage:
		k = f.raw(v, at, depth)
	case Value:
		return f.tree(v, at, depth)
	default:
		k = f.number(doc, slot)
	}

	if slot >= 0 {
		f.sc.Slots[slot].Kind = k
		if k == Array || k == Object {
			f.sc.Slots[slot].doc = doc
		}
	}
	return k
}

// scalar accounts for a value without parts.
func (f *filler) scalar(k Kind) Kind {
	if !f.spend(1, 0) {
		return Absent
	}
	return k
}

func (f *filler) bool(b bool, slot int32) Kind {
	if slot >= 0 {
		f.sc.Slots[slot].Bool = b
	}
	return f.scalar(Bool)
}

func (f *filler) str(s string, slot int32) Kind {
	if !validText(s) || !f.spend(1, len(s)) {
		return Absent
	}
	if slot >= 0 {
		f.sc.Slots[slot].Text = s
	}
	return String
}

func (f *filler) float(x float64, slot int32) Kind {
	if i, ok := wholeFloat(x); ok {
		return f.int(i, slot)
	}
	n, ok := Num{}, !math.IsNaN(x) && !math.IsInf(x, 0)
	if ok && slot >= 0 {
		n, ok = FloatNum(x)
	}
	if !ok {
		return Absent
	}
	return f.num(n, slot)
}

func (f *filler) int(i int64, slot int32) Kind {
	if slot >= 0 {
		f.sc.Slots[slot].Num = IntNum(i)
	}
	return f.scalar(Number)
}

func (f *filler) number(v any, slot int32) Kind {
	n, err := goNumber(v)
	if err != nil {
		return Absent
	}
	return f.num(n, slot)
}

func (f *filler) num(n Num, slot int32) Kind {
	if slot >= 0 {
		f.sc.Slots[slot].Num = n
	}
	return f.scalar(Number)
}

func (f *filler) raw(raw json.RawMessage, at int32, depth int) Kind {
	if raw == nil {
		return f.scalar(Null)
	}
	if !f.spend(0, len(raw)) {
		return Absent
	}
	var p scanner
	p.start(raw, f.nodes, f.sc, f.lim)
	k := p.document(at, depth)
	f.sc.keep(p.keys, p.buf)
	if p.err != nil || !f.spend(p.values, 0) {
		return Absent
	}
	return k
}

func (f *filler) items(list []any, at int32, depth int) Kind {
	if list == nil {
		return f.scalar(Null)
	}
	if depth == 0 || !f.spend(1, 0) {
		return Absent
	}
	elements := f.nodes[at].elements
	for i, e := range list {
		child := dead
		if len(elements) > 0 && elements[0].index == i {
			child, elements = elements[0].node, elements[1:]
		}
		if f.value(e, child, depth-1) == Absent {
			return Absent
		}
	}

	return Array
}

func (f *filler) members(m map[string]any, at int32, depth int) Kind {
	if m == nil {
		return f.scalar(Null)
	}
	if depth == 0 || !f.spend(1, 0) {
		return Absent
	}
	outer := len(f.sc.names)
	for key, v := range m {
		hash, ok := f.key(key)
		if !ok {
			return Absent
		}
		if f.lim.FoldKeys {
			f.sc.names = append(f.sc.names, name{hash, key})
		}
		if f.value(v, find(f.nodes, &f.nodes[at], hash, key), depth-1) == Absent {
			return Absent
		}
	}

	return f.distinct(outer)
}

// key checks a key, accounts for it and returns its hash.
func (f *filler) key(key string) (hash uint32, ok bool) {
	first, last := ends(key)
	if len(key) <= 16 && (first|last)&highs == 0 {
		return mix(first, last), f.spend(0, len(key))
	}
	return hashKey(key), utf8.ValidString(key) && f.spend(0, len(key))
}

// name is a key of a Go map that is being read with Limits.FoldKeys. Exact duplicates can't
// occur in a map.
type name struct {
	hash uint32
	text string
}

// distinct returns Object if the keys of a map, which are the names from outer on, are
// distinct, and otherwise Absent. It removes them from the names.
func (f *filler) distinct(outer int) Kind {
	open := f.sc.names[outer:]
	kind := Object
	var seen uint64
	for i, n := range open {
		if b := bit(n.hash); seen&b == 0 {
			seen |= b
		} else if len(open) > manyKeys || len(n.text) > longKey || slices.ContainsFunc(open[:i], n.twin) {
			kind = f.distinctOfMany(open)
			break
		}
	}

	clear(open) // so that a reused Scratch does not retain the document
	f.sc.names = f.sc.names[:outer]
	return kind
}

// twin reports whether two names may be equal under folding.
func (n name) twin(other name) bool {
	return n.hash == other.hash &&
		(max(len(n.text), len(other.text)) > longKey || strings.EqualFold(n.text, other.text))
}

// distinctOfMany compares all keys of a large map, or of one with long keys.
func (f *filler) distinctOfMany(open []name) Kind {
	if _, _, found := twins(len(open), func(i int) string { return open[i].text }, true); found {
		return Absent
	}
	return Object
}

// tree checks a Value and fills the slots from it.
func (f *filler) tree(v Value, at int32, depth int) Kind {
	check := goReader{f.budget}
	if check.tree(v, depth) != nil {
		return Absent
	}
	f.budget = check.budget
	f.pick(v, at)
	return v.Kind
}

// pick fills the slots from a valid Value. It visits only the paths of slots.
func (f *filler) pick(v Value, at int32) {
	n := &f.nodes[at]
	if n.slot >= 0 {
		f.sc.Slots[n.slot] = SlotOf(v)
	}

	for _, head := range n.buckets {
		for c := head; c != dead; c = f.nodes[c].next {
			if child, ok := v.child(f.nodes[c].key); ok {
				f.pick(child, c)
			}
		}
	}
}
