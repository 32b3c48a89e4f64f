package value

import (
	"cmp"
	"math/bits"
	"slices"
)

// A Shape knows which places of a document a plan reads. It is
// immutable and safe for concurrent use. One without slots still
// validates.
type Shape struct {
	nodes []node // nodes[dead], nodes[root], then their children
	slots int
}

// node is one place on the way to a slot.
type node struct {
	key      string
	hash     uint32
	children uint64    // a bit for every child, see bit: most keys need no further look
	buckets  []int32   // first child by hash
	next     int32     // further child in the same bucket
	slot     int32     // -1 when the place is only passed
	elements []element // the children that can be array elements, by index
}

type element struct {
	index int
	node  int32
}

const (
	dead int32 = iota // where nothing below is read
	root
)

// anything is a Shape that reads nothing.
var anything = Shape{nodes: []node{dead: {slot: -1}, root: {slot: -1}}}

// ShapeBuilder collects the places. Its zero value is ready.
type ShapeBuilder struct {
	nodes []node
	index map[edge]int32
	slots int
}

type edge struct {
	parent int32
	key    string
}

// Add registers a place and returns the index of its slot: the same
// segments have the same slot. No segments mean the document itself. A
// segment is a key, and in an array a decimal index (as in Value.Get);
// it is taken literally, dots and all.
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

// Build returns the shape of what was added so far.
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

// link makes the children of a node easy to find by key and by index.
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

// Len is the number of slots.
func (s *Shape) Len() int { return s.slots }

// Scratch holds what one scan finds and its buffers. Whoever scans
// often keeps one per worker. Slots and their texts are valid until the
// next Scan or Fill with it, and as long as the document is not
// changed.
type Scratch struct {
	Slots []Slot // by the index that Add returned; Absent where the document has nothing
	Top   Kind   // of the document itself

	keys  []keyRef // of the objects that are open
	names []name   // of the Go maps that are open
	buf   []byte   // texts that had to be unescaped
}

// Slot is what a scan found at one path. Text is the decoded text of a
// string; it may share memory with the scanned document and with the
// Scratch, as may Num.
type Slot struct {
	Kind Kind
	Bool bool
	Text string
	Num  Num
}

// Reset forgets the document, so that a pooled Scratch does not keep it
// alive.
func (sc *Scratch) Reset() { sc.prepare(len(sc.Slots)) }

// prepare makes n Absent slots.
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

// What is kept of buffers from one scan to the next, in keys and in bytes.
const (
	mostKeys  = 4 << 10
	mostBytes = 64 << 10
)

// keep takes buffers back, unless one large document made them large:
// then the next scan begins with new ones.
func (sc *Scratch) keep(keys []keyRef, buf []byte) {
	if cap(keys) > mostKeys {
		keys = nil
	}
	if cap(buf) > mostBytes {
		buf = nil
	}
	sc.keys, sc.buf = keys, buf
}
