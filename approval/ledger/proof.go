package ledger

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/value"
)

const proofFormat = "assent-proof/1"

// Proof contains everything except the public key that an auditor needs to verify that a log
// contains an entry. Its JSON is one file.
type Proof struct {
	Index      int64
	Leaf       []byte
	Openings   []byte // may be redacted, as in the record
	Hashes     []Hash // from ProveInclusion, for the size of the checkpoint
	PublicKey  string
	Checkpoint []byte // signed note
}

// MarshalJSON writes the file. It returns an error if the openings can't be parsed or if a text is
// not UTF-8.
func (p Proof) MarshalJSON() ([]byte, error) {
	openings, err := ParseOpenings(p.Openings)
	if err != nil {
		return nil, fmt.Errorf("write a proof: openings: %w", err)
	}
	hashes := make([]any, len(p.Hashes))
	for i, h := range p.Hashes {
		hashes[i] = h.String()
	}
	v, err := value.FromGo(
		[]any{string(p.Leaf), hashes, p.PublicKey, string(p.Checkpoint)},
		value.Limits{MaxBytes: maxProof},
	)
	if err != nil {
		return nil, fmt.Errorf("write a proof: %w", err)
	}
	dst := []byte(`{"format":"` + proofFormat + `","index":` + strconv.FormatInt(p.Index, 10))
	dst = v.Items[0].AppendCanonical(append(dst, `,"leaf":`...))
	dst = appendOpeningsObject(append(dst, `,"openings":`...), openings)
	dst = v.Items[1].AppendCanonical(append(dst, `,"hashes":`...))
	dst = v.Items[2].AppendCanonical(append(dst, `,"public_key":`...))
	dst = v.Items[3].AppendCanonical(append(dst, `,"checkpoint":`...))
	return append(dst, '}'), nil
}

// UnmarshalJSON parses the file strictly: no member may be missing, duplicated, unknown or out of
// order. It does not verify the proof.
func (p *Proof) UnmarshalJSON(b []byte) error {
	doc, err := value.Parse(b, value.Limits{MaxBytes: maxProof, MaxDepth: 4})
	if err != nil {
		return err
	}
	m, err := members(doc, "format", "index", "leaf", "openings", "hashes", "public_key", "checkpoint")
	if err != nil {
		return err
	}
	if m[0].Text != proofFormat {
		return fmt.Errorf(`"format" is not %q`, proofFormat)
	}
	if m[2].Kind != value.String || m[5].Kind != value.String || m[6].Kind != value.String {
		return errors.New("leaf, public_key and checkpoint must be strings")
	}
	out := Proof{
		Leaf:       []byte(m[2].Text),
		PublicKey:  m[5].Text,
		Checkpoint: []byte(m[6].Text),
	}
	if out.Index, err = integer(m[1]); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	openings, err := openingsOf(m[3])
	if err != nil {
		return err
	}
	out.Openings = appendOpenings(nil, openings.sorted())
	if out.Hashes, err = hashesOf(m[4]); err != nil {
		return err
	}
	*p = out
	return nil
}

func hashesOf(v value.Value) ([]Hash, error) {
	if v.Kind != value.Array || len(v.Items) > 64 {
		return nil, errors.New("hashes must be an array of at most 64")
	}
	out := make([]Hash, len(v.Items))
	for i, item := range v.Items {
		h, err := ParseHash(item.Text)
		if err != nil {
			return nil, fmt.Errorf("hashes, %d: %w", i, err)
		}
		out[i] = h
	}

	return out, nil
}

// ProofReport is the result of a successful verification.
type ProofReport struct {
	Index      int64
	Leaf       Leaf
	Openings   Openings
	Redacted   int // number of sealed values without an opening
	Checkpoint Checkpoint
	PublicKey  string
	KeyPinned  bool // if false, the key came from the proof itself, which proves nothing about the signer
}

// VerifyProof verifies a proof file offline: the signature, the leaf's position in the tree, and
// every opening. One of the public keys must have signed the checkpoint. If there is no key, or
// only empty ones, the key in the proof is used, and KeyPinned is false. The error is a
// *VerifyError.
func VerifyProof(proof []byte, publicKeys ...string) (ProofReport, error) {
	var p Proof
	if err := p.UnmarshalJSON(proof); err != nil {
		return ProofReport{}, fault(-1, "the proof is malformed: %v", err)
	}
	var keys keyring
	if keys.pin("", publicKeys); !keys.trusts(p.PublicKey) {
		return ProofReport{}, fault(-1, "wrong key: found %s, expected %s", quote(p.PublicKey), keys.expected())
	}

	c, err := OpenCheckpoint(p.Checkpoint, p.PublicKey)
	if err != nil {
		return ProofReport{}, err
	}
	out := ProofReport{
		Index:      p.Index,
		Checkpoint: c,
		PublicKey:  p.PublicKey,
		KeyPinned:  len(keys.pinned) > 0,
	}
	if err := CheckInclusion(p.Hashes, c.Size, c.Root, p.Index, LeafHash(p.Leaf)); err != nil {
		return ProofReport{}, fault(p.Index, "%v", err)
	}
	if out.Openings, err = ParseOpenings(p.Openings); err != nil {
		return ProofReport{}, fault(p.Index, "openings: %v", err)
	}
	if out.Leaf, out.Redacted, err = open(p.Leaf, out.Openings, c.Origin); err != nil {
		return ProofReport{}, fault(p.Index, "%v", err)
	}
	return out, nil
}

// open parses a leaf and checks that it belongs to the log, and that the openings belong to the
// leaf.
func open(leaf []byte, openings Openings, origin string) (l Leaf, redacted int, err error) {
	if l, err = ParseLeaf(leaf); err != nil {
		return l, 0, fmt.Errorf("edited leaf: %w", err)
	}
	if Origin(l.Tenant) != origin {
		return l, 0, fmt.Errorf(
			"the entry belongs to %s, the checkpoint to %s: another tenant",
			quote(Origin(l.Tenant)),
			quote(origin),
		)
	}

	redacted, err = l.check(openings)
	return l, redacted, err
}
