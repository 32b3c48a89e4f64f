package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Header is an argument that a request by HTTP carries in a header too:
// Mcp-Param-NAME.
type Header struct {
	Name string   // without Mcp-Param-
	Path []string // of the argument
	Type string   // string, integer or boolean
}

// The member of a property that marks it.
const headerMark = "x-mcp-header"

// headers reads the marks of the input schema; it says which of them
// can't stand there.
func (t *Tool) headers() string {
	if !bytes.Contains(t.InputSchema, []byte(headerMark)) && !bytes.Contains(t.InputSchema, []byte(`\u`)) {
		return ""
	}
	return t.marks(t.InputSchema, nil)
}

// marks reads the properties of a schema.
func (t *Tool) marks(schema []byte, path []string) string {
	for _, property := range jsonmsg.Members(jsonmsg.Get(schema, "properties")) {
		at := append(slices.Clone(path), property.Name)
		if problem := t.mark(property.Raw, at); problem != "" {
			return fmt.Sprintf("%s of the argument %q: %s", headerMark, strings.Join(at, "."), problem)
		}
		if problem := t.marks(property.Raw, at); problem != "" {
			return problem
		}
	}

	return ""
}

// mark keeps an argument that a request by HTTP carries in a header
// too, and says what is wrong with its mark.
func (t *Tool) mark(property []byte, path []string) string {
	raw := jsonmsg.Get(property, headerMark)
	if raw == nil {
		return ""
	}
	name, sound := jsonmsg.ReadString(raw)
	if !sound || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) }) {
		return "expected the name of a header: letters, digits and -"
	}
	kind, _ := jsonmsg.ReadString(jsonmsg.Get(property, "type"))
	if kind != "string" && kind != "integer" && kind != "boolean" {
		return "expected an argument of the type string, integer or boolean"
	}
	for _, other := range t.Headers {
		if strings.EqualFold(other.Name, name) {
			return fmt.Sprintf("the argument %q goes into that header already", strings.Join(other.Path, "."))
		}
	}

	t.Headers = append(t.Headers, Header{Name: name, Path: path, Type: kind})
	return ""
}

// tokenRune reports whether a character may stand in the name of a
// header (RFC 9110, token).
func tokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
