package yamldoc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
)

// For any bytes there is a document or an error, never both and never a panic. Every range is
// in the file and inside its parent's range, and every text can be mapped back.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files := must.Get(filepath.Glob(pattern))(f)
		for _, file := range files {
			text := must.Get(os.ReadFile(file))(f)
			f.Add(text)
		}
	}

	for _, text := range []string{
		`{"a": "\ud83d\ude00", "b": [1e5]}`,
		"a: &x\n  *x : b\n",
		"- !<tag:yaml.org,2002:str> x\n",
		"a: !!str\n",
		"? |\n  k\n: >2-\n   v\n",
	} {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, src []byte) {
		d, fs := Parse("f", src, Limits{MaxBytes: 1 << 16})
		stops := false
		for _, finding := range fs {
			stops = stops || finding.Severity == diag.Error
			if finding.Stops != (finding.Severity == diag.Error) || finding.Message == "" ||
				less(finding.Range.End, finding.Range.Start) {
				t.Fatalf("%+v", finding)
			}
		}

		if (d == nil) != stops {
			t.Fatalf("document %v, findings %v", d, fs)
		}
		if d != nil {
			verify(t, d.Root, d.Root, map[*Node]bool{})
			verifyComments(t, d)
		}
	})
}

func less(a, b diag.Position) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
}

// verify visits each node once. The target of an alias is elsewhere, and not inside its parent.
func verify(t *testing.T, n, parent *Node, seen map[*Node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if n.start > n.end || n.end > len(n.src.text) || n.src.span(n.start, n.end) != n.Range {
		t.Fatalf("%v %q: %d-%d of %d", n.Kind, n.Text, n.start, n.end, len(n.src.text))
	}
	if n.start >= parent.start && n.start < parent.end && n.end > parent.end {
		t.Fatalf("%q sticks out of its parent", n.src.text[n.start:n.end])
	}
	written := string(n.src.text[n.start:n.end])
	switch n.style {
	case singleQuoted, doubleQuoted:
		quote := written[:1]
		if (quote != "'" && quote != `"`) || len(written) < 2 || !strings.HasSuffix(written, quote) {
			t.Fatalf("%q is not quoted", written)
		}
	case literal, folded:
		if written == "" || written[0] != '|' && written[0] != '>' {
			t.Fatalf("%q is no block scalar", written)
		}
	}

	if n.Kind < Sequence {
		whole := n.At(0, len(n.Text))
		if runs := n.runs(); n.Text != "" && runs == nil && strings.Trim(n.Text, " \n\t") != "" {
			t.Fatalf("%q has no map to %q", n.Text, written)
		}
		if less(whole.Start, n.Range.Start) || less(n.Range.End, whole.End) && n.style != literal && n.style != folded {
			t.Fatalf("%q: %v is outside of %v", written, whole, n.Range)
		}
	}

	if n.Kind == Number && n.Finite {
		if _, err := json.Marshal(n.Any()); err != nil {
			t.Fatalf("%q: %v", n.Text, err)
		}
	}
	for _, item := range n.Items {
		verify(t, item, n, seen)
	}
	for _, field := range n.Fields {
		verify(t, field.Key, n, seen)
		verify(t, field.Value, n, seen)
	}
}

func verifyComments(t *testing.T, d *Document) {
	last := 0
	for _, c := range d.Comments {
		if c.Line <= last || strings.ContainsAny(c.Text, "\r\n") {
			t.Fatalf("comment %+v after line %d", c, last)
		}
		last = c.Line
	}
}
