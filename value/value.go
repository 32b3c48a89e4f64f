// Package value reads the JSON arguments of a call so that no two
// readers can disagree about them.
//
// Parse builds a tree; Shape.Scan validates raw bytes in one pass and
// fills only the slots a plan reads, without decoding or allocating.
// Both refuse the same documents: duplicate keys at any depth (compared
// after unescaping), invalid UTF-8, lone surrogates, trailing data, and
// anything over the Limits. Numbers are exact decimals. AppendCanonical
// writes RFC 8785, Digest its SHA-256.
package value

import "strings"

// Kind is the JSON type of a value. Absent is the zero value: nothing
// is there.
type Kind uint8

// The kinds of a value.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String names the kind as JSON does.
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

// Value is one JSON value in source order. Whoever builds one by hand
// keeps texts valid UTF-8 and keys distinct; FromGo checks both.
type Value struct {
	Kind    Kind
	Bool    bool
	Text    string // String: decoded text
	Num     Num    // Number
	Items   []Value
	Members []Member
}

// Member is one key and value of an object, in source order.
type Member struct {
	Key   string
	Value Value
}

// Limits bounds what Parse, Scan, FromGo and Fill accept. A zero field
// takes the default of DefaultLimits. Since a tree is larger than its
// text, a document may by default hold no more than one value per eight
// of MaxBytes (but always 4,096).
type Limits struct {
	MaxBytes  int // of the whole document; for Go values the bytes of texts and keys and one per value
	MaxDepth  int // of nested arrays and objects
	MaxValues int // of the whole document, arrays and objects counted too
	// FoldKeys refuses keys of one object that differ in case alone,
	// which some readers take for one.
	FoldKeys bool
}

const (
	defaultMaxBytes = 8 << 20
	defaultMaxDepth = 128

	// Above these no caller can go: offsets are kept in 31 bits, and
	// the scanner recurses.
	ceilingBytes = 1 << 30
	ceilingDepth = 10_000
)

// DefaultLimits is 8 MiB and 128 levels. Larger wishes are cut at 1 GiB
// and 10,000 levels.
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

// Get walks down the segments: a key of an object, or the decimal index
// of an array (no sign, no leading zero). Without segments it is v
// itself.
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

// Lookup finds a template's or a matcher's name: the whole path as a
// literal key of the object v, else its dotted segments as Get walks
// them. Half-literal keys are not tried (docs/design/001-semantics.md).
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

// arrayIndex reads a decimal index. Nine digits are more elements than
// any document holds within the limits.
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
