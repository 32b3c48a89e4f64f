package jsonmsg

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Place is where a value stands in a text that was checked: its line
// and column, both from 1, columns in characters. The path names
// members, and elements by their decimal index. Where it leads nowhere,
// it is the place of the last value on the way that is there.
func Place(src []byte, path []string) (line, column int) {
	before := src[:Offset(src, path)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}

// Offset is Place in bytes.
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

// Path words a path: `tools[2].name`.
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
