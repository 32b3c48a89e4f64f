package value

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Scan validates the whole text and fills sc.Slots and sc.Top in one pass. It does not allocate
// once sc has been used. On an error, which is an *Error, every slot is Absent. src must not
// change during the call or while the slots are in use.
func (s *Shape) Scan(src []byte, lim Limits, sc *Scratch) error {
	sc.prepare(s.slots)
	var p scanner
	p.start(src, s.nodes, sc, lim.orDefault())
	sc.Top = p.document(root, p.lim.MaxDepth)
	sc.keep(p.keys, p.buf)
	if p.err != nil {
		sc.Reset()
		return p.err
	}
	return nil
}

// A scanner reads one text. Its methods take an offset to start at and return the offset after
// what they read, or failed if err is set.
type scanner struct {
	src    []byte
	text   string // the same bytes
	nodes  []node
	slots  []Slot
	keys   []keyRef // of the open objects
	buf    []byte   // unescaped strings
	lim    Limits
	values int // number of values read
	err    *Error
}

const failed = -1

// start sets the fields one by one, because building and copying the whole struct takes half
// the time of a small document.
func (p *scanner) start(src []byte, nodes []node, sc *Scratch, lim Limits) {
	p.src, p.text = src, view(src)
	p.nodes, p.slots = nodes, sc.Slots
	p.keys, p.buf = sc.keys, sc.buf
	p.lim = lim
}

func (p *scanner) fail(code ErrorCode, offset int, detail string) int {
	if p.err == nil {
		p.err = newError(p.src, code, offset, detail)
	}
	return failed
}

// document reads the whole text and returns the kind of its value.
func (p *scanner) document(at int32, depth int) Kind {
	if len(p.src) > p.lim.MaxBytes {
		p.fail(TooLarge, p.lim.MaxBytes, overBytes(len(p.src), p.lim))
		return Absent
	}
	start := p.space(0)
	i := p.value(start, at, depth)
	if i < 0 {
		return Absent
	}
	if i = p.space(i); i < len(p.src) {
		p.fail(TrailingData, i, "expected the end of the text after the value, found "+found(p.text, i))
	}

	if p.values > p.lim.MaxValues {
		p.fail(TooLarge, start, overValues(p.values, p.lim))
	}
	return kindAt(p.src[start])
}

// kindAt returns the kind of a value that begins with c.
func kindAt(c byte) Kind {
	switch c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}

	return Number
}

// value reads one value. at is its node, depth the number of levels that may still be nested.
func (p *scanner) value(i int, at int32, depth int) int {
	src := p.src
	if i >= len(src) {
		return p.failValue(i)
	}
	p.values++
	switch src[i] {
	case '"':
		end, escaped := i+1, false
		for end+8 <= len(src) {
			if m := stops(binary.LittleEndian.Uint64(src[end:])); m != 0 {
				end += bits.TrailingZeros64(m) >> 3
				break
			}
			end += 8
		}

		if end >= len(src) || src[end] != '"' {
			if end, escaped = p.restOfString(i+1, end); end < 0 {
				return failed
			}
		}
		if slot := p.slot(at); slot != nil {
			slot.Kind, slot.Text = String, p.decoded(i+1, end, escaped)
		}
		return end + 1
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number(i, at)
	case '{':
		end := p.object(i, at, depth)
		p.compound(at, Object, i, end)
		return end
	case '[':
		end := p.array(i, at, depth)
		p.compound(at, Array, i, end)
		return end
	case 't':
		return p.literal(i, at, "true", Slot{Kind: Bool, Bool: true})
	case 'f':
		return p.literal(i, at, "false", Slot{Kind: Bool})
	case 'n':
		return p.literal(i, at, "null", Slot{Kind: Null})
	}

	return p.failValue(i)
}

// number reads short integers a word at a time, and leaves everything else to scanNum.
func (p *scanner) number(i int, at int32) int {
	src, first := p.src, i
	if src[i] == '-' {
		first++
	}
	if first+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[first:]) ^ '0'*ones
		n := bits.TrailingZeros64(notDigits(w)) &^ 7 // 8 bits per digit
		if n != 0 && n != 64 && (n == 8 || src[first] != '0') {
			end := first + n/8
			if c := src[end]; c != '.' && c|0x20 != 'e' {
				if slot := p.slot(at); slot != nil {
					slot.Kind = Number
					slot.Num = Num{
						lex:  p.text[i:end],
						mant: eightDigits(w << (64 - n)),
						neg:  first > i,
					}
				}

				return end
			}
		}
	}

	n, end, fault := scanNum(p.text, i)
	if fault != "" {
		return p.failNumber(end, fault)
	}
	if slot := p.slot(at); slot != nil {
		slot.Kind, slot.Num = Number, n
	}
	return end
}

// notDigits sets the high bit of the lowest byte of w that is over 9. Higher bits are
// undefined.
func notDigits(w uint64) uint64 { return (w + 0x76*ones | w) & highs }

// eightDigits returns the number whose decimal digits are the bytes of w, the first in the
// lowest byte.
func eightDigits(w uint64) uint64 {
	w = (w*10 + w>>8) & 0x00ff00ff00ff00ff
	w = (w*100 + w>>16) & 0x0000ffff0000ffff
	return (w*10000 + w>>32) & 0xffffffff
}

// compound fills the slot of an array or object that ends before an offset.
func (p *scanner) compound(at int32, kind Kind, start, end int) {
	if slot := p.slot(at); slot != nil && end >= 0 {
		slot.Kind, slot.Text = kind, p.text[start:end]
	}
}

// slot returns the slot of a node, or nil if it has none.
func (p *scanner) slot(at int32) *Slot {
	if slot := p.nodes[at].slot; slot >= 0 {
		return &p.slots[slot]
	}
	return nil
}

