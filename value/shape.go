package value

import (
	"cmp"
	"math/bits"
	"slices"
)

// A Shape has the paths that a plan reads of a document. It is immutable and safe for
// concurrent use. A Shape without slots still validates.
type Shape struct {
	nodes []node // nodes[dead], nodes[root], then their children
	slots int
}

// node is one segment on the path to a slot.
type node struct {
	key      string
	hash     uint32
	children uint64    // the bits of all children, see bit; most keys need no further lookup
	buckets  []int32   // first child by hash
	next     int32     // next child in the same bucket
	slot     int32     // -1 if the path only passes through
	elements []element // the children that can be array elements, by index
}

type element struct {
	index int
	node  int32
}

const (
	dead int32 = iota // nothing below is read
	root
)

// anything is a Shape without slots.
var anything = Shape{nodes: []node{dead: {slot: -1}, root: {slot: -1}}}

// ShapeBuilder collects paths. Its zero value is ready to use.
type ShapeBuilder struct {
	nodes []node
	index map[edge]int32
	slots int
}

type edge struct {
	parent int32
	key    string
}

// Add adds a path and returns the index of its slot. The same segments always have the same
// slot. Without segments it is the document itself. A segment is a key or, in an array, a
// decimal index (as in Value.Get). It is taken literally, including dots.
func (b *ShapeBuilder) Add(segments ...string) int {
	if b.nodes == nil {
		b.nodes = slices.Clone(anything.nodes)
		b.index = map[edge]int32{}
	}
	at := root
	for _, s := range segments {
		at = b.child(at, s)
	}
	if b.nodes[at].slot < 0 {
		b.nodes[at].slot = int32(b.slots)
		b.slots++
	}
	return int(b.nodes[at].slot)
}

func (b *ShapeBuilder) child(parent int32, key string) int32 {
	e := edge{parent, key}
	at, ok := b.index[e]
	if !ok {
		at = int32(len(b.nodes))
		b.index[e] = at
		b.nodes = append(b.nodes, node{key: key, hash: hashKey(key), slot: -1})
	}

	return at
}

// Build returns a shape of the paths added so far.
func (b *ShapeBuilder) Build() *Shape {
	if b.nodes == nil {
		return &anything
	}
	s := &Shape{nodes: slices.Clone(b.nodes), slots: b.slots}
	children := make([][]int32, len(s.nodes))
	for e, at := range b.index {
		children[e.parent] = append(children[e.parent], at)
	}
	for at, list := range children {
		s.link(&s.nodes[at], list)
	}
	return s
}

// link builds the indexes of a node's children by key and by array index.
func (s *Shape) link(n *node, children []int32) {
	if len(children) == 0 {
		return
	}
	n.buckets = make([]int32, 1<<bits.Len(uint(len(children)-1)))
	for _, at := range children {
		child := &s.nodes[at]
		n.children |= bit(child.hash)
		head := &n.buckets[bucket(child.hash, len(n.buckets))]
		child.next, *head = *head, at
		if i, ok := arrayIndex(child.key); ok {
			n.elements = append(n.elements, element{i, at})
		}
	}

	slices.SortFunc(n.elements, func(a, b element) int { return cmp.Compare(a.index, b.index) })
}

// find returns the child of n with this key, or dead.
func find(nodes []node, n *node, hash uint32, key string) int32 {
	if n.children&bit(hash) == 0 {
		return dead
	}
	at := n.buckets[bucket(hash, len(n.buckets))]
	for at != dead && (nodes[at].hash != hash || nodes[at].key != key) {
		at = nodes[at].next
	}
	return at
}

// Len returns the number of slots.
func (s *Shape) Len() int { return s.slots }

// Scratch has the result of one scan and its buffers. For frequent scans, keep one per worker.
// Slots and their texts are valid until the next Scan or Fill with the same Scratch, and as
// long as the document does not change.
type Scratch struct {
	Slots []Slot // by the index from Add; Absent if the document has no such value
	Top   Kind   // kind of the document itself

	keys  []keyRef // of the open objects
	names []name   // of the open Go maps
	buf   []byte   // unescaped strings
}

// Slot is the value at one path. Text is the decoded content of a string. Text and Num may
// share memory with the scanned document and with the Scratch. Value reads arrays and objects.
type Slot struct {
	Kind Kind
	Bool bool
	Text string // of an array or object in a scanned text: its source
	Num  Num
	doc  any // an array or object among Go values
}

// Value returns the whole value, including the parts of an array or an object.
func (s *Slot) Value() (Value, error) {
	switch {
	case s.Kind != Array && s.Kind != Object:
		return Value{Kind: s.Kind, Bool: s.Bool, Text: s.Text, Num: s.Num}, nil
	case s.doc != nil:
		return FromGo(s.doc, Limits{})
	}

	return Parse([]byte(s.Text), Limits{})
}

// SlotOf returns a slot that holds a value, for tests of the parts of an array.
func SlotOf(v Value) Slot {
	s := Slot{Kind: v.Kind, Bool: v.Bool, Text: v.Text, Num: v.Num}
	if v.Kind == Array || v.Kind == Object {
		s.doc = v
	}
	return s
}

// Reset removes references to the document, so that a pooled Scratch does not retain it.
func (sc *Scratch) Reset() { sc.prepare(len(sc.Slots)) }

// prepare resets sc to n Absent slots.
func (sc *Scratch) prepare(n int) {
	clear(sc.Slots)
	sc.Top = Absent
	sc.keys, sc.buf = sc.keys[:0], sc.buf[:0]
	clear(sc.names)
	if sc.names = sc.names[:0]; cap(sc.names) > mostKeys {
		sc.names = nil
	}
	if cap(sc.Slots) < n {
		sc.Slots = make([]Slot, n)
	}
	sc.Slots = sc.Slots[:n]
}

// Maximum sizes of buffers that are kept for the next scan, in keys and in bytes.
const (
	mostKeys  = 4 << 10
	mostBytes = 64 << 10
)

// keep stores buffers for the next scan, unless a large document made them too large.
func (sc *Scratch) keep(keys []keyRef, buf []byte) {
	if cap(keys) > mostKeys {
		keys = nil
	}
	if cap(buf) > mostBytes {
		buf = nil
	}
	sc.keys, sc.buf = keys, buf
}
