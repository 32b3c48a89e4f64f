package jsonmsg

import (
	"fmt"
	"strings"
	"testing"
)

// TestPlace: a value is found by its path, in characters; a path that
// leads on ends at the last value that is there.
func TestPlace(t *testing.T) {
	src := []byte("{\"é\": [1,\n  {\"n\": true}], \"2\": 3}")
	for path, want := range map[string]string{
		"":       "1:1 ",
		"é":      "1:7 é",
		"é/0":    "1:8 é[0]",
		"é/1":    "2:3 é[1]",
		"é/1/n":  "2:9 é[1].n",
		"é/9":    "1:7 é[9]",
		"x/y":    "1:1 x.y",
		"é/1/n/": "2:9 é[1].n.",
		"2":      "2:22 [2]",
	} {
		segments := strings.Split(path, "/")
		if path == "" {
			segments = nil
		}
		line, column := Place(src, segments)
		if got := fmt.Sprintf("%d:%d %s", line, column, Path(segments)); got != want {
			t.Errorf("%s: %s, expected %s", path, got, want)
		}
	}
}

// TestOffset: spaces before a value are passed over, and an empty text
// has its place at its end.
func TestOffset(t *testing.T) {
	for _, c := range []struct {
		text string
		path []string
		want int
	}{
		{"", nil, 0},
		{" \t", nil, 2},
		{" {}", nil, 1},
		{`{"a":7,"b":[2,3]}`, []string{"a"}, 5},
		{`{"a":7,"b":[2,3]}`, []string{"b", "1"}, 14},
		{`{"a":7,"b":[2,3]}`, []string{"b", "2"}, 11},
	} {
		if got := Offset([]byte(c.text), c.path); got != c.want {
			t.Errorf("%s %v: %d, expected %d", c.text, c.path, got, c.want)
		}
	}
	for want, path := range map[string][]string{
		"":          nil,
		"a[10].2b.": {"a", "10", "2b", ""},
		"[0].1~":    {"0", "1~"},
	} {
		if got := Path(path); got != want {
			t.Errorf("%v: %s, expected %s", path, got, want)
		}
	}
}
