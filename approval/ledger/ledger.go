// Package ledger is the tamper-evident log of assent: every request,
// vote, decision and consumption is an entry, the entries of a tenant
// are the leaves of one Merkle tree (RFC 6962), and signed checkpoints
// fix the tree's root. Whoever keeps a checkpoint notices later if an
// entry was edited, dropped, moved or slipped in.
//
// An Entry is sealed into a Record: a public leaf, which the tree
// covers, and openings. A leaf holds only a salted digest of each
// sealed value (arguments, messages, reasons); the value itself is in
// the openings, which the tree does not cover. So an opening can be
// deleted at any time and the log still verifies.
//
// The package is pure: stores keep leaves, openings, hashes and
// checkpoints, and call it. Export files (Writer, Verify) and proofs
// (Proof, VerifyProof) are checked offline and need nothing but a
// public key.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/value"
)

// What a record may measure. A line of an export holds one of each, so
// these also bound what Verify keeps in memory.
const (
	maxLeaf     = 1 << 20  // bytes of a leaf
	maxOpenings = 32 << 20 // bytes of the openings of one entry, as JSON
	saltSize    = 16       // bytes
)

// timeLayout is RFC 3339 in UTC with exactly six digits of the second.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Entry is one thing that happened, as the asking service records it.
type Entry struct {
	Time    time.Time // cut to microseconds
	Tenant  string
	Type    string         // what happened, such as vote or consumption
	Subject string         // id of the request or grant that it happened to; may be empty
	Actor   string         // who did it; may be empty
	Facts   map[string]any // public for ever: what value.FromGo takes
	Sealed  map[string]string
}

// Record is a sealed entry, to be stored as it is. What stands beside
// the leaf repeats it, so that stores needn't parse what they file.
type Record struct {
	Tenant, Type, Subject string
	Time                  time.Time
	Leaf                  []byte // canonical JSON, never changes
	Openings              []byte // JSON, nil when there are none; see Redact
}

// SealedEntry is an entry with its place in the tree of its tenant, as
// stores return it.
type SealedEntry struct {
	Index    int64
	Leaf     []byte // ParseLeaf
	Openings []byte // nil when there are none, or when they were redacted
}

// Seal makes the record of an entry. Salts are read from rand, which
// must be cryptographically secure (crypto/rand.Reader), or else sealed
// values could be guessed from the leaf. Times without a year of four
// digits, texts that are not UTF-8 and what is too large to be exported
// are refused. Errors never show a value.
func (e Entry) Seal(rand io.Reader) (Record, error) {
	if err := e.check(); err != nil {
		return Record{}, fmt.Errorf("seal an entry: %w", err)
	}
	facts, err := e.facts()
	if err != nil {
		return Record{}, fmt.Errorf("seal an entry: facts: %w", err)
	}
	openings, err := e.openings(rand)
	if err != nil {
		return Record{}, fmt.Errorf("seal an entry: %w", err)
	}
	r := Record{
		Tenant:   e.Tenant,
		Type:     e.Type,
		Subject:  e.Subject,
		Time:     e.Time.UTC().Truncate(time.Microsecond),
		Leaf:     e.appendLeaf(make([]byte, 0, 512), facts, openings),
		Openings: appendOpenings(nil, openings),
	}
	if len(r.Leaf) > maxLeaf {
		return Record{}, fmt.Errorf(
			"seal an entry: the leaf has %d bytes, at most %d are allowed: seal what is long",
			len(r.Leaf),
			maxLeaf,
		)
	}

	if len(r.Openings) > maxOpenings {
		return Record{}, fmt.Errorf(
			"seal an entry: the openings have %d bytes, at most %d are allowed",
			len(r.Openings),
			maxOpenings,
		)
	}

	return r, nil
}

func (e Entry) check() error {
	if e.Time.Truncate(time.Microsecond).IsZero() {
		return errors.New("the entry has no time")
	}
	if year := e.Time.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the year %d can't be written in RFC 3339", year)
	}
	if e.Type == "" {
		return errors.New("the entry has no type")
	}
	for _, text := range []string{e.Type, e.Subject, e.Actor} {
		if !utf8.ValidString(text) {
			return errors.New("type, subject or actor is not valid UTF-8")
		}
	}
	return checkOrigin(Origin(e.Tenant))
}

// facts leaves room for the rest of the leaf, so that whatever is
// sealed can be parsed.
func (e Entry) facts() (value.Value, error) {
	if len(e.Facts) == 0 {
		return value.Value{Kind: value.Object}, nil
	}
	return value.FromGo(e.Facts, value.Limits{MaxBytes: maxLeaf / 2, MaxDepth: maxDepth - 2})
}

// openings salts the sealed values, in the order of their names.
func (e Entry) openings(rand io.Reader) ([]namedOpening, error) {
	if len(e.Sealed) == 0 {
		return nil, nil
	}
	salts := make([]byte, saltSize*len(e.Sealed))
	if _, err := io.ReadFull(rand, salts); err != nil {
		return nil, fmt.Errorf("read salts: %w", err)
	}
	out := make([]namedOpening, 0, len(e.Sealed))
	for name, v := range e.Sealed {
		if err := checkName(name); err != nil {
			return nil, err
		}
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("the sealed value %s is not valid UTF-8", name)
		}
		out = append(out, namedOpening{name, Opening{Value: v}})
	}

	sortOpenings(out)
	for i := range out {
		copy(out[i].Salt[:], salts[i*saltSize:])
	}
	return out, nil
}

// checkName keeps names of sealed values plain, so that their order is
// the same in every encoding.
func checkName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("the name of a sealed value has %d bytes, expected 1 to 64", len(name))
	}

	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return fmt.Errorf(
				"%q can't name a sealed value, expected lower-case letters, digits, dots, _ and -",
				name,
			)
		}
	}

	return nil
}

// appendLeaf writes the members in RFC 8785's order.
func (e Entry) appendLeaf(dst []byte, facts value.Value, openings []namedOpening) []byte {
	dst = appendText(append(dst, `{"actor":`...), e.Actor)
	dst = facts.AppendCanonical(append(dst, `,"facts":`...))
	dst = appendDigests(append(dst, `,"sealed":`...), openings)
	dst = appendText(append(dst, `,"subject":`...), e.Subject)
	dst = appendText(append(dst, `,"tenant":`...), e.Tenant)
	dst = e.Time.UTC().AppendFormat(append(dst, `,"time":"`...), timeLayout)
	dst = appendText(append(dst, `","type":`...), e.Type)
	return append(dst, `,"v":1}`...)
}

func appendDigests(dst []byte, openings []namedOpening) []byte {
	dst = append(dst, '{')
	for i, o := range openings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, o.name)
		digest := o.digest()
		dst = append(hex.AppendEncode(append(dst, `:"sha256:`...), digest[:]), '"')
	}

	return append(dst, '}')
}

func (o Opening) digest() value.Digest {
	return sha256.Sum256(append(append(make([]byte, 0, saltSize+len(o.Value)), o.Salt[:]...), o.Value...))
}

// appendText writes a JSON string as RFC 8785 does.
func appendText(dst []byte, s string) []byte {
	return value.Value{Kind: value.String, Text: s}.AppendCanonical(dst)
}
