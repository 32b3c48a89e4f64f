package ledger

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/value"
)

// Opening is a sealed value with the salt that prevents guessing the value from its digest. The
// digest in the leaf is the SHA-256 of the salt's bytes followed by the value's bytes.
type Opening struct {
	Salt  [saltSize]byte
	Value string
}

// Openings are the openings of one entry, by name.
type Openings map[string]Opening

type namedOpening struct {
	name string
	Opening
}

// ParseOpenings reads the openings of a record: an object of {"salt":…,"value":…} by name. Empty
// input means no openings. White space and the order of members may vary, because databases may
// change them; everything else is strict.
func ParseOpenings(openings []byte) (Openings, error) {
	if len(openings) == 0 {
		return Openings{}, nil
	}
	doc, err := value.Parse(openings, value.Limits{MaxBytes: maxOpenings, MaxDepth: 2})
	if err != nil {
		return nil, err
	}
	return openingsOf(doc)
}

func openingsOf(doc value.Value) (Openings, error) {
	if doc.Kind != value.Object {
		return nil, fmt.Errorf("openings of kind %s, expected an object", doc.Kind)
	}
	out := make(Openings, len(doc.Members))
	for _, m := range doc.Members {
		if err := checkName(m.Key); err != nil {
			return nil, err
		}
		o, err := openingOf(m.Value)
		if err != nil {
			return nil, fmt.Errorf("the opening of %s: %w", m.Key, err)
		}
		out[m.Key] = o
	}

	return out, nil
}

func openingOf(doc value.Value) (Opening, error) {
	slices.SortFunc(doc.Members, func(a, b value.Member) int { return cmp.Compare(a.Key, b.Key) })
	m, err := members(doc, "salt", "value")
	if err != nil {
		return Opening{}, err
	}
	salt, ok := decode64(m[0].Text)
	if !ok || len(salt) != saltSize {
		return Opening{}, fmt.Errorf("the salt is not base64 of %d bytes", saltSize)
	}
	if m[1].Kind != value.String {
		return Opening{}, fmt.Errorf("a value of kind %s, expected a string", m[1].Kind)
	}
	return Opening{[saltSize]byte(salt), m[1].Text}, nil
}

// decode64 decodes base64. It accepts only the canonical spelling.
func decode64(s string) ([]byte, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return b, err == nil && base64.StdEncoding.EncodeToString(b) == s
}

// sorted returns the openings in the order in which they are written.
func (o Openings) sorted() []namedOpening {
	out := make([]namedOpening, 0, len(o))
	for name, opening := range o {
		out = append(out, namedOpening{name, opening})
	}
	sortOpenings(out)
	return out
}

func sortOpenings(o []namedOpening) {
	slices.SortFunc(o, func(a, b namedOpening) int { return cmp.Compare(a.name, b.name) })
}

// appendOpenings writes openings in canonical form. It writes nothing if there are none.
func appendOpenings(dst []byte, openings []namedOpening) []byte {
	need := 0
	for _, o := range openings {
		need += len(o.name) + len(o.Value) + len(o.Value)/8 + 64 // the constant covers the syntax
	}
	dst = slices.Grow(dst, need)
	for i, o := range openings {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		dst = appendText(append(dst, open), o.name)
		dst = base64.StdEncoding.AppendEncode(append(dst, `:{"salt":"`...), o.Salt[:])
		dst = append(appendText(append(dst, `","value":`...), o.Value), '}')
	}

	if len(openings) > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// Check verifies that every opening matches its digest in the leaf. It returns the number of sealed
// values without an opening; these were redacted, which is not an error.
func Check(leaf, openings []byte) (redacted int, err error) {
	l, err := ParseLeaf(leaf)
	if err != nil {
		return 0, err
	}
	o, err := ParseOpenings(openings)
	if err != nil {
		return 0, err
	}
	return l.check(o)
}

func (l Leaf) check(openings Openings) (redacted int, err error) {
	for _, o := range openings.sorted() {
		digest, ok := l.Sealed[o.name]
		if !ok {
			return 0, fmt.Errorf("the opening of %s belongs to nothing that the leaf seals", o.name)
		}

		if digest != o.digest() {
			return 0, fmt.Errorf(
				"the opening of %s does not match the leaf: its value or salt was changed",
				o.name,
			)
		}
	}

	return len(l.Sealed) - len(openings), nil
}

// Redact removes the openings with these names permanently and returns the rest, or nil if none are
// left. Names without an opening are ignored, because they may have been redacted before.
func Redact(openings []byte, names ...string) ([]byte, error) {
	o, err := ParseOpenings(openings)
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	for _, name := range names {
		delete(o, name)
	}
	return appendOpenings(nil, o.sorted()), nil
}
