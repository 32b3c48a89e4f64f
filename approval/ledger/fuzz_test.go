package ledger

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func FuzzParseLeaf(f *testing.F) {
	f.Add([]byte(plainLeaf))
	f.Add(newLog(f, 1).records[0].Leaf)
	f.Fuzz(func(t *testing.T, leaf []byte) {
		l, err := ParseLeaf(leaf)
		if err != nil {
			return
		}
		e := Entry{
			Time:    l.Time,
			Tenant:  l.Tenant,
			Type:    l.Type,
			Subject: l.Subject,
			Actor:   l.Actor,
			Facts:   map[string]any{},
		}
		for _, m := range l.Facts.Members {
			e.Facts[m.Key] = m.Value
		}
		if len(l.Sealed) > 0 || len(leaf) > maxLeaf/8 {
			return // digests have a fixed length, and Seal leaves some space for them
		}
		if r, err := e.Seal(nil); err != nil || !bytes.Equal(r.Leaf, leaf) {
			t.Fatalf("sealed again: %s, %v\nwant %s", r.Leaf, err, leaf)
		}
	})
}

func FuzzParseOpenings(f *testing.F) {
	f.Add([]byte(plainOpenings))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := ParseOpenings(text)
		if err != nil {
			return
		}
		again, err := ParseOpenings(appendOpenings(nil, o.sorted()))
		if err != nil || !reflect.DeepEqual(o, again) {
			t.Fatalf("got %v, %v, want %v", again, err, o)
		}
	})
}

// FuzzVerify: with a pinned key, only the export itself and its redactions can be verified.
func FuzzVerify(f *testing.F) {
	l := newLog(f, 3)
	f.Add(l.export(f))
	l.records[1].Openings = nil
	f.Add(l.export(f))
	key := testSigner(f).PublicKey()
	f.Fuzz(func(t *testing.T, file []byte) {
		var subjects []string
		got, err := Verify(bytes.NewReader(file), VerifyOptions{
			PublicKey: key,
			Each: func(_ int64, leaf Leaf, _ Openings) error {
				subjects = append(subjects, leaf.Subject)
				return nil
			},
		})
		var problem *VerifyError
		if err != nil && !errors.As(err, &problem) {
			t.Fatalf("got %T %v", err, err)
		}
		if err == nil && (got.Root != l.root || len(subjects) != 3 || subjects[2] != "req-2") {
			t.Fatalf("a forgery verifies: %+v", got)
		}
	})
}

func FuzzVerifyProof(f *testing.F) {
	l := newLog(f, 5)
	f.Add(marshal(f, l.proof(f, 2)))
	key := testSigner(f).PublicKey()
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := VerifyProof(file, key)
		var problem *VerifyError
		if err != nil && !errors.As(err, &problem) {
			t.Fatalf("got %T %v", err, err)
		}
		if err == nil && (got.Checkpoint != l.checkpoint() || got.Leaf.Subject != "req-2") {
			t.Fatalf("a forgery verifies: %+v", got)
		}
	})
}

func FuzzOpenCheckpoint(f *testing.F) {
	c := bare(f, 5).checkpoint()
	key := testSigner(f).PublicKey()
	f.Add(sign(f, c), key)
	f.Fuzz(func(t *testing.T, signed []byte, public string) {
		if got, err := OpenCheckpoint(signed, public); err == nil && public == key && got != c {
			t.Fatalf("a forgery verifies: %+v", got)
		}
	})
}

func FuzzParseHash(f *testing.F) {
	f.Add(LeafHash([]byte(plainLeaf)).String())
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHash(text)
		if err == nil && h.String() != text {
			t.Fatalf("%q was read as %q", text, h)
		}
	})
}
