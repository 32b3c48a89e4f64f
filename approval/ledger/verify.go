package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/assent-dev/assent/value"
)

// VerifyOptions configures Verify.
type VerifyOptions struct {
	PublicKey string // pinned key; if empty, the header's own key is used, and KeyPinned is false
	// Also lists further pinned keys. The header's key must be a pinned key, or must have replaced
	// one by handovers.
	Also []string
	// Since lists older signed checkpoints from the auditor or a witness. The log must start with
	// the entries that each of them covers.
	Since [][]byte

	// Each, if set, is called for every entry in order while the file is being read. The entries
	// are only proven once Verify returns without an error. If Each returns an error, Verify stops.
	Each func(index int64, leaf Leaf, openings Openings) error
}

// Report is the result of a successful verification.
type Report struct {
	Entries    int64
	Redacted   int64 // number of sealed values without an opening
	Root       Hash  // computed from the entries; equal to the checkpoint's
	Checkpoint Checkpoint
	Since      *Checkpoint // latest of the older checkpoints; nil if there were none
	PublicKey  string
	KeyPinned  bool     // if false, the key came from the file itself, which proves nothing about the signer
	Handovers  []Handed // proven changes of the key, in order
}

// Verify reads an export without trusting its contents: it computes the tree from the leaves and
// compares its root with the signed checkpoint. It needs memory for one line and one hash per
// doubling of the log's size. The error is a *VerifyError unless reading or Each failed.
//
// The error contains the index of the wrong entry if the file makes that possible. If an entry was
// rewritten together with its hash and index, only the root differs from the signed one. Then an
// older checkpoint (Since) shows whether the entry is before or after it.
func Verify(r io.Reader, opts VerifyOptions) (Report, error) {
	v := verifier{in: bufio.NewReaderSize(r, 64<<10), opts: opts}
	err := v.header()
	for done := false; err == nil && !done; {
		done, err = v.next()
	}
	if err == nil {
		err = v.end()
	}
	if err != nil {
		return Report{}, err
	}
	return v.report, nil
}

type verifier struct {
	in       *bufio.Reader
	opts     VerifyOptions
	line     []byte // the line that is being read
	written  []byte // the expected text of the line
	tree     edge
	stored   []Hash // hashes of the last entry; unused
	report   Report
	keys     keyring
	olders   []Checkpoint // older checkpoints, by size
	compared int          // number of compared older checkpoints
	differs  *VerifyError // first difference between the tree and an older checkpoint
}

func (v *verifier) header() error {
	doc, err := v.parse("the header")
	if err != nil {
		return err
	}
	names := []string{"format", "origin", "public_key", "checkpoint", "handovers"}
	m, err := members(doc, names[:min(len(names), max(4, len(doc.Members)))]...)
	if err != nil {
		return fault(-1, "the header: %v", err)
	}
	if m[0].Text != exportFormat {
		return fault(-1, "the header: not an export of the format %s", exportFormat)
	}
	if len(m) > 4 {
		if err := v.keys.notes(m[4]); err != nil {
			return fault(-1, "the header: %v", err)
		}
	}
	v.written = appendHeader(v.written[:0], m[1].Text, m[2].Text, m[3].Text, v.keys.handovers...)
	if !bytes.Equal(v.line, v.written) {
		return fault(-1, "the header is not spelt as an export spells it")
	}
	r := &v.report
	v.keys.pin(v.opts.PublicKey, v.opts.Also)
	if r.PublicKey, r.KeyPinned = m[2].Text, len(v.keys.pinned) > 0; !v.keys.mayTrust(r.PublicKey) {
		return fault(-1, "wrong key: found %s, expected %s", quote(r.PublicKey), v.keys.expected())
	}

	if r.Checkpoint, err = OpenCheckpoint([]byte(m[3].Text), r.PublicKey); err != nil {
		return err
	}
	if r.Checkpoint.Origin != m[1].Text {
		return fault(
			-1,
			"the header names the log %s, the checkpoint %s: another tenant",
			quote(m[1].Text),
			quote(r.Checkpoint.Origin),
		)
	}

	return v.since()
}

