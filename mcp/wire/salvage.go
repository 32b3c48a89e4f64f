package wire

import (
	"bytes"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// salvage returns the id and the method of a message that can't be parsed, so that whoever waits for
// an answer to it, or sent it, learns that at once. Both are absent if one of them occurs twice or
// the text is no object. It reads the text once, however deep it is.
func salvage(text []byte) (m Message) {
	if len(text) == 0 || text[0] != '{' {
		return m
	}
	seen := map[string]bool{}
	depth, key := 0, ""
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			key = ""
		case '"':
			end := closingQuote(text, i)
			next := skipBlanks(text, end)
			if depth == 1 && key == "" && next < len(text) && text[next] == ':' {
				key, _ = jsonmsg.ReadString(text[i:end])
				if next = skipBlanks(text, next+1); !m.salvaged(key, text[next:], seen) {
					return Message{}
				}
			}
			i = end - 1
		}
	}
	return m
}

// salvaged stores the id or the method that a text begins with. It returns false if there is
// another one already.
func (m *Message) salvaged(key string, text []byte, seen map[string]bool) bool {
	if key != "id" && key != "method" {
		return true
	}
	value := text[:min(len(text), maxIDText+1)]
	if end := bytes.IndexAny(value, ",} \t\r\n"); end >= 0 && text[0] != '"' {
		value = value[:end]
	} else if len(text) > 0 && text[0] == '"' {
		value = text[:closingQuote(text, 0)]
	}
	if key == "method" {
		m.Method, _ = jsonmsg.ReadString(value)
	} else if id, sound := ReadID(value); sound {
		m.ID = id
	}
	again := seen[key]
	seen[key] = true
	return !again
}

// closingQuote returns the place behind the string that begins at a quote.
func closingQuote(text []byte, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func skipBlanks(text []byte, at int) int {
	for at < len(text) && bytes.IndexByte([]byte(" \t\r\n"), text[at]) >= 0 {
		at++
	}
	return at
}
