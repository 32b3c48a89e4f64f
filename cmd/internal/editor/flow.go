package editor

import (
	"regexp"
	"strings"
)

// beginsFlow matches a line on which a value in braces or brackets begins.
var beginsFlow = regexp.MustCompile(`^([ ]*)((?:- +)*)(?:["']?([\w.$-]+)["']?: +)?([{\[].*)$`)

// mostFlow limits the lines of one value in braces.
const mostFlow = 200

// flow is the position at the end of a text in flow style.
type flow struct {
	path    []string // the fields that lead to it
	name    bool     // expects a field name; otherwise a value
	written string   // of the word there
}

// flowAt returns the value in braces or brackets that contains a position. It may begin on the same
// line or above.
func (d *document) flowAt(p position) (at flow, ok bool) {
	text := d.before(p)
	for i := p.Line; i >= 0 && p.Line-i < mostFlow; i-- {
		if i < p.Line {
			text = d.line(i) + "\n" + text
		}
		m := beginsFlow.FindStringSubmatch(d.line(i))
		if m == nil {
			continue
		}
		_, rest, _ := strings.Cut(text, m[0][:len(m[0])-len(m[4])])
		if at, ok = scanFlow(rest); !ok {
			continue
		}
		above := d.above(i, indent(m))
		if m[3] != "" {
			above = append(above, m[3])
		}
		at.path = append(above, at.path...)
		return at, true
	}

	return flow{}, false
}

// scanner reads a text in flow style up to its end.
type scanner struct {
	open   []frame
	word   strings.Builder
	quote  byte // that the word is in; 0 outside
	quoted bool // the word was in quotes
	note   bool // in a comment
}

// frame is an open object or list.
type frame struct {
	object bool
	field  string // whose value comes
	value  bool   // the name of a field was read
}

// scanFlow returns the position at the end of a text that begins with a brace or bracket. It
// returns false if all of them are closed.
func scanFlow(text string) (flow, bool) {
	var s scanner
	for i := range len(text) {
		after := byte(' ')
		if i+1 < len(text) {
			after = text[i+1]
		}
		s.take(text[i], after)
		if len(s.open) == 0 {
			return flow{}, false
		}
	}

	return s.end()
}

// take reads one byte; after is the next one.
func (s *scanner) take(c, after byte) {
	switch {
	case s.note:
		s.note = c != '\n'
	case s.quote != 0 && c == s.quote:
		s.quote, s.quoted = 0, true
	case s.quote != 0:
		s.word.WriteByte(c)
	case (c == '"' || c == '\'') && s.word.Len() == 0:
		s.quote = c
	case strings.IndexByte(" \t\r\n", c) >= 0:
		s.space(after)
	case strings.IndexByte("{}[],:", c) >= 0:
		s.sign(c, after)
	default:
		s.word.WriteByte(c)
	}
}

// space ends a word. A comment may begin after it.
func (s *scanner) space(after byte) {
	s.note = after == '#'
	if s.word.Len() > 0 {
		s.word.WriteByte(' ')
	}
}

// sign reads a character that opens, closes or separates.
func (s *scanner) sign(c, after byte) {
	switch {
	case c == '{' || c == '[':
		s.open = append(s.open, frame{object: c == '{'})
	case c == '}' || c == ']':
		s.open = s.open[:len(s.open)-1]
	case c == ',':
		last := &s.open[len(s.open)-1]
		last.field, last.value = "", false
	case !s.names() || !s.quoted && after != ' ' && after != '\n':
		s.word.WriteByte(c)
		return
	default:
		last := &s.open[len(s.open)-1]
		last.field, last.value = strings.TrimSpace(s.word.String()), true
	}

	s.word.Reset()
	s.quoted = false
}

// names reports whether a name of a field comes next.
func (s *scanner) names() bool {
	last := s.open[len(s.open)-1]
	return last.object && !last.value
}

func (s *scanner) end() (flow, bool) {
	if len(s.open) == 0 || s.note {
		return flow{}, false
	}
	at := flow{name: s.names(), written: s.word.String()}
	for _, f := range s.open {
		if f.value {
			at.path = append(at.path, f.field)
		}
	}

	return at, true
}
