// Package value reads the JSON arguments of a call in such a way that no two readers can
// disagree about them.
//
// Parse builds a tree. Shape.Scan validates raw bytes in one pass and fills only the slots that
// a plan reads, without decoding or allocating. Both refuse the same documents: those with
// duplicate keys at any depth (compared after unescaping), invalid UTF-8, lone surrogates,
// trailing data, or a size beyond the Limits. Numbers are exact decimals. AppendCanonical
// writes RFC 8785, and Digest returns its SHA-256.
package value

import "strings"

// Kind is the JSON type of a value. The zero value Absent means that there is no value.
type Kind uint8

// The kinds of values.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the JSON name of the kind.
func (k Kind) String() string {
	switch k {
	case Absent:
		return "absent"
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}

	return "unknown"
}

// Value is one JSON value in source order. Code that builds one must use valid UTF-8 and
// distinct keys; FromGo checks both.
type Value struct {
	Kind    Kind
	Bool    bool
	Text    string // String: decoded text
	Num     Num    // Number
	Items   []Value
	Members []Member
}

// Member is one key and value of an object.
type Member struct {
	Key   string
	Value Value
}

// Limits limits what Parse, Scan, FromGo and Fill accept. A zero field has the default of
// DefaultLimits. Because a tree is larger than its text, MaxValues is by default one per eight
// bytes of MaxBytes (but at least 4,096).
type Limits struct {
	MaxBytes  int // of the whole document; for Go values the bytes of strings and keys, and one per value
	MaxDepth  int // of nested arrays and objects
	MaxValues int // of the whole document, including arrays and objects
	// FoldKeys refuses objects with keys that differ only in case, which some readers consider
	// equal.
	FoldKeys bool
}

const (
	defaultMaxBytes = 2 << 20
	defaultMaxDepth = 128

	// Upper bounds for callers: offsets have 31 bits, and the scanner is recursive.
	ceilingBytes = 1 << 30
	ceilingDepth = 10_000
)

// DefaultLimits returns 2 MiB and 128 levels. Higher limits are reduced to 1 GiB and 10,000
// levels.
func DefaultLimits() Limits { return Limits{MaxBytes: defaultMaxBytes, MaxDepth: defaultMaxDepth} }

func (l Limits) orDefault() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = defaultMaxBytes
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = defaultMaxDepth
	}
	l.MaxBytes, l.MaxDepth = min(l.MaxBytes, ceilingBytes), min(l.MaxDepth, ceilingDepth)
	if l.MaxValues <= 0 {
		l.MaxValues = max(l.MaxBytes/8, 4096)
	}
	return l
}

// Get returns the value at a path. A segment is a key of an object, or the decimal index of an
// array (without sign and leading zeros). Without segments it returns v itself.
func (v Value) Get(segments ...string) (Value, bool) {
	for _, s := range segments {
		next, ok := v.child(s)
		if !ok {
			return Value{}, false
		}
		v = next
	}

	return v, v.Kind != Absent
}

// Lookup resolves a name of a template or a matcher. If the object v has the whole path as a
// key, it returns that value; otherwise the path is split at dots and resolved like Get. Partly
// literal keys are not tried (docs/design/001-semantics.md).
func (v Value) Lookup(path string) (Value, bool) {
	if v.Kind == Object {
		if found, ok := v.child(path); ok {
			return found, true
		}
	}
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, ".")
		next, ok := v.child(segment)
		if !ok {
			return Value{}, false
		}
		v = next
	}

	return v, true
}

func (v Value) child(segment string) (Value, bool) {
	switch v.Kind {
	case Object:
		for i := range v.Members {
			if v.Members[i].Key == segment {
				return v.Members[i].Value, true
			}
		}
	case Array:
		if i, ok := arrayIndex(segment); ok && i < len(v.Items) {
			return v.Items[i], true
		}
	}

	return Value{}, false
}

// arrayIndex parses a decimal index. Nine digits are enough for every document within the
// limits.
func arrayIndex(segment string) (int, bool) {
	if segment == "" || len(segment) > 9 || segment[0] == '0' && segment != "0" {
		return 0, false
	}
	n := 0
	for i := 0; i < len(segment); i++ {
		d := segment[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int(d)
	}

	return n, true
}
