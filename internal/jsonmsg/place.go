package jsonmsg

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Place returns the line and column of a value in a checked text, both from 1, with columns in
// characters. The path has names of members and decimal indexes of elements. If there is no
// such value, Place returns the position of the last value on the path that exists.
func Place(src []byte, path []string) (line, column int) {
	before := src[:Offset(src, path)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}

// Offset is like Place, but returns a byte offset.
func Offset(src []byte, path []string) int { return NewCursor(src, string(src)).follow(path) }

// follow returns the offset of the value at a path below the cursor.
func (c *Cursor) follow(path []string) int {
	at := c.Next()
	if len(path) == 0 || at == len(c.src) {
		return at
	}
	switch c.src[at] {
	case '[':
		for i := range c.Elements() {
			if strconv.Itoa(i) == path[0] {
				return c.follow(path[1:])
			}
		}
	case '{':
		for name := range c.Members() {
			if name == path[0] {
				return c.follow(path[1:])
			}
		}
	}

	return at
}

// Path formats a path: `tools[2].name`.
func Path(path []string) string {
	var b strings.Builder
	for i, s := range path {
		switch {
		case s != "" && strings.Trim(s, "0123456789") == "":
			b.WriteString("[" + s + "]")
		case i > 0:
			b.WriteString("." + s)
		default:
			b.WriteString(s)
		}
	}

	return b.String()
}