// since reads the older checkpoints.
func (v *verifier) since() error {
	for _, signed := range v.opts.Since {
		old, err := OpenCheckpoint(signed, v.report.PublicKey)
		if err != nil && len(v.keys.handovers) > 0 { // an earlier key may have signed it
			if said, unread := UnverifiedCheckpoint(signed); unread == nil {
				old, err = said, nil
			}
		}
		var problem *VerifyError
		if errors.As(err, &problem) {
			return fault(-1, "the older checkpoint: %s", problem.Problem)
		}
		if now := v.report.Checkpoint; old.Origin != now.Origin {
			return fault(
				-1,
				"the older checkpoint is of the log %s, the export of %s: another tenant",
				quote(old.Origin),
				quote(now.Origin),
			)
		}

		v.olders = append(v.olders, old)
	}

	slices.SortStableFunc(v.olders, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	if n := len(v.olders); n > 0 {
		v.report.Since = &v.olders[n-1]
	}
	v.compare()
	return nil
}

// older compares the older checkpoints with the result at the end.
func (v *verifier) older() error {
	if old, now := v.report.Since, v.report.Checkpoint; old != nil && old.Size > now.Size {
		return fault(
			-1,
			"truncated: the older checkpoint covers %d entries, the export's only %d. An export from before that "+
				"checkpoint looks the same: export once more, and verify that",
			old.Size,
			now.Size,
		)
	}

	for _, signed := range v.opts.Since {
		if err := v.signedBefore(signed); err != nil {
			return err
		}
	}
	return nil
}

// signedBefore returns an error unless the checkpoint is signed with the export's key or an earlier
// key that it replaced.
func (v *verifier) signedBefore(signed []byte) error {
	var problem *VerifyError
	for _, key := range append([]string{v.report.PublicKey}, v.keys.before(v.report.PublicKey)...) {
		_, err := OpenCheckpoint(signed, key)
		if err == nil {
			return nil
		}
		if problem == nil {
			errors.As(err, &problem)
		}
	}

	return fault(-1, "the older checkpoint: %s", problem.Problem)
}

// compare compares the tree with the older checkpoints of its current size. A difference is only
// reported at the end, because a later line may explain it.
func (v *verifier) compare() {
	for ; v.compared < len(v.olders) && v.olders[v.compared].Size <= v.tree.size; v.compared++ {
		old := v.olders[v.compared]
		if old.Size == v.tree.size && old.Root != v.tree.root() && v.differs == nil {
			v.differs = fault(
				-1,
				"the first %d entries have the root %s, the older checkpoint says %s: one of them was edited, moved, "+
					"dropped or inserted since",
				old.Size,
				v.tree.root(),
				old.Root,
			)
		}
	}
}

// next reads one line. It returns true after the last one.
func (v *verifier) next() (done bool, err error) {
	doc, err := v.parse("the entry, or the last line,")
	if err != nil {
		return false, err
	}
	if len(doc.Members) > 0 && doc.Members[0].Key == "entries" {
		return true, v.last(doc)
	}
	return false, v.entry(doc)
}

func (v *verifier) entry(doc value.Value) error {
	at := v.tree.size
	m, err := members(doc, "index", "hash", "leaf", "openings")
	if err != nil {
		return fault(at, "%v", err)
	}
	if err := v.place(m[0]); err != nil {
		return err
	}
	openings, err := openingsOf(m[3])
	if err != nil {
		return fault(at, "openings: %v", err)
	}
	hash, err := ParseHash(m[1].Text)
	if err != nil {
		return fault(at, "%v", err)
	}
	if v.written = appendEntry(v.written[:0], at, hash, m[2].Text, openings); !bytes.Equal(v.line, v.written) {
		return fault(at, "the line is not spelt as an export spells it")
	}

	return v.record(hash, []byte(m[2].Text), openings)
}

// place checks that the entry is the next one.
func (v *verifier) place(index value.Value) error {
	at, size := v.tree.size, v.report.Checkpoint.Size
	found, err := integer(index)
	switch {
	case err != nil:
		return fault(at, "index: %v", err)
	case found > at:
		return fault(at, "dropped or moved: found entry %d in its place", found)
	case found < at:
		return fault(at, "inserted or moved: found entry %d in its place, which was there already", found)
	case at >= size:
		return fault(at, "inserted: the checkpoint covers %d entries", size)
	}

	return nil
}

// record checks an entry and adds it to the tree.
func (v *verifier) record(hash Hash, text []byte, openings Openings) error {
	at := v.tree.size
	if LeafHash(text) != hash {
		return fault(at, "edited leaf: it has the hash %s, the line says %s", LeafHash(text), hash)
	}

	leaf, redacted, err := open(text, openings, v.report.Checkpoint.Origin)
	if err != nil {
		return fault(at, "%v", err)
	}
	v.stored = v.tree.add(hash, v.stored[:0])
	v.report.Redacted += int64(redacted)
	v.compare()
	if err := v.keys.follow(leaf, v.report.Checkpoint.Origin, v.tree.size, v.tree.root); err != nil {
		return fault(at, "%v", err)
	}
	if v.opts.Each != nil {
		if err := v.opts.Each(at, leaf, openings); err != nil {
			return fmt.Errorf("entry %d: %w", at, err)
		}
	}
	return nil
}

func (v *verifier) last(doc value.Value) error {
	m, err := members(doc, "entries")
	if err != nil {
		return fault(-1, "the last line: %v", err)
	}
	said, err := integer(m[0])
	if err != nil {
		return fault(-1, "the last line: %v", err)
	}
	if !bytes.Equal(v.line, appendEnd(nil, said)) {
		return fault(-1, "the last line is not spelt as an export spells it")
	}
	at, size := v.tree.size, v.report.Checkpoint.Size
	if at != size {
		return fault(at, "dropped: the file ends here, but the checkpoint covers %d entries", size)
	}

	if said != at {
		return fault(-1, "the last line says %d entries, the file has %d", said, at)
	}
	return nil
}

// end checks the whole export after its last line.
func (v *verifier) end() error {
	if _, err := v.in.ReadByte(); err == nil {
		return fault(-1, "there is more text behind the last line")
	} else if err != io.EOF {
		return fmt.Errorf("read the export: %w", err)
	}
	v.report.Entries, v.report.Root = v.tree.size, v.tree.root()
	if v.differs != nil {
		return v.differs
	}
	if v.report.Root == v.report.Checkpoint.Root {
		return v.trust()
	}
	where := "an entry"
	if since := v.report.Since; since != nil {
		where = fmt.Sprintf("an entry from %d on", since.Size)
	}
	return fault(
		-1,
		"the entries have the root %s, the signed checkpoint says %s: %s was edited or exchanged, and its line "+
			"made to fit, so that none can be named",
		v.report.Root,
		v.report.Checkpoint.Root,
		where,
	)
}

// trust checks, after all entries, that the signing key is pinned or replaced a pinned key.
func (v *verifier) trust() error {
	if err := v.keys.whole(); err != nil {
		return fault(-1, "%v", err)
	}
	if !v.keys.trusts(v.report.PublicKey) {
		return fault(
			-1,
			"wrong key: found %s, expected %s, and no handover leads from there to it",
			quote(v.report.PublicKey),
			v.keys.expected(),
		)
	}

	v.report.Handovers = v.keys.proven
	return v.older()
}

// parse reads and parses the next line. It returns an error if there is none.
func (v *verifier) parse(what string) (value.Value, error) {
	if err := v.read(); err != nil {
		return value.Value{}, err
	}
	doc, err := value.Parse(v.line, value.Limits{MaxBytes: maxLine, MaxDepth: 4})
	if err != nil {
		return value.Value{}, fault(v.at(), "%s can't be read: %v", what, err)
	}
	return doc, nil
}

// at returns the index of the entry that is being read.
func (v *verifier) at() int64 {
	if v.report.PublicKey == "" {
		return -1 // the header
	}
	return v.tree.size
}

// read reads one line, including its end, into v.line.
func (v *verifier) read() error {
	v.line = v.line[:0]
	for {
		part, err := v.in.ReadSlice('\n')
		v.line = append(v.line, part...)
		switch {
		case len(v.line) > maxLine:
			return fault(v.at(), "a line of more than %d bytes", maxLine)
		case err == nil:
			return nil
		case err == io.EOF:
			return fault(v.at(), `truncated: the file ends before the line {"entries":…}`)
		case err != bufio.ErrBufferFull:
			return fmt.Errorf("read the export: %w", err)
		}
	}
}
