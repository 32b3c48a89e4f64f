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
