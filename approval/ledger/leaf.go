package ledger

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/value"
)

// maxDepth is the largest nesting depth of leaves and of lines in exports.
const maxDepth = 128

// Leaf is the public part of an entry, as the log contains it.
type Leaf struct {
	Time    time.Time
	Tenant  string
	Type    string
	Subject string
	Actor   string
	Facts   value.Value             // an object
	Sealed  map[string]value.Digest // salted digests of the sealed values by name
}

// ParseLeaf reads the leaf of a record. It accepts only the exact bytes that Seal writes, so that
// two readers can't disagree about an entry.
func ParseLeaf(leaf []byte) (Leaf, error) {
	doc, err := value.Parse(leaf, value.Limits{MaxBytes: maxLeaf, MaxDepth: maxDepth})
	if err != nil {
		return Leaf{}, err
	}
	if !bytes.Equal(doc.AppendCanonical(make([]byte, 0, len(leaf))), leaf) {
		return Leaf{}, errors.New("the leaf is not canonical JSON (RFC 8785)")
	}
	return leafOf(doc)
}

func leafOf(doc value.Value) (Leaf, error) {
	m, err := members(doc, "actor", "facts", "sealed", "subject", "tenant", "time", "type", "v")
	if err != nil {
		return Leaf{}, err
	}
	if v, err := integer(m[7]); err != nil || v != 1 {
		return Leaf{}, errors.New(`"v" is not 1: the leaf was written by another version`)
	}
	if m[1].Kind != value.Object {
		return Leaf{}, fmt.Errorf(`"facts" is of kind %s, expected an object`, m[1].Kind)
	}
	for i, key := range map[int]string{
		0: "actor",
		3: "subject",
		4: "tenant",
		5: "time",
		6: "type",
	} {
		if m[i].Kind != value.String {
			return Leaf{}, fmt.Errorf("%q is of kind %s, expected a string", key, m[i].Kind)
		}
	}

	l := Leaf{
		Tenant:  m[4].Text,
		Type:    m[6].Text,
		Subject: m[3].Text,
		Actor:   m[0].Text,
		Facts:   m[1],
	}
	if l.Time, err = parseTime(m[5].Text); err != nil {
		return Leaf{}, err
	}
	if l.Type == "" {
		return Leaf{}, errors.New(`"type" is empty`)
	}
	if err := checkOrigin(Origin(l.Tenant)); err != nil {
		return Leaf{}, err
	}
	l.Sealed, err = parseDigests(m[2])
	return l, err
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(timeLayout, s)
	if err != nil || t.IsZero() || t.Format(timeLayout) != s {
		return time.Time{}, fmt.Errorf(`"time" is not of the form %s`, timeLayout)
	}
	return t, nil
}

func parseDigests(v value.Value) (map[string]value.Digest, error) {
	if v.Kind != value.Object {
		return nil, fmt.Errorf(`"sealed" is of kind %s, expected an object`, v.Kind)
	}
	out := make(map[string]value.Digest, len(v.Members))
	for _, m := range v.Members {
		if err := checkName(m.Key); err != nil {
			return nil, err
		}
		d, ok := parseDigest(m.Value)
		if !ok {
			return nil, fmt.Errorf(
				"the digest of %s is not of the form sha256: and 64 lower-case hexadecimal digits",
				m.Key,
			)
		}

		out[m.Key] = d
	}

	return out, nil
}

func parseDigest(v value.Value) (d value.Digest, ok bool) {
	digits, ok := strings.CutPrefix(v.Text, "sha256:")
	if !ok || len(digits) != 2*len(d) {
		return d, false
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return d, false
	}
	return d, d.String() == v.Text
}

// members returns the values of an object that has exactly these keys, in this order.
func members(doc value.Value, keys ...string) ([]value.Value, error) {
	if doc.Kind != value.Object {
		return nil, fmt.Errorf("found a JSON value of kind %s, expected an object", doc.Kind)
	}
	var out []value.Value
	for i, m := range doc.Members {
		if i >= len(keys) || m.Key != keys[i] {
			return nil, fmt.Errorf(
				"unexpected member %s, expected exactly %s",
				quote(m.Key),
				strings.Join(keys, ", "),
			)
		}

		out = append(out, m.Value)
	}

	if len(out) < len(keys) {
		return nil, fmt.Errorf(
			"the member %q is missing, expected exactly %s",
			keys[len(out)],
			strings.Join(keys, ", "),
		)
	}

	return out, nil
}
