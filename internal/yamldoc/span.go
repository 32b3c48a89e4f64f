package yamldoc

import (
	"bytes"
	"sort"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
)

// style is the notation of a scalar. It determines how the text maps to the file.
type style uint8

const (
	plain style = iota
	singleQuoted
	doubleQuoted
	literal
	folded
)

// run maps a part of a scalar's text to the part of the file it comes from. If both have the
// same length, they are the same bytes. Otherwise (an escape, a folded line break) the run is
// indivisible.
type run struct {
	text, textLen int
	src, srcLen   int
}

// At returns the range in the file of length bytes at offset in a scalar's Text, for any style
// with its escapes, line folding and indentation. Offsets outside of the text are moved into
// it. For a collection it returns the whole range.
func (n *Node) At(offset, length int) diag.Range {
	if n.src == nil || n.Kind >= Sequence {
		return n.Range
	}
	offset = max(0, min(offset, len(n.Text)))
	length = max(0, min(length, len(n.Text)-offset))
	runs := n.runs()
	if runs == nil {
		return n.Range
	}
	start := startOf(runs, offset)
	end := start
	if length > 0 {
		end = endOf(runs, offset+length-1)
	}
	return n.src.span(start, end)
}

// startOf returns the offset in the file of the text byte at offset. At the end of the text, it
// returns the end of its source.
func startOf(runs []run, offset int) int {
	i := sort.Search(len(runs), func(i int) bool { return runs[i].text+runs[i].textLen > offset })
	if i == len(runs) {
		last := runs[len(runs)-1]
		return last.src + last.srcLen
	}
	if r := runs[i]; r.textLen == r.srcLen {
		return r.src + offset - r.text
	}
	return runs[i].src
}

// endOf returns the offset in the file after the source of the text byte at offset.
func endOf(runs []run, offset int) int {
	i := sort.Search(len(runs), func(i int) bool { return runs[i].text+runs[i].textLen > offset })
	if r := runs[i]; r.textLen == r.srcLen {
		return r.src + offset - r.text + 1
	}
	return runs[i].src + runs[i].srcLen
}

// runs returns the map of the text, or nil if there is none; then only the node's range is
// known.
func (n *Node) runs() []run {
	if n.style == plain && n.end-n.start == len(n.Text) {
		return []run{{textLen: len(n.Text), src: n.start, srcLen: len(n.Text)}}
	}

	n.src.mu.Lock()
	defer n.src.mu.Unlock()
	if runs, ok := n.src.maps[n]; ok {
		return runs
	}
	runs := n.buildRuns()
	if n.src.maps == nil {
		n.src.maps = make(map[*Node][]run)
	}
	n.src.maps[n] = runs
	return runs
}

func (n *Node) buildRuns() []run {
	m := mapper{s: n.src, want: n.Text, pos: n.start}
	switch n.style {
	case plain, singleQuoted, doubleQuoted:
		m.flow(n.style)
	case literal, folded:
		m.block(n.style == folded)
	}

	if !m.complete() {
		return nil
	}
	if len(m.runs) == 0 { // the empty text: just after the opening quote or indicator
		m.runs = []run{{src: n.start + 1}}
	}
	return m.runs
}

// mapper walks the source of one scalar and records which bytes produced which text.
type mapper struct {
	s    *source
	want string // the text from yaml.v3, which the walk must reproduce
	runs []run
	made int // number of bytes of want reproduced so far
	pos  int // offset in the source
	bad  bool
}

func (m *mapper) complete() bool { return !m.bad && m.made == len(m.want) }

// same records n bytes at the source position that are unchanged in the text.
func (m *mapper) same(n int) {
	if n == 0 {
		return
	}
	if m.made+n > len(m.want) || m.want[m.made:m.made+n] != string(m.s.text[m.pos:m.pos+n]) {
		m.bad = true
		return
	}
	m.runs = append(m.runs, run{text: m.made, textLen: n, src: m.pos, srcLen: n})
	m.made += n
	m.pos += n
}

