package value

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/growth"
)

// drawText returns JSON text that varies everything JSON allows: white space, escapes, spellings of
// numbers, the order of keys.
func drawText(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r "})
	text := func() string {
		var b strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			b.WriteString(
				rapid.SampledFrom([]string{"a", "b", "é", "\U0001f600", "\uffff", "€", `\u0061`, `\n`, `\"`, `\\`,
					`\/`, `\ud83d\ude00`, `\u0000`, "<"}).Draw(t, "part"),
			)
		}

		return `"` + b.String() + `"`
	}
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	case 1, 2:
		return rapid.SampledFrom([]string{"0", "-0", "1.0", "1e3", "-12.50", "9007199254740993", "1E-7",
			"123456789012345678901234567890", "0.1"}).Draw(t, "number")
	case 3:
		return text()
	case 4:
		var items []string
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items = append(items, space.Draw(t, "before")+drawText(t, depth-1)+space.Draw(t, "after"))
		}
		return "[" + space.Draw(t, "inside") + strings.Join(items, ",") + "]"
	}

	var members []string
	for range rapid.IntRange(0, 6).Draw(t, "members") { // some occur twice
		key := space.Draw(t, "before") + text() + space.Draw(t, "colon")
		members = append(members, key+":"+space.Draw(t, "value")+drawText(t, depth-1))
	}
	return "{" + space.Draw(t, "inside") + strings.Join(members, ",") + space.Draw(t, "end") + "}"
}

// With and without a tree the output and the errors are the same.
func TestCanonicalTextIsThatOfTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sameCanonical(t, []byte(drawText(t, 4)), Limits{})
	})
}

func sameCanonical(t interface {
	Helper()
	Fatalf(string, ...any)
}, src []byte, lim Limits) {
	t.Helper()
	v, want := Parse(src, lim)
	before := bytes.Clone(src)
	got, err := AppendCanonicalText([]byte("x"), src, lim)
	switch {
	case fmt.Sprint(err) != fmt.Sprint(want):
		t.Fatalf("%q: %v, and with a tree %v", src, err, want)
	case err == nil && string(got) != string(v.AppendCanonical([]byte("x"))):
		t.Fatalf("%q becomes %q, and with a tree %q", src, got, v.AppendCanonical([]byte("x")))
	case err != nil && string(got) != "x":
		t.Fatalf("%q: %q was written", src, got)
	case !bytes.Equal(src, before):
		t.Fatalf("%q was changed to %q", before, src)
	}
}

func FuzzCanonicalText(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":{"d":[],"c":{}}}`, ` [ 1.0 , "\u00e9" , { } ]`, `{"a":1,"a":2}`,
		`{"\uffff":1,"\ud83d\ude00":2}`, "{", `{"\u0062":1,"a":2}`, ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		sameCanonical(t, src, Limits{MaxBytes: 1 << 16, MaxDepth: 50})
	})
}

func TestCanonicalTextKeepsToItsLimits(t *testing.T) {
	var bad *Error
	_, err := AppendCanonicalText(nil, []byte("[1,2,3]"), Limits{MaxValues: 3})
	if !errors.As(err, &bad) || bad.Code != TooLarge || !strings.Contains(err.Error(), "4 values, at most 3 are read") {
		t.Errorf("got %v", err)
	}
	got, err := AppendCanonicalText(nil, []byte("[1,2,3]"), Limits{MaxValues: 4})
	if err != nil || string(got) != "[1,2,3]" {
		t.Errorf("got %s, %v", got, err)
	}
}

// wide and nested return the texts with the highest cost.
func wide(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, n-i)
	}
	return []byte("{" + b.String() + `"a":1}`)
}

func nested(n int) []byte {
	return []byte(strings.Repeat(`{"b":1,"a":`, 100) + "[" + strings.Repeat("1,", n) + "1]" + strings.Repeat("}", 100))
}

func TestWritesCanonicalTextsInLinearTime(t *testing.T) {
	for name, text := range map[string]func(int) []byte{"wide": wide, "nested": nested} {
		growth.Linear(t, 20_000, func(n int) func() {
			src := text(n)
			return func() {
				if _, err := AppendCanonicalText(nil, src, Limits{}); err != nil {
					t.Error(name, err)
				}
			}
		})
	}
}

// Writing the canonical form of a million numbers needs the memory of the text, not that of a
// tree.
func TestANumberTakesNoTree(t *testing.T) {
	src := []byte("[" + strings.Repeat("1,", 1_000_000) + "1]")
	lim := Limits{MaxValues: 2_000_000}
	dst := make([]byte, 0, len(src))
	if n := testing.AllocsPerRun(5, func() {
		if _, err := AppendCanonicalText(dst, src, lim); err != nil {
			t.Fatal(err)
		}
	}); n > 3 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCanonical(b *testing.B) {
	for name, src := range map[string][]byte{
		"numbers": []byte("[" + strings.Repeat("1,", 49_000) + "1]"),
		"members": wide(49_000),
		"nested":  nested(40_000),
	} {
		b.Run(name+"/tree", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v, err := Parse(src, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				v.AppendCanonical(nil)
			}
		})
		b.Run(name+"/text", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := AppendCanonicalText(nil, src, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
