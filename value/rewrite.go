package value

import "slices"

// AppendCanonicalText writes a JSON text in its canonical form, as
// Parse and AppendCanonical do, without building its tree: it takes
// memory for the keys of the objects that are open, and no more. The
// error is an *Error, and then dst is as it was.
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

// rewriter writes a sound text anew, in the order in which it stands,
// and puts the members of each object in order when the object is
// complete.
type rewriter struct {
	builder
	out     []byte
	open    []written // of the objects that are open
	whole   []byte    // an object while it is put in order
	decoded []byte    // a text without its escapes
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
	clear(w.open[outer:]) // keys with escapes have memory of their own
	w.open = w.open[:outer]
}

// order puts the members of an object that begins at start in order.
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

// str writes a string, and returns its text.
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