// piece records that srcLen bytes at src produced textLen bytes of text.
func (m *mapper) piece(textLen, src, srcLen int) {
	if textLen == 0 {
		return
	}
	if m.made+textLen > len(m.want) {
		m.bad = true
		return
	}
	m.runs = append(m.runs, run{text: m.made, textLen: textLen, src: src, srcLen: srcLen})
	m.made += textLen
}

// flow maps a plain or quoted scalar and leaves pos after it.
func (m *mapper) flow(st style) {
	quote := byte(0)
	if st != plain {
		quote = m.s.at(m.pos)
		m.pos++
	}
	joined := false // an escaped line break came just before: the following blanks are indentation
	for !m.bad && m.pos < len(m.s.text) {
		c := m.s.text[m.pos]
		switch {
		case st == plain && m.made == len(m.want):
			return
		case isSpace(c):
			m.space(joined)
			joined = false
		case st == doubleQuoted && c == '\\':
			joined = m.escape()
		case st == singleQuoted && c == quote && m.s.at(m.pos+1) == quote:
			m.piece(1, m.pos, 2)
			m.pos += 2
		case st != plain && c == quote:
			m.pos++
			return
		default:
			m.same(m.verbatim(st))
		}
	}
}

// verbatim returns the number of bytes from pos on that are unchanged in the text.
func (m *mapper) verbatim(st style) int {
	i := m.pos
	for i < len(m.s.text) && !isSpace(m.s.text[i]) {
		c := m.s.text[i]
		if st == doubleQuoted && (c == '\\' || c == '"') || st == singleQuoted && c == '\'' {
			break
		}
		if st == plain && i-m.pos == len(m.want)-m.made {
			break
		}
		i++
	}

	return i - m.pos
}

// space maps a span of white space. Without a line break it is unchanged. One break is folded
// into a space, and each further one is a line feed. After an escaped break, blanks are
// indentation.
func (m *mapper) space(joined bool) {
	start, end := m.pos, m.pos
	for end < len(m.s.text) && isSpace(m.s.text[end]) {
		end++
	}
	first := bytes.IndexAny(m.s.text[start:end], "\r\n")
	if first < 0 {
		if joined {
			m.pos = end
		} else {
			m.same(end - start)
		}
		return
	}

	at := start + first
	next := m.s.afterBreak(at)
	if !joined && !bytes.ContainsAny(m.s.text[next:end], "\r\n") {
		m.piece(1, at, next-at)
		m.pos = end
		return
	}
	if joined {
		next = start
	}
	for ; next < end; next++ {
		if isBreak(m.s.text[next]) {
			after := m.s.afterBreak(next)
			m.piece(1, next, after-next)
			next = after - 1
		}
	}

	m.pos = end
}

// escape maps one escape of a double-quoted scalar, and reports whether it was an escaped line
// break.
func (m *mapper) escape() bool {
	c := m.s.at(m.pos + 1)
	if isBreak(c) {
		m.pos = m.s.afterBreak(m.pos + 1)
		return true
	}
	textLen, srcLen := 1, 2
	switch c {
	case 'N', '_':
		textLen = 2
	case 'L', 'P':
		textLen = 3
	case 'x':
		textLen, srcLen = m.codePoint(2)
	case 'u':
		textLen, srcLen = m.codePoint(4)
	case 'U':
		textLen, srcLen = m.codePoint(8)
	}

	m.piece(textLen, m.pos, srcLen)
	m.pos += srcLen
	return false
}

// codePoint reads a hexadecimal escape at pos, together with the second half of a JSON
// surrogate pair.
func (m *mapper) codePoint(digits int) (textLen, srcLen int) {
	r := m.hex(m.pos+2, digits)
	if utf16.IsSurrogate(r) && m.s.at(m.pos+6) == '\\' && m.s.at(m.pos+7) == 'u' {
		return 4, 12
	}
	return max(1, utf8.RuneLen(r)), 2 + digits
}

