// Package yamldoc reads one YAML 1.2 document into a small tree with a source range on every
// node. It is the only package that imports gopkg.in/yaml.v3. It refuses anything that two
// readers could understand differently (duplicate keys, several documents, merge keys, tags
// that change a type, alias bombs) and reports scalars that a YAML 1.1 reader would understand
// differently (docs/design/001-semantics.md).
//
// yaml.v3 provides the shape of the tree, the start of nodes, and the text of scalars. This
// package does the rest: the type of a plain scalar, the end of nodes, the position of each
// byte of a scalar in the file, and comments.
package yamldoc

import (
	"encoding/json"
	"math"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// Kind is the type of a node in the YAML 1.2 core schema.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	String
	Sequence
	Mapping
)

// String returns the JSON Schema type of the kind: "null", "boolean", "number", "string",
// "array", "object".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Sequence:
		return "array"
	}

	return "object"
}

// Document is one parsed file. It is immutable and safe for concurrent use.
type Document struct {
	File     string
	Root     *Node
	Comments []Comment // in source order
}

// Comment is one comment of the file.
type Comment struct {
	Line  int
	Range diag.Range // from the '#' to the end of the line
	Text  string     // without the '#'
	Alone bool       // nothing else is on its line
}

// Node is one YAML value. An alias is represented by the node of its anchor, so a node may
// occur several times in the tree; its Range is the position of its text.
type Node struct {
	Kind   Kind
	Range  diag.Range
	Text   string    // scalars: the content (numbers: the source lexeme)
	Bool   bool      // for a Bool
	Num    value.Num // for a Number, if Finite
	Finite bool      // for a Number: false for .inf and .nan
	Items  []*Node   // for a Sequence
	Fields []Field   // for a Mapping: in source order, with unique keys

	index  map[string]int // positions in Fields after parsing; nil for few fields
	src    *source
	start  int // offset of the first byte of the node in src.text
	end    int // offset after its last byte
	style  style
	float  bool // for a Number: written with a point or an exponent, or not finite
	tagged bool // has a tag, which matches the type
}

// Field is one key and value of a mapping.
type Field struct {
	Key   *Node // always a String node
	Value *Node
}

// Get returns the value of a mapping's key, or nil.
func (n *Node) Get(key string) *Node {
	if f := n.Field(key); f != nil {
		return f.Value
	}
	return nil
}

// Field returns a mapping's field, or nil.
func (n *Node) Field(key string) *Field {
	if n == nil {
		return nil
	}
	if i, there := n.index[key]; there && i < len(n.Fields) && n.Fields[i].Key.Text == key {
		return &n.Fields[i]
	} else if !there && len(n.index) > 0 && len(n.index) == len(n.Fields) {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Key.Text == key {
			return &n.Fields[i]
		}
	}
	return nil
}

// Any returns the node as decoded Go values: nil, bool, json.Number, string, []any,
// map[string]any. Because JSON can't represent .inf and .nan, they are returned as float64.
func (n *Node) Any() any {
	switch n.Kind {
	case Bool:
		return n.Bool
	case Number:
		return n.number()
	case String:
		return n.Text
	case Sequence:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = item.Any()
		}
		return out
	case Mapping:
		out := make(map[string]any, len(n.Fields))
		for i := range n.Fields {
			out[n.Fields[i].Key.Text] = n.Fields[i].Value.Any()
		}
		return out
	}

	return nil
}

func (n *Node) number() any {
	if n.Finite {
		lexeme, _ := jsonNumber(n.Text)
		return json.Number(lexeme)
	}
	switch c := n.Text[0]; {
	case c == '-':
		return math.Inf(-1)
	case isNaN(n.Text):
		return math.NaN()
	}

	return math.Inf(1)
}
