// Package ledger is the tamper-evident log of assent: every request, vote, decision and consumption
// is an entry, the entries of a tenant are the leaves of one Merkle tree (RFC 6962), and signed
// checkpoints contain the tree's root. With an earlier checkpoint, an auditor can detect that an
// entry was edited, dropped, moved or inserted.
//
// An Entry is sealed into a Record: a public leaf, which the tree covers, and openings, which it
// doesn't. The leaf contains only a salted digest of each sealed value (arguments, messages,
// reasons); the value itself is in the openings. So an opening can be deleted at any time and the
// log can still be verified.
//
// The package does no I/O of its own: stores keep leaves, openings, hashes and checkpoints, and
// call it. Export files (Writer, Verify) and proofs (Proof, VerifyProof) can be verified offline
// with only a public key.
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

// Size limits of a record. A line of an export contains one leaf and one set of openings, so these
// limits also bound the memory that Verify needs.
const (
	maxLeaf     = 1 << 20  // bytes of a leaf
	maxOpenings = 32 << 20 // bytes of the openings of one entry, as JSON
	saltSize    = 16       // bytes
)

// timeLayout is RFC 3339 in UTC with exactly six decimal places of the second.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Entry is an event, as the asking service records it.
type Entry struct {
	Time    time.Time // truncated to microseconds
	Tenant  string
	Type    string         // what happened, such as vote or consumption
	Subject string         // id of the request or grant; may be empty
	Actor   string         // who did it; may be empty
	Facts   map[string]any // public for ever; values that value.FromGo accepts
	Sealed  map[string]string
}

// Record is a sealed entry, to be stored unchanged. The fields before Leaf repeat a part of it, so
// that stores needn't parse leaves.
type Record struct {
	Tenant, Type, Subject string
	Time                  time.Time
	Leaf                  []byte // canonical JSON, never changes
	Openings              []byte // JSON; nil if there are none; see Redact
}

// SealedEntry is an entry with its index in the tree of its tenant, as stores return it.
type SealedEntry struct {
	Index    int64
	Leaf     []byte // see ParseLeaf
	Openings []byte // nil if there are none or if they were redacted
}

// Seal creates the record of an entry. rand is the source of salts. It must be cryptographically
// secure (crypto/rand.Reader), because otherwise sealed values could be guessed from the leaf. Seal
// returns an error if the year does not have four digits, if a text is not UTF-8, or if the entry
// is too large to be exported. Errors never contain a value.
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

// facts limits the size of the facts so that the whole leaf stays within maxLeaf and can be parsed.
func (e Entry) facts() (value.Value, error) {
	if len(e.Facts) == 0 {
		return value.Value{Kind: value.Object}, nil
	}
	return value.FromGo(e.Facts, value.Limits{MaxBytes: maxLeaf / 2, MaxDepth: maxDepth - 2})
}

// openings adds salts to the sealed values, ordered by their names.
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

// checkName restricts the names of sealed values to plain characters, so that their order is the
// same in every encoding.
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

// appendLeaf writes the members in the order of RFC 8785.
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

// appendText writes a JSON string as in RFC 8785.
func appendText(dst []byte, s string) []byte {
	return value.Value{Kind: value.String, Text: s}.AppendCanonical(dst)
}
