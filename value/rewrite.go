package value

import "slices"

// AppendCanonicalText appends the canonical form of a JSON text, like Parse and
// AppendCanonical, but without building a tree: it needs memory only for the keys of the open
// objects. The error is an *Error, and dst is then returned unchanged.
func AppendCanonicalText(dst, src []byte, lim Limits) ([]byte, error) {
	lim = lim.orDefault()
	var keys [32]keyRef
	p := scanner{
		src:   src,
		text:  view(src),
		nodes: anything.nodes,
		lim:   lim,
		keys:  keys[:0],
	}
	if p.document(root, lim.MaxDepth); p.err != nil {
		return dst, p.err
	}
	w := rewriter{builder: builder{src: src, text: view(src)}, out: dst}
	w.value()
	return w.out, nil
}

// rewriter writes a valid text in source order, and sorts the members of each object when the
// object is complete.
type rewriter struct {
	builder
	out     []byte
	open    []written // members of the open objects
	whole   []byte    // copy of an object while it is sorted
	decoded []byte    // a string without its escapes
}

// written is a member that was written.
type written struct {
	key        string
	start, end int // in out, without a comma
}

func (w *rewriter) value() {
	w.space()
	switch w.src[w.pos] {
	case '"':
		w.str()
	case '{':
		w.object()
	case '[':
		w.array()
	case 't', 'n':
		w.word(len("true"))
	case 'f':
		w.word(len("false"))
	default:
		n, end, _ := scanNum(w.text, w.pos)
		w.out, w.pos = n.appendCanonical(w.out), end
	}
}

func (w *rewriter) word(n int) {
	w.out = append(w.out, w.src[w.pos:w.pos+n]...)
	w.pos += n
}

func (w *rewriter) array() {
	w.out = append(w.out, '[')
	for n := 0; w.more(); n++ {
		w.out = separate(w.out, n)
		w.value()
	}
	w.out = append(w.out, ']')
}

func (w *rewriter) object() {
	start, outer := len(w.out), len(w.open)
	w.out = append(w.out, '{')
	for n := 0; w.more(); n++ {
		w.out = separate(w.out, n)
		m := written{start: len(w.out)}
		m.key = w.str()
		w.space()
		w.pos++ // the colon
		w.out = append(w.out, ':')
		w.value()
		m.end = len(w.out)
		w.open = append(w.open, m)
	}

	w.out = append(w.out, '}')
	w.order(start, w.open[outer:])
	clear(w.open[outer:]) // keys with escapes have their own memory
	w.open = w.open[:outer]
}

// order sorts the members of the object that begins at start.
func (w *rewriter) order(start int, members []written) {
	byKey := func(a, b written) int { return cmpUTF16(a.key, b.key) }
	if slices.IsSortedFunc(members, byKey) {
		return
	}
	slices.SortFunc(members, byKey)
	w.whole = append(w.whole[:0], w.out[start:]...)
	w.out = append(w.out[:start], '{')
	for i, m := range members {
		w.out = append(separate(w.out, i), w.whole[m.start-start:m.end-start]...)
	}
	w.out = append(w.out, '}')
}

// str writes a string, and returns its content.
func (w *rewriter) str() string {
	text, escaped := w.quoted()
	if !escaped {
		w.out = append(append(append(w.out, '"'), text...), '"')
		return text
	}
	w.decoded = unescape(w.decoded[:0], text)
	w.out = appendString(w.out, view(w.decoded))
	return string(w.decoded)
}
