package ledger

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// rotated is a log whose key was changed twice, with some entries after each change.
type rotated struct {
	*testLog
	signers   []Signer
	handovers [][]byte
}

func newRotated(t testing.TB, changes int) *rotated {
	t.Helper()
	r := &rotated{testLog: newLog(t, 3), signers: []Signer{namedSigner(t, "first.example", 1)}}
	for i := range changes {
		from, to := r.signers[i], namedSigner(t, "next.example", byte(i+2))
		e := testEntry(0)
		e.Type, e.Facts = KeyRotated, map[string]any{"old": from.PublicKey(), "new": to.PublicKey()}
		r.extend(t, seal(t, e, fixed(9)))
		note, err := Both(from, to).Sign(r.checkpoint())
		must(t, err)
		r.handovers, r.signers = append(r.handovers, note), append(r.signers, to)
		for n := range 2 {
			r.extend(t, seal(t, testEntry(10+n), fixed(byte(n))))
		}
	}

	return r
}

func (r *rotated) last() Signer { return r.signers[len(r.signers)-1] }

func (r *rotated) export(t testing.TB, handovers ...[]byte) []byte {
	t.Helper()
	note, err := r.last().Sign(r.checkpoint())
	must(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, note, r.last().PublicKey(), handovers...)
	must(t, err)
	for _, record := range r.records {
		must(t, w.Write(record.Leaf, record.Openings))
	}
	must(t, w.Close())
	return out.Bytes()
}

// TestAnAuditorFollowsTheKeyAcrossRotations: every key of the chain can be pinned, and older
// checkpoints may be signed with any of them.
func TestAnAuditorFollowsTheKeyAcrossRotations(t *testing.T) {
	r := newRotated(t, 2)
	file := r.export(t, r.handovers...)
	old, err := r.signers[0].Sign((&testLog{records: r.records[:2], root: newLog(t, 2).root}).checkpoint())
	must(t, err)
	for i, s := range r.signers {
		got, err := Verify(bytes.NewReader(file), VerifyOptions{PublicKey: s.PublicKey(), Since: [][]byte{old}})
		if err != nil {
			t.Fatalf("pinned key %d: %v", i, err)
		}
		if !got.KeyPinned || got.PublicKey != r.last().PublicKey() || len(got.Handovers) != 2 ||
			got.Handovers[0].Size != 4 ||
			got.Since.Size != 2 {
			t.Errorf("pinned key %d: %+v", i, got)
		}
	}

	bare := r.export(t)
	both := VerifyOptions{PublicKey: r.signers[0].PublicKey(), Also: []string{r.last().PublicKey()}}
	if _, err := Verify(bytes.NewReader(bare), both); err != nil {
		t.Errorf("with both keys, without handovers: %v", err)
	}
	if bytes.Contains(bare, []byte("handovers")) {
		t.Error("an export without handovers names them")
	}
	_, err = Verify(bytes.NewReader(bare), VerifyOptions{PublicKey: r.signers[0].PublicKey()})
	refused(t, err, -1, "wrong key")
}

func TestHandoversAreProven(t *testing.T) {
	r := newRotated(t, 2)
	pinned := VerifyOptions{PublicKey: r.signers[0].PublicKey()}
	alone, err := r.signers[1].Sign(Checkpoint{
		Origin: r.checkpoint().Origin,
		Size:   4,
		Root:   newRotated(t, 1).at(t, 4),
	})
	must(t, err)
	other, err := Both(r.signers[0], r.signers[1]).Sign(Checkpoint{
		Origin: r.checkpoint().Origin,
		Size:   4,
		Root:   Hash{1},
	})
	must(t, err)
	for name, c := range map[string]struct {
		handovers [][]byte
		index     int64
		words     string
	}{
		"the second is missing":       {r.handovers[:1], -1, "no handover leads from there"},
		"the first is missing":        {r.handovers[1:], 3, "wrong key"},
		"in another order":            {[][]byte{r.handovers[1], r.handovers[0]}, 3, "wrong key"},
		"signed by the new key alone": {[][]byte{alone, r.handovers[1]}, 3, "wrong key"},
		"of another tree":             {[][]byte{other, r.handovers[1]}, 3, "expected 4"},
		"one more than the entries tell of": {
			append(r.handovers[:2:2], r.handovers[1]),
			-1,
			"1 handovers stand in the header",
		},
	} {
		_, err := Verify(bytes.NewReader(r.export(t, c.handovers...)), pinned)
		if err == nil {
			t.Errorf("%s: it verifies", name)
			continue
		}
		refused(t, err, c.index, c.words)
	}

	stranger := VerifyOptions{PublicKey: namedSigner(t, "stranger.example", 77).PublicKey()}
	_, err = Verify(bytes.NewReader(r.export(t, r.handovers...)), stranger)
	refused(t, err, -1, "wrong key")
	broken := bytes.Replace(r.export(t, r.handovers...), []byte(`,"handovers":[`), []byte(`,"handovers":[1,`), 1)
	_, err = Verify(bytes.NewReader(broken), pinned)
	refused(t, err, -1, "something else than texts")
	if _, err := NewWriter(&bytes.Buffer{}, r.handovers[0], r.signers[0].PublicKey(), []byte("no note")); err == nil {
		t.Error("no note is a handover")
	}
	if _, err := Both(r.signers[0], Signer{}).Sign(r.checkpoint()); err == nil {
		t.Error("a signer without a key signs")
	}
}

// at returns the root of the log's first entries.
func (r *rotated) at(t testing.TB, size int) Hash {
	t.Helper()
	l := &testLog{root: emptyRoot()}
	for _, record := range r.records[:size] {
		l.extend(t, record)
	}
	return l.root
}

// TestLaterHandoversStayOut: the key may change while an export is being prepared.
func TestLaterHandoversStayOut(t *testing.T) {
	r := newRotated(t, 1)
	note, err := r.signers[0].Sign(Checkpoint{Origin: r.checkpoint().Origin, Size: 3, Root: r.at(t, 3)})
	must(t, err)
	var out bytes.Buffer
	w, err := NewWriter(&out, note, r.signers[0].PublicKey(), r.handovers...)
	must(t, err)
	for _, record := range r.records[:3] {
		must(t, w.Write(record.Leaf, record.Openings))
	}
	must(t, w.Close())
	if strings.Contains(out.String(), "handovers") {
		t.Error("a handover behind the checkpoint stands in the export")
	}
}

func TestHashText(t *testing.T) {
	h := LeafHash([]byte("x"))
	text, err := json.Marshal(map[string]Hash{"root": h})
	var back map[string]Hash
	if err != nil || json.Unmarshal(text, &back) != nil || back["root"] != h {
		t.Errorf("%s, %v", text, err)
	}
	if json.Unmarshal([]byte(`{"root":"AAAA"}`), &back) == nil {
		t.Error("three bytes are no hash")
	}
}
