package ledger

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
)

func TestExportGolden(t *testing.T) {
	l := newLog(t, 3)
	left, err := Redact(l.records[1].Openings, "reason")
	must(t, err)
	l.records[1].Openings, l.records[2].Openings = left, nil
	golden.Equal(t, "export.jsonl", string(l.export(t)))
}

func TestWriterRefuses(t *testing.T) {
	l := newLog(t, 2)
	signed, key := sign(t, l.checkpoint()), testSigner(t).PublicKey()
	_, err := NewWriter(io.Discard, signed, namedSigner(t, "assent.example", 1).PublicKey())
	var problem *VerifyError
	if fails(t, err, "wrong key"); !errors.As(err, &problem) {
		t.Errorf("got %T", err)
	}
	_, err = NewWriter(io.Discard, append(signed, []byte(strings.Repeat("— x AAAAAAAA\n", maxNote/10))...), key)
	fails(t, err, "at most 65536 are allowed")

	for name, tt := range map[string]struct {
		write func(*Writer) error
		want  string
	}{
		"openings": {func(w *Writer) error { return w.Write(l.records[0].Leaf, []byte("x")) }, "entry 0: openings"},
		"utf-8":    {func(w *Writer) error { return w.Write([]byte("\xff"), nil) }, "entry 0: the leaf is not UTF-8"},
		"long leaf": {func(w *Writer) error {
			return w.Write(make([]byte, maxLeaf+1), nil)
		}, "more than 1048576 bytes"},
		"too few": {func(w *Writer) error { return w.Close() }, "covers 2 entries, but only 0"},
		"too many": {func(w *Writer) error {
			return errors.Join(w.Write(nil, nil), w.Write(nil, nil), w.Write(nil, nil))
		}, "covers 2 entries, here is one more"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w, err := NewWriter(&out, signed, key)
			must(t, err)
			fails(t, tt.write(w), tt.want)
			fails(t, w.Write(l.records[0].Leaf, nil), "export: ")
			fails(t, w.Close(), "export: ")
			if _, err := verify(t, out.Bytes()); err == nil {
				t.Error("the broken export verifies")
			}
		})
	}
}

type full200 struct{ left int }

var errDiskFull = errors.New("disk full")

func (f *full200) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errDiskFull
	}
	return len(p), nil
}

func TestWriterReportsTheDisk(t *testing.T) {
	l := newLog(t, 1)
	big := l.records[0]
	big.Openings = appendOpenings(nil, Openings{"args": {Value: strings.Repeat("x", 1<<20)}}.sorted())
	for _, r := range []Record{l.records[0], big} {
		w, err := NewWriter(&full200{200}, sign(t, l.checkpoint()), testSigner(t).PublicKey())
		must(t, err)
		err = w.Write(r.Leaf, r.Openings)
		if err == nil {
			err = w.Close()
		}
		if !errors.Is(err, errDiskFull) || !errors.Is(w.Close(), errDiskFull) {
			t.Errorf("got %v", err)
		}
	}
}