func (m *mapper) hex(at, digits int) rune {
	if at+digits > len(m.s.text) {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(m.s.text[at:at+digits]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// block maps a literal or folded scalar, line by line.
func (m *mapper) block(fold bool) {
	indent, line := m.s.blockLayout(m.pos, m.want)
	if indent < 0 {
		m.bad = m.want != ""
		return
	}
	var breaks []int // line breaks that may or may not be part of the text
	wasBlank, first := false, true
	for line < len(m.s.text) && m.made < len(m.want) && !m.bad {
		from, end, inside := m.s.blockLine(line, indent)
		if !inside {
			break
		}
		if from < end {
			blank := isBlank(m.s.text[from])
			m.breaks(breaks, fold && !first && !wasBlank && !blank)
			breaks = breaks[:0]
			wasBlank, first = blank, false
			m.pos = from
			m.same(min(end-from, max(0, len(m.want)-m.made)))
		}

		if end < len(m.s.text) {
			breaks = append(breaks, end)
		}
		line = m.s.afterBreak(end)
	}

	m.breaks(breaks[:min(len(breaks), len(m.want)-m.made)], false)
}

// breaks records the line breaks between two lines of content. If they are folded, a single one
// is a space, and otherwise the first is dropped.
func (m *mapper) breaks(at []int, fold bool) {
	if fold && len(at) > 1 {
		at = at[1:]
	}
	for _, b := range at {
		m.piece(1, b, m.s.afterBreak(b)-b)
	}
}

// blockLayout returns the indentation of a block scalar whose indicator is at offset, and the
// offset of the first line after the header. The indentation is -1 if no line of the text shows
// it.
func (s *source) blockLayout(offset int, text string) (indent, line int) {
	line = s.afterBreak(s.lineEnd(offset))
	for at := line; at < len(s.text); at = s.afterBreak(s.lineEnd(at)) {
		if spaces := s.spaces(at); !isBreak(s.at(at+spaces)) && at+spaces < len(s.text) {
			return spaces - leadingSpaces(text), line
		}
	}
	return -1, line
}

// leadingSpaces returns the number of spaces before the first other character of the first line
// that has one. If there is none, it returns a huge number, so that an indentation computed
// from it is negative.
func leadingSpaces(text string) int {
	n := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ':
			n++
		case '\n':
			n = 0
		default:
			return n
		}
	}

	return 1 << 30
}

// blockLine returns the content of the block scalar's line at offset, and whether the line
// belongs to a block with that indentation.
func (s *source) blockLine(offset, indent int) (from, end int, inside bool) {
	spaces := s.spaces(offset)
	end = s.lineEnd(offset + spaces)
	if spaces < indent {
		return end, end, end == offset+spaces
	}
	return offset + indent, end, true
}

func (s *source) spaces(offset int) int {
	n := 0
	for s.at(offset+n) == ' ' {
		n++
	}
	return n
}

// scalarEnd returns the offset after a scalar that starts at offset.
func (s *source) scalarEnd(offset int, st style, text string) int {
	switch st {
	case singleQuoted:
		return s.quoteEnd(offset, '\'')
	case doubleQuoted:
		return s.quoteEnd(offset, '"')
	case literal, folded:
		return s.blockEnd(offset, text)
	}

	if end := offset + len(text); end <= len(s.text) && string(s.text[offset:end]) == text {
		return end
	}
	m := mapper{s: s, want: text, pos: offset}
	m.flow(plain)
	if m.bad {
		return offset
	}
	return m.pos
}

func (s *source) quoteEnd(offset int, quote byte) int {
	for i := offset + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\' && quote == '"':
			i++
		case c == quote && quote == '\'' && s.at(i+1) == quote:
			i++
		case c == quote:
			return i + 1
		}
	}

	return len(s.text)
}

// blockEnd returns the end of the last non-empty line of a block scalar.
func (s *source) blockEnd(offset int, text string) int {
	end := offset
	for end < len(s.text) && !isSpace(s.text[end]) {
		end++
	}
	indent, line := s.blockLayout(offset, text)
	if indent < 0 {
		return end
	}
	for line < len(s.text) {
		from, lineEnd, inside := s.blockLine(line, indent)
		if !inside {
			break
		}
		if from < lineEnd {
			end = lineEnd
		}
		line = s.afterBreak(lineEnd)
	}

	return end
}
