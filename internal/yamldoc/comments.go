package yamldoc

import (
	"bytes"

	"github.com/assent-dev/assent/diag"
)

// comments collects the comments of a file while its tokens are processed in source order. A
// '#' can start a comment only between two tokens.
type comments struct {
	any  bool // the file has a '#' at all
	from int  // everything before this offset was processed
	list []Comment
}

func newComments(s *source) comments {
	return comments{any: bytes.IndexByte(s.text, '#') >= 0}
}

// token records a scalar or alias at [start,end), so that comments are searched before and
// after it but not inside.
func (c *comments) token(s *source, start, end int) {
	c.gap(s, start)
	c.from = max(c.from, end)
}

// scalar records a scalar. The header line of a block scalar may end in a comment.
func (c *comments) scalar(s *source, n *Node) {
	if !c.any {
		return
	}
	c.gap(s, n.start)
	if n.style == literal || n.style == folded {
		c.gap(s, s.lineEnd(n.start))
	}
	c.from = max(c.from, n.end)
}

// gap collects comments between the end of the last token and an offset.
func (c *comments) gap(s *source, to int) {
	if !c.any {
		return
	}
	start := c.from
	for at := start; at < to; at = c.from {
		hash := bytes.IndexByte(s.text[at:to], '#')
		if hash < 0 {
			break
		}
		at += hash
		if at > start && !startsComment(s.text[at-1]) {
			c.from = at + 1 // inside a tag or an anchor's name
			continue
		}
		c.from = s.lineEnd(at)
		c.add(s, at, c.from)
	}

	c.from = max(c.from, to)
}

func startsComment(before byte) bool {
	return isSpace(before) || bytes.IndexByte([]byte(",[]{}"), before) >= 0
}

func (c *comments) add(s *source, at, end int) {
	start := s.position(at)
	line := start.Line
	c.list = append(c.list, Comment{
		Line:  line,
		Range: diag.Range{Start: start, End: s.position(end)},
		Text:  string(s.text[at+1 : end]),
		Alone: len(bytes.TrimLeft(s.text[s.lines[line-1]:at], " \t")) == 0,
	})
}

// blanks records a property at [start,end), and returns the offset of the next token.
func (c *comments) blanks(s *source, start, end int) int {
	c.token(s, start, end)
	return skipSpace(s, end)
}

// skipSpace returns the offset of the first byte that is not white space or part of a comment.
func skipSpace(s *source, at int) int {
	for at < len(s.text) {
		switch b := s.text[at]; {
		case isSpace(b):
			at++
		case b == '#':
			at = s.lineEnd(at)
		default:
			return at
		}
	}

	return at
}

// closing returns the offset after the bracket that closes a flow collection whose last part
// ends at from.
func (c *comments) closing(s *source, from int) int {
	for at := skipSpace(s, from); at < len(s.text); at = skipSpace(s, at+1) {
		if s.text[at] == ']' || s.text[at] == '}' {
			c.token(s, at, at+1)
			return at + 1
		}
	}

	return len(s.text)
}