func (p *scanner) literal(i int, at int32, word string, s Slot) int {
	end := i + len(word)
	if end > len(p.text) || p.text[i:end] != word {
		return p.failValue(i)
	}
	if slot := p.slot(at); slot != nil {
		*slot = s
	}
	return end
}

// decoded returns the content of a string between two offsets.
func (p *scanner) decoded(start, end int, escaped bool) string {
	if !escaped {
		return p.text[start:end]
	}
	from := len(p.buf)
	p.buf = unescape(p.buf, p.text[start:end])
	return view(p.buf[from:])
}

func (p *scanner) array(i int, at int32, depth int) int {
	if depth == 0 {
		return p.failDepth(i)
	}
	if i = p.space(i + 1); i < len(p.src) && p.src[i] == ']' {
		return i + 1
	}
	elements := p.nodes[at].elements
	for n := 0; ; n++ {
		child := dead
		if len(elements) > 0 && elements[0].index == n {
			child, elements = elements[0].node, elements[1:]
		}
		if i = p.value(i, child, depth-1); i < 0 {
			return failed
		}
		i = p.space(i)
		switch {
		case i < len(p.src) && p.src[i] == ',':
			i = p.space(i + 1)
		case i < len(p.src) && p.src[i] == ']':
			return i + 1
		default:
			return p.fail(Syntax, i, "expected , or ] after an element, found "+found(p.text, i))
		}
	}
}

func (p *scanner) object(i int, at int32, depth int) int {
	if depth == 0 {
		return p.failDepth(i)
	}
	if i = p.space(i + 1); i < len(p.src) && p.src[i] == '}' {
		return i + 1
	}
	n := &p.nodes[at]
	outer := len(p.keys)
	var seen uint64 // the bits of all keys so far, see bit
	late := false   // look for repetitions at the end
	for {
		next, key := p.key(i)
		if next < 0 {
			return failed
		}
		if b := bit(key.hash); seen&b == 0 {
			seen |= b
		} else {
			repeated, later := p.repeats(outer, key)
			if repeated {
				return failed
			}
			late = late || later
		}

		p.keys = append(p.keys, key)
		child := dead
		if n.children&bit(key.hash) != 0 {
			child = find(p.nodes, n, key.hash, p.keyText(key))
		}
		if i = p.value(next, child, depth-1); i < 0 {
			return failed
		}
		i = p.space(i)
		switch {
		case i < len(p.src) && p.src[i] == ',':
			i = p.space(i + 1)
		case i < len(p.src) && p.src[i] == '}':
			if late && p.anyRepeated(outer) {
				return failed
			}
			p.keys = p.keys[:outer]
			return i + 1
		default:
			return p.fail(Syntax, i, "expected , or } after a member, found "+found(p.text, i))
		}
	}
}

// key reads a key and its colon, up to the value.
func (p *scanner) key(i int) (int, keyRef) {
	src := p.src
	if i >= len(src) || src[i] != '"' {
		return p.failKey(i), keyRef{}
	}
	start, end := i+1, i+1
	var first, last uint64 // see ends
	if start+8 <= len(src) {
		first = binary.LittleEndian.Uint64(src[start:])
		if m := stops(first); m != 0 {
			n := bits.TrailingZeros64(m) &^ 7
			first &= 1<<n - 1
			end += n / 8
		} else {
			end = plainEnd(src, start+8)
			last = binary.LittleEndian.Uint64(src[end-8:])
		}
	}

	key := keyRef{mix(first, last), uint32(start), uint32(end), uint32(i)}
	if end >= len(src) || src[end] != '"' {
		if end = p.oddKey(end, &key); end < 0 {
			return failed, key
		}
	}
	i = p.space(end + 1)
	if i >= len(src) || src[i] != ':' {
		return p.fail(Syntax, i, "expected : after the key, found "+found(p.text, i)), key
	}
	return p.space(i + 1), key
}

// oddKey finishes a key that is not all plain ASCII, or is close to the end of the text.
func (p *scanner) oddKey(i int, key *keyRef) (end int) {
	end, escaped := p.restOfString(int(key.start), i)
	if end < 0 {
		return failed
	}
	key.end = uint32(end)
	if escaped {
		text := p.decoded(int(key.start), end, true)
		key.start, key.end = uint32(len(p.buf)-len(text)), uint32(len(p.buf))
		key.place |= inBuf
	}
	key.hash = hashKey(p.keyText(*key))
	return end
}

// space skips white space, usually none or one character.
func (p *scanner) space(i int) int {
	for i < len(p.src) && p.src[i] <= ' ' && isSpace(p.src[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

const (
	ones  = 0x0101010101010101 // times a byte: that byte in all eight positions
	highs = 0x80 * ones
)

// stops sets the high bit of the lowest byte that is a quote, a backslash, a control character
// or not ASCII. Higher bits are undefined.
func stops(w uint64) uint64 {
	return (((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | (w - ' '*ones) | w) & highs
}

// textStops is like stops, except that it ignores non-ASCII bytes.
func textStops(w uint64) uint64 {
	quote, backslash := w^'"'*ones, w^'\\'*ones
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-' '*ones)&^w) & highs
}

// plainEnd returns the end of the run of plain ASCII that begins at i.
func plainEnd(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if m := stops(binary.LittleEndian.Uint64(src[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' && src[i] < 0x80 {
		i++
	}
	return i
}

// textEnd returns the end of the run of unescaped text that begins at i.
func textEnd(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if m := textStops(binary.LittleEndian.Uint64(src[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' {
		i++
	}
	return i
}

// view returns a string that shares memory with b. This is the only unsafe operation: b must
// not change while the string is in use. Scan requires this of its caller, and the Scratch's
// own buffer is only appended to until the next scan.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
