package content_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/assent-dev/assent/content"
)

func FuzzDotNet(f *testing.F)      { fuzz(f, shapes()[0]) }
func FuzzPython(f *testing.F)      { fuzz(f, shapes()[1]) }
func FuzzGoFramework(f *testing.F) { fuzz(f, shapes()[2]) }

// fuzz wants a codec to write again whatever it read, to read the same in it, and from then on to write the same bytes.
func fuzz(f *testing.F, s shape) {
	seeds, err := filepath.Glob(filepath.Join("testdata", s.name, "*.json"))
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if c, err := s.codec.DecodeContent(src); err == nil {
			stable(t, s.codec.AppendContent, s.codec.DecodeContent, c)
		} else if bad := new(content.BadError); !errors.As(err, &bad) || bad.Code == "" || bad.Detail == "" {
			t.Errorf("%#v", err)
		}
		if ms, err := s.codec.DecodeMessages(src); err == nil {
			stable(t, s.codec.AppendMessages, s.codec.DecodeMessages, ms)
		}
	})
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
