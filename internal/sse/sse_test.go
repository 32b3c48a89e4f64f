package sse_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/sse"
)

func read(text string, longest int) (all []string, err error) {
	for e, failed := range sse.Read(strings.NewReader(text), longest, func() {}) {
		if failed != nil {
			return all, failed
		}
		all = append(all, fmt.Sprintf("%s|%s|%s", e.ID, e.Kind, e.Data))
	}

	return all, nil
}

func TestEventsAreReadWhole(t *testing.T) {
	got, err := read(": beat\n\nid: 1\r\nevent: message\r\ndata: a\r\ndata:b\r\n\r\ndata: cut off", 100)
	if err != nil || fmt.Sprint(got) != "[|| 1|message|a\nb]" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestALongEventIsAnError(t *testing.T) {
	for _, text := range []string{
		"data: " + strings.Repeat("x", 100) + "\n\n",
		strings.Repeat("data: xxxxxxxx\n", 10) + "\n",
	} {
		if got, err := read(text, 40); err == nil || len(got) != 0 {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func FuzzEventsAreBounded(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {}\n\n"))
	f.Add([]byte(": x\n\ndata\ndata\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := 0
		for e, err := range sse.Read(bytes.NewReader(text), 64, func() { lines++ }) {
			if err == nil && len(e.Data) > 64 {
				t.Errorf("an event of %d bytes", len(e.Data))
			}
		}
		if lines > bytes.Count(text, []byte("\n")) {
			t.Errorf("%d lines were read of %q", lines, text)
		}
	})
}
