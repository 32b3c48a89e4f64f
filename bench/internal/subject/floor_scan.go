package subject

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"unsafe"
)

// maxDepth limits nesting, as in encoding/json.
const maxDepth = 10_000

// node has the wanted keys of one object.
type node struct{ entries []entry }

type entry struct {
	key   string
	slot  int // -1: only nested keys are wanted
	below *node
}

func (n *node) child(key string) *entry {
	for i := range n.entries {
		if n.entries[i].key == key {
			return &n.entries[i]
		}
	}
	n.entries = append(n.entries, entry{key: key, slot: -1})
	return &n.entries[len(n.entries)-1]
}

func (e *entry) inner() *node {
	if e.below == nil {
		e.below = &node{}
	}
	return e.below
}

// slot has the value of one argument. text aliases the scanned bytes, unless the string had
// escapes.
type slot struct {
	kind byte // 0 absent, 's' string, 'n' number, 'o' any other value
	num  float64
	text string
}

// scanner accepts exactly the texts that encoding/json accepts, with duplicate keys, of which
// the last one counts. Its functions take the offset to read at and return the offset after the
// text that they read, or -1. So offsets stay in registers.
type scanner struct {
	src   []byte
	slots []slot
	depth int
}

func (s *scanner) document(root *node) bool {
	i := s.space(0)
	if i < len(s.src) && s.src[i] == '{' {
		i = s.object(i, root)
	} else {
		i = s.value(i, nil)
	}
	return i >= 0 && s.space(i) == len(s.src)
}

// value reads one value into the slot of the entry. want is nil if no value below is wanted.
func (s *scanner) value(i int, want *entry) int {
	i = s.space(i)
	if i >= len(s.src) {
		return -1
	}
	switch c := s.src[i]; {
	case c == '"':
		return s.str(i, want)
	case c-'0' < 10 || c == '-':
		return s.number(i, want)
	case c == '{':
		s.put(want)
		if want == nil {
			return s.object(i, nil)
		}
		return s.object(i, want.below)
	case c == '[':
		s.put(want)
		return s.array(i)
	default:
		s.put(want)
		return s.word(i)
	}
}

// put stores a value that no matcher of the benchmark reads.
func (s *scanner) put(want *entry) {
	if want != nil && want.slot >= 0 {
		s.slots[want.slot] = slot{kind: 'o'}
	}
}

func (s *scanner) space(i int) int {
	for i < len(s.src) && s.src[i] <= ' ' && isSpace(s.src[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// at skips white space and returns the next byte with its offset. The byte is 0 at the end of
// the text.
func (s *scanner) at(i int) (byte, int) {
	if i = s.space(i); i < len(s.src) {
		return s.src[i], i
	}
	return 0, i
}

func (s *scanner) object(i int, n *node) int {
	if s.depth++; s.depth > maxDepth {
		return -1
	}
	c, i := s.at(i + 1)
	if c == '}' {
		s.depth--
		return i + 1
	}
	for c == '"' {
		end, escaped := s.text(i + 1)
		if end < 0 {
			return -1
		}
		want := n.find(s.src[i+1:end], escaped)
		if c, i = s.at(end + 1); c != ':' {
			return -1
		}
		if i = s.value(i+1, want); i < 0 {
			return -1
		}
		if c, i = s.at(i); c != ',' {
			break
		}
		c, i = s.at(i + 1)
	}

	if c != '}' {
		return -1
	}
	s.depth--
	return i + 1
}

func (n *node) find(key []byte, escaped bool) *entry {
	if n == nil {
		return nil
	}
	if escaped {
		key = []byte(unquote(key))
	}
	for i := range n.entries {
		if e := &n.entries[i]; string(key) == e.key {
			return e
		}
	}
	return nil
}

func (s *scanner) array(i int) int {
	if s.depth++; s.depth > maxDepth {
		return -1
	}
	c, i := s.at(i + 1)
	if c == ']' {
		s.depth--
		return i + 1
	}
	for {
		if i = s.value(i, nil); i < 0 {
			return -1
		}
		if c, i = s.at(i); c != ',' {
			break
		}
		i++
	}

	if c != ']' {
		return -1
	}
	s.depth--
	return i + 1
}

func (s *scanner) word(i int) int {
	for _, w := range [...]string{"true", "false", "null"} {
		if len(s.src)-i >= len(w) && string(s.src[i:i+len(w)]) == w {
			return i + len(w)
		}
	}
	return -1
}

func (s *scanner) str(i int, want *entry) int {
	end, escaped := s.text(i + 1)
	if end < 0 {
		return -1
	}
	if want == nil || want.slot < 0 {
		return end + 1
	}
	body := s.src[i+1 : end]
	if escaped {
		s.slots[want.slot] = slot{kind: 's', text: unquote(body)}
	} else {
		text := unsafe.String(unsafe.SliceData(body), len(body)) // the bytes exist longer than the decision
		s.slots[want.slot] = slot{kind: 's', text: text}
	}

	return end + 1
}

// text reads eight bytes at a time up to the closing quote, and returns its offset.
func (s *scanner) text(i int) (end int, escaped bool) {
	src := s.src
	for {
		for i+8 <= len(src) {
			m := special(binary.LittleEndian.Uint64(src[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}

		for i < len(src) && src[i] != '"' && src[i] != '\\' && src[i] >= 0x20 {
			i++
		}
		if i >= len(src) || src[i] < 0x20 {
			return -1, false
		}
		if src[i] == '"' {
			return i, escaped
		}
		n := escape(src[i:])
		if n == 0 {
			return -1, false
		}
		escaped = true
		i += n
	}
}

// special sets the top bit in each byte of w that is a quote, a backslash or a control
// character. Bits above the lowest set bit may be wrong.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote := w ^ (ones * '"')
	slash := w ^ (ones * '\\')
	return ((quote-ones) & ^quote | (slash-ones) & ^slash | (w-ones*0x20) & ^w) & tops
}

// escape returns the length of the escape sequence at the start of b. It returns 0 if b starts
// with no valid sequence.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0
			}
		}
		return 6
	}

	return 0
}

// unquote decodes a valid string body with escapes. They are rare, so it uses the standard
// library.
func unquote(body []byte) string {
	var out string
	must(json.Unmarshal(append(append([]byte{'"'}, body...), '"'), &out))
	return out
}

func (s *scanner) number(i int, want *entry) int {
	start, src := i, s.src
	if src[i] == '-' {
		i++
	}
	digits, mant := i, uint64(0)
	for i < len(src) && src[i]-'0' < 10 {
		mant = mant*10 + uint64(src[i]-'0')
		i++
	}
	if i == digits || src[digits] == '0' && i > digits+1 {
		return -1
	}
	integer := i-digits <= 15
	if i < len(src) && (src[i] == '.' || src[i]|0x20 == 'e') {
		integer = false
		if i = fraction(src, i); i < 0 {
			return -1
		}
	}

	if want == nil || want.slot < 0 {
		return i
	}
	n := float64(mant)
	if src[start] == '-' {
		n = -n
	}
	if !integer {
		var err error
		if n, err = strconv.ParseFloat(string(src[start:i]), 64); err != nil {
			return -1
		}
	}

	s.slots[want.slot] = slot{kind: 'n', num: n}
	return i
}

// fraction reads the fraction and exponent of a number, and returns the offset after it, or -1.
func fraction(src []byte, i int) int {
	digits := func() bool {
		from := i
		for i < len(src) && src[i]-'0' < 10 {
			i++
		}
		return i > from
	}
	if src[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		if i++; i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}

	return i
}
