package yamldoc

import (
	"bytes"
	"sort"
	"sync"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
)

// source is the text of a file with indexes to convert byte offsets to positions and back.
type source struct {
	text  []byte
	lines []int  // offset of each line's first byte
	wide  []bool // lines that have non-ASCII characters; nil if there are none
	runes []int  // only if wide is set: number of code points before each stretch-th byte

	mu   sync.Mutex
	maps map[*Node][]run // built by At on first use
}

// stretch is the number of bytes between two entries of source.runes, which limits the counting
// per lookup.
const stretch = 256

func newSource(text []byte) *source {
	s := &source{text: text}
	s.lines = make([]int, 1, 2+bytes.Count(text, []byte("\n")))
	ascii := true
	for i, c := range text {
		switch {
		case c == '\n', c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			s.lines = append(s.lines, i+1)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}

	if !ascii {
		s.countRunes()
	}
	return s
}

func (s *source) countRunes() {
	s.wide = make([]bool, len(s.lines))
	s.runes = make([]int, 0, len(s.text)/stretch+1)
	n, line := 0, 0
	for i, c := range s.text {
		if i%stretch == 0 {
			s.runes = append(s.runes, n)
		}
		for line+1 < len(s.lines) && s.lines[line+1] <= i {
			line++
		}
		if utf8.RuneStart(c) {
			n++
		}
		if c >= utf8.RuneSelf {
			s.wide[line] = true
		}
	}
}

// runesBefore returns the number of code points that start before offset. s.runes must be set.
func (s *source) runesBefore(offset int) int {
	k := min(offset/stretch, len(s.runes)-1)
	return s.runes[k] + utf8.RuneCount(s.text[k*stretch:offset]) - s.split(k, offset)
}

// split returns the number of continuation bytes at the start of the k-th stretch. They belong
// to a code point of the stretch before.
func (s *source) split(k, offset int) int {
	n := 0
	for i := k * stretch; i < offset && !utf8.RuneStart(s.text[i]); i++ {
		n++
	}
	return n
}

// runeStart returns the offset of the first byte of the code point at offset.
func (s *source) runeStart(offset int) int {
	for offset > 0 && offset < len(s.text) && !utf8.RuneStart(s.text[offset]) {
		offset--
	}
	return offset
}

// position converts an offset to a line and column.
func (s *source) position(offset int) diag.Position {
	offset = max(0, min(offset, len(s.text)))
	line := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > offset })
	start := s.lines[line-1]
	column := offset - start + 1
	switch {
	case s.wide == nil || !s.wide[line-1]:
	case column <= stretch:
		column = utf8.RuneCount(s.text[start:offset]) + 1
	default:
		column = s.runesBefore(offset) - s.runesBefore(start) + 1
	}

	return diag.Position{Line: line, Column: column}
}

// offset converts a line and column to an offset. Positions outside of the text are moved to
// its nearest end.
func (s *source) offset(line, column int) int {
	if line < 1 || line > len(s.lines) {
		return len(s.text)
	}
	start := s.lines[line-1]
	if s.wide == nil || !s.wide[line-1] {
		return min(start+column-1, len(s.text))
	}
	skip := column - 1 // code points to step over from start
	if column > stretch {
		want := s.runesBefore(start) + skip
		k := sort.Search(len(s.runes), func(i int) bool { return s.runes[i] > want }) - 1
		if at := k * stretch; at > start {
			start, skip = at+s.split(k, len(s.text)), want-s.runes[k]
		}
	}

	for ; skip > 0 && start < len(s.text); skip-- {
		_, size := utf8.DecodeRune(s.text[start:])
		start += size
	}
	return start
}

func (s *source) span(start, end int) diag.Range {
	return diag.Range{Start: s.position(start), End: s.position(end)}
}

// at returns the byte at an offset, or 0 outside of the text, which contains no NUL.
func (s *source) at(offset int) byte {
	if offset < 0 || offset >= len(s.text) {
		return 0
	}
	return s.text[offset]
}

// lineEnd returns the offset of the line break (or end of text) at or after offset.
func (s *source) lineEnd(offset int) int {
	for offset < len(s.text) && !isBreak(s.text[offset]) {
		offset++
	}
	return offset
}

// afterBreak returns the offset after the line break at offset.
func (s *source) afterBreak(offset int) int {
	if s.at(offset) == '\r' && s.at(offset+1) == '\n' {
		return offset + 2
	}
	return min(offset+1, len(s.text))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
func isBreak(c byte) bool { return c == '\n' || c == '\r' }
func isSpace(c byte) bool { return isBlank(c) || isBreak(c) }
