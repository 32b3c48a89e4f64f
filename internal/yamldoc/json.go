package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader builds nodes from a text that encoding/json accepts, so it need not detect syntax
// errors. It detects problems that valid JSON may still have: duplicate keys, lone surrogates,
// depth.
type jsonReader struct {
	builder
	pos  int
	pure bool // the file name ends in .json, so no YAML reader will read it
}

func parseJSON(file string, s *source, lim Limits, f *findings) *Node {
	if err := json.Unmarshal(s.text, new(json.RawMessage)); err != nil {
		jsonSyntax(s, err, f)
		return nil
	}
	r := jsonReader{
		builder: builder{src: s, lim: lim, findings: *f},
		pure:    strings.HasSuffix(strings.ToLower(file), ".json"),
	}
	root := r.value(0)
	*f = r.findings
	return root
}

func jsonSyntax(s *source, err error, f *findings) {
	at := len(s.text)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		at = int(syntax.Offset) - 1
	}
	if len(bytes.TrimSpace(s.text)) == 0 {
		f.fail(ruleEmpty, start(), "the file holds no document", "a JSON object")
		return
	}
	f.fail(
		ruleSyntax,
		s.span(at, s.tokenEnd(at)),
		"this is not JSON: "+strings.TrimPrefix(err.Error(), "json: "),
		"JSON (RFC 8259)",
	)
}

// space skips white space.
func (r *jsonReader) space() {
	for isSpace(r.src.at(r.pos)) {
		r.pos++
	}
}

func (r *jsonReader) value(depth int) *Node {
	r.space()
	if r.size++; r.size > r.lim.MaxNodes {
		r.stop(ruleTooLarge, fmt.Sprintf("more than %d values in one file", r.lim.MaxNodes), "a smaller file")
	}

	if r.failed {
		return nil
	}
	switch c := r.src.at(r.pos); c {
	case '{', '[':
		return r.collection(depth, c)
	case '"':
		return r.string()
	}

	return r.word()
}

func (r *jsonReader) stop(rule, message, expected string) {
	r.fail(rule, r.src.span(r.pos, r.pos+1), message, expected)
	r.failed = true
}
func (r *jsonReader) collection(depth int, open byte) *Node {
	if depth >= r.lim.MaxDepth {
		r.stop(ruleTooDeep, fmt.Sprintf("more than %d levels of nesting", r.lim.MaxDepth), "a flatter document")
		return nil
	}

	n := r.new(Sequence, r.pos, r.pos)
	if open == '{' {
		n.Kind = Mapping
	}
	seen := keys{}
	for r.pos++; !r.failed; {
		r.space()
		switch c := r.src.at(r.pos); {
		case c == ']' || c == '}':
			r.pos++
			n.index = seen.index
			n.end = r.pos
			n.Range = r.src.span(n.start, n.end)
			return n
		case c == ',':
			r.pos++
		case n.Kind == Sequence:
			n.Items = append(n.Items, r.value(depth+1))
		default:
			r.field(n, &seen, depth)
		}
	}

	return nil
}

func (r *jsonReader) field(n *Node, seen *keys, depth int) {
	r.size++
	key := r.string()
	r.space()
	r.pos++ // the colon
	v := r.value(depth + 1)
	if first := seen.add(n.Fields, key); first != nil {
		duplicate(&r.findings, key, first)
		return
	}
	n.Fields = append(n.Fields, Field{key, v})
}

func (r *jsonReader) string() *Node {
	end := r.src.quoteEnd(r.pos, '"')
	n := r.new(String, r.pos, end)
	n.style = doubleQuoted
	n.Range = r.src.span(r.pos, end)
	raw := r.src.text[r.pos+1 : end-1]
	r.pos = end
	if bytes.IndexByte(raw, '\\') < 0 {
		n.Text = string(raw)
		return n
	}
	if err := json.Unmarshal(r.src.text[n.start:end], &n.Text); err != nil {
		r.fail(ruleSyntax, n.Range, "this is not a JSON string", "JSON (RFC 8259)")
	}
	r.surrogates(n, raw)
	return n
}

// surrogates refuses lone surrogates, which some readers drop and others replace.
func (r *jsonReader) surrogates(n *Node, raw []byte) {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		m := mapper{s: r.src}
		at := n.start + 1 + i - 1
		first := m.hex(at+2, 4)
		if !utf16.IsSurrogate(first) {
			continue
		}
		if r.src.at(at+6) == '\\' && r.src.at(at+7) == 'u' &&
			utf16.DecodeRune(first, m.hex(at+8, 4)) != utf8.RuneError {
			i += 6
			continue
		}
		r.fail(
			ruleCharacter,
			r.src.span(at, at+6),
			"half of a surrogate pair",
			"both halves, or the character itself",
		)
		return
	}
}

// word reads a number, true, false or null.
func (r *jsonReader) word() *Node {
	end := r.pos
	for end < len(r.src.text) && !isSpace(r.src.text[end]) && bytes.IndexByte([]byte(",[]{}"), r.src.text[end]) < 0 {
		end++
	}
	n := r.new(Null, r.pos, end)
	n.Text = string(r.src.text[r.pos:end])
	n.Range = r.src.span(r.pos, end)
	r.pos = end
	if r.pure {
		setResolved(&r.findings, n, resolve(n.Text))
	} else {
		r.resolve(n, false)
	}
	return n
}
