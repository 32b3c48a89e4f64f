package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Header is an argument that requests by HTTP repeat in a header: Mcp-Param-NAME.
type Header struct {
	Name string   // without Mcp-Param-
	Path []string // of the argument
	Type string   // string, integer or boolean
}

// headerMark is the member of a property that marks such an argument.
const headerMark = "x-mcp-header"

// headers reads the marks of the input schema. It returns a problem if one of them is not allowed,
// or an empty string.
func (t *Tool) headers() string {
	if !bytes.Contains(t.InputSchema, []byte(headerMark)) && !bytes.Contains(t.InputSchema, []byte(`\u`)) {
		return ""
	}
	return t.marks(t.InputSchema, nil)
}

// marks reads the marks in the properties of a schema.
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

// mark adds a marked argument to the tool's headers. It returns a problem if the mark is not
// allowed.
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

// tokenRune reports whether a character is allowed in the name of a header (RFC 9110, token).
func tokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
