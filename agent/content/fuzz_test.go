package content_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func FuzzDotNet(f *testing.F)      { fuzz(f, shapes()[0]) }
func FuzzPython(f *testing.F)      { fuzz(f, shapes()[1]) }
func FuzzGoFramework(f *testing.F) { fuzz(f, shapes()[2]) }

// fuzz checks that a codec writes every document that it has read, that reading the output
// gives the same value, and that writing it again gives the same bytes.
func fuzz(f *testing.F, s shape) {
	seeds, err := filepath.Glob(filepath.Join("testdata", s.name, "*.json"))
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		src := must.Get(os.ReadFile(name))(f)
		f.Add(src)
	}

	f.Fuzz(func(t *testing.T, src []byte) {
		if c, err := s.codec.DecodeContent(src); err == nil {
			stable(t, s.codec.AppendContent, s.codec.DecodeContent, c)
			translated(t, c)
		} else if bad := new(content.BadError); !errors.As(err, &bad) || bad.Code == "" || bad.Detail == "" {
			t.Errorf("%#v", err)
		}

		if ms, err := s.codec.DecodeMessages(src); err == nil {
			stable(t, s.codec.AppendMessages, s.codec.DecodeMessages, ms)
		}
	})
}

// translated checks that a content keeps its meaning in every other format that accepts it. In
// particular, no answer may turn into a different one.
func translated(t *testing.T, c content.Content) {
	t.Helper()
	for _, s := range shapes() {
		out, err := s.codec.AppendContent(nil, c)
		if err != nil {
			continue // not every format supports every content
		}
		back, err := s.codec.DecodeContent(out)
		if err != nil {
			t.Fatalf("%s was written, can't be read: %v\n%s", s.name, err, out)
		}
		if said(back) != said(c) {
			t.Fatalf("%s says %q, not %q\n%s", s.name, said(back), said(c), out)
		}
	}
}

// said returns the question or answer of a content.
func said(c content.Content) string {
	out := fmt.Sprintf("%T", c)
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		out += fmt.Sprintf(" %q %T %q %v %q", c.RequestID, c.Call, c.Call.ID(), c.NoConfirmation, c.Call.Args())
	case *content.ToolApprovalResponse:
		out += fmt.Sprintf(" %q %T %q %v %v %q %v", c.RequestID, c.Call, c.Call.ID(), c.Approved, c.Always,
			c.Reason, c.Edited != nil)
	case *content.TextApprovalResponse:
		out += fmt.Sprintf(" %q %v", c.RequestID, c.Approved)
	case *content.StructuredInputResponse:
		out += fmt.Sprintf(" %q %v %s", c.RequestID, c.Declined, c.Data)
	}

	return out
}

func stable[T any](t *testing.T, write func([]byte, T) ([]byte, error), read func([]byte) (T, error), v T) {
	t.Helper()
	out, err := write(nil, v)
	if err != nil {
		t.Fatalf("was read, can't be written: %v", err)
	}
	again, err := read(out)
	if err != nil {
		t.Fatalf("was written, can't be read: %v\n%s", err, out)
	}
	if !reflect.DeepEqual(again, v) {
		t.Fatalf("read otherwise:\n%s", out)
	}
	twice, err := write(nil, again)
	if err != nil || string(twice) != string(out) {
		t.Fatalf("written otherwise: %v\n%s\n%s", err, out, twice)
	}
}
