package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// mostLines limits how many differences of one body are reported.
const mostLines = 20

// compare returns an error with every difference between the request and the recorded one, or nil
// if there is none.
func (q Request) compare(r *http.Request, body []byte) error {
	var out []string
	note := func(what, want, got string) {
		if want != got {
			out = append(out, fmt.Sprintf("  %s: want %q, got %q", what, want, got))
		}
	}
	note("method", q.method(), r.Method)
	note("path", q.Path, r.URL.RequestURI())
	for _, name := range slices.Sorted(maps.Keys(q.Headers)) {
		note("header "+name, q.Headers[name], strings.Join(r.Header.Values(name), ", "))
	}
	out = append(out, compareBodies(q.Body, body)...)
	if len(out) == 0 {
		return nil
	}
	return errors.New(strings.Join(out, "\n"))
}

func compareBodies(want, got []byte) []string {
	if len(want) == 0 || len(got) == 0 {
		if len(want) == len(got) {
			return nil
		}
		return []string{fmt.Sprintf("  body: want %s, got %s", orNone(want), orNone(got))}
	}

	w, err := tree(want)
	if err != nil {
		return []string{"  the recorded body: " + err.Error()}
	}
	g, err := tree(got)
	if err != nil {
		return []string{fmt.Sprintf("  body: %v in %s", err, got)}
	}
	lines := differences(nil, "body", w, g)
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines], fmt.Sprintf("  … and %d more", more))
	}
	return lines
}

func orNone(body []byte) string {
	if len(body) == 0 {
		return "none"
	}
	return string(body)
}

// tree parses a body strictly and keeps the text of numbers.
func tree(src []byte) (any, error) {
	if _, err := value.Parse(src, value.Limits{}); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}

// differences appends a line for each place where two trees differ.
func differences(out []string, path string, want, got any) []string {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return objects(out, path, w, g)
		}
	case []any:
		if g, ok := got.([]any); ok {
			return arrays(out, path, w, g)
		}
	default:
		if isLeaf(got) && want == got {
			return out
		}
	}

	return append(out, fmt.Sprintf("  %s: want %s, got %s", path, text(want), text(got)))
}

func isLeaf(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func objects(out []string, path string, want, got map[string]any) []string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[key]; ok {
			out = differences(out, path+"."+key, want[key], g)
		} else {
			out = append(out, fmt.Sprintf("  %s.%s: missing, want %s", path, key, text(want[key])))
		}
	}

	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			out = append(out, fmt.Sprintf("  %s.%s: surplus, got %s", path, key, text(got[key])))
		}
	}
	return out
}

func arrays(out []string, path string, want, got []any) []string {
	for i := range max(len(want), len(got)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(got):
			out = append(out, fmt.Sprintf("  %s: missing, want %s", at, text(want[i])))
		case i >= len(want):
			out = append(out, fmt.Sprintf("  %s: surplus, got %s", at, text(got[i])))
		default:
			out = differences(out, at, want[i], got[i])
		}
	}

	return out
}

// text formats a value on one line.
func text(v any) string {
	out, err := jsonmsg.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
