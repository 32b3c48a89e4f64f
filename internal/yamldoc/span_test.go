package yamldoc

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
)

// unit is a part of a scalar: its text, its source, and the part of the source to be
// highlighted for the text. (Indentation after folded breaks is not highlighted.)
type unit struct{ text, src, shown string }

func same(s string) unit { return unit{s, s, s} }

// scalar is a document around one scalar, with the expected position of each part of the text.
type scalar struct {
	text, src string
	at        []int // per unit: offset in src
	units     []unit
}

func build(before string, units []unit, after string) scalar {
	s := scalar{src: before}
	for _, u := range units {
		s.at = append(s.at, len(s.src)+strings.Index(u.src, u.shown))
		s.src += u.src
		s.text += u.text
	}
	s.units = units
	s.src += after
	return s
}

// check parses the document and calls At for every unit, and for ranges of several.
func (s scalar) check(t *rapid.T, n *Node) {
	if n.Text != s.text {
		t.Fatalf("the test is wrong: %q reads as %q, not %q", s.src, n.Text, s.text)
	}
	src := newSource([]byte(s.src))
	where := func(r diag.Range) (int, int) {
		return src.offset(r.Start.Line, r.Start.Column), src.offset(r.End.Line, r.End.Column)
	}
	offset := 0
	for i, u := range s.units {
		start, end := where(n.At(offset, len(u.text)))
		if u.text != "" && (start != s.at[i] || end != s.at[i]+len(u.shown)) {
			t.Fatalf(
				"%q: %q at byte %d of the text is said to be %q, not %q",
				s.src,
				u.text,
				offset,
				s.src[start:end],
				u.shown,
			)
		}

		offset += len(u.text)
	}

	if len(s.text) > 0 {
		start, _ := where(n.At(0, 1))
		whole, end := where(n.At(0, len(s.text)))
		if _, last := where(n.At(len(s.text)-1, 1)); whole != start || end != last {
			t.Fatalf("%q: the whole is not from its first to its last", s.src)
		}
	}

	// A block scalar ends before its last line break.
	if a, b := where(n.At(len(s.text)+5, 3)); a != b || a < n.start || a > n.end+2 {
		t.Fatalf("%q: past the end is %d-%d", s.src, a, b)
	}
}

var letters = []string{"a", "b", "Z", "é", "日", "😀", "{{x.y}}", "^(a|b)$", "0", "-", "#x", "%"}

func genUnits(t *rapid.T, more ...unit) []unit {
	all := append([]unit{}, more...)
	for _, l := range letters {
		all = append(all, same(l))
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 1, 12).Draw(t, "units")
}

// fold returns a line break inside a flow scalar that is read as a space or as line feeds.
func fold(breaks int, indent string) []unit {
	if breaks == 1 {
		return []unit{{" ", "\n" + indent, "\n"}}
	}
	units := []unit{{"", "\n", "\n"}}
	for i := 1; i < breaks; i++ {
		tail := ""
		if i == breaks-1 {
			tail = indent
		}
		units = append(units, unit{"\n", "\n" + tail, "\n"})
	}

	return units
}

// foldedLines joins words by folds, as flow scalars may.
func foldedLines(t *rapid.T, words [][]unit) []unit {
	var out []unit
	for i, w := range words {
		if i > 0 {
			blanks := rapid.SampledFrom([]string{"", " ", "\t "}).Draw(t, "trailing")
			out = append(out, unit{"", blanks, blanks})
			out = append(
				out,
				fold(
					rapid.IntRange(1, 3).Draw(t, "breaks"),
					rapid.SampledFrom([]string{"  ", "    "}).Draw(t, "indent"),
				)...)
		}

		out = append(out, w...)
	}

	return out
}

func words(t *rapid.T, start unit, more ...unit) [][]unit {
	var out [][]unit
	for range rapid.IntRange(1, 4).Draw(t, "words") {
		out = append(out, append(append([]unit{start}, genUnits(t, more...)...), same("e")))
	}
	return out
}

func keyed(t *rapid.T, src string) *Node {
	d, fs := Parse("f", []byte(src), Limits{})
	if d == nil {
		t.Fatalf("the test is wrong: %q: %v", src, fs)
	}
	n := d.Root.Get("key")
	if n == nil || d.Root.Get("next") == nil {
		t.Fatalf("%q: fields are missing", src)
	}
	return n
}

const (
	before = "# é\nkey: "
	after  = "\nnext: x\n"
)

func TestAtPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := build(before, foldedLines(t, words(t, same("w"), same(" z"), same("'"), same("\""), same("\\n"))), after)
		s.check(t, keyed(t, s.src))
	})
}

func TestAtSingleQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := build(
			before+"'",
			foldedLines(t, words(t, same("w"), unit{"'", "''", "''"}, same(" z"), same("\\"), same(": z"))),
			"'"+after,
		)
		s.check(t, keyed(t, s.src))
	})
}

func TestAtDoubleQuoted(t *testing.T) {
	esc := func(text, src string) unit { return unit{text, src, src} }
	rapid.Check(t, func(t *rapid.T) {
		s := build(before+"\"", foldedLines(t, words(
			t,
			same("w"),
			esc("\n", `\n`),
			esc("\"", `\"`),
			esc("\\", `\\`),
			esc("A", `\x41`),
			esc("é", `\xe9`),
			esc("é", `\u00e9`),
			esc("日", `\u65e5`),
			esc("😀", `\U0001F600`),
			esc("\u0085", `\N`),
			esc("\u00a0", `\_`),
			esc("\u2028", `\L`),
			esc("\u2029", `\P`),
			esc(" ", `\ `),
			esc("\x00", `\0`),
			esc("\x1b", `\e`),
			esc("\t", "\\\t"),
			same(" z"),
			unit{"n", "\\\n   n", "n"},
			same("'"),
		)), "\""+after)
		s.check(t, keyed(t, s.src))
	})
}

func TestAtJSON(t *testing.T) {
	esc := func(text, src string) unit { return unit{text, src, src} }
	rapid.Check(t, func(t *rapid.T) {
		s := build(
			"{\"next\": 1,\n \"key\": \"",
			genUnits(
				t,
				esc("😀", `\ud83d\ude00`),
				esc("é", `\u00e9`),
				esc("/", `\/`),
				esc("\n", `\n`),
				esc("\b", `\b`),
				same(" "),
			),
			"\"}",
		)
		s.check(t, keyed(t, s.src))
	})
}

func TestAtLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		indent := rapid.SampledFrom([]string{" ", "  ", "     "}).Draw(t, "indent")
		header := rapid.SampledFrom([]string{"|", "| # note"}).Draw(t, "header")
		br := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "break")
		var units []unit
		for i := range rapid.IntRange(1, 5).Draw(t, "lines") {
			units = append(units, unit{"", indent, indent})
			if i > 0 {
				units = append(units, same(rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "more")))
			}
			units = append(units, append([]unit{same("w")}, genUnits(t, same(" # no"), same("  "), same("\\n"))...)...)
			for range rapid.IntRange(1, 3).Draw(t, "breaks") {
				units = append(units, unit{"\n", br, br})
			}
		}

		for units[len(units)-2].text == "\n" { // clip: one line feed is left
			units = units[:len(units)-1]
		}
		s := build(strings.ReplaceAll(before, "\n", br)+header+br, units, "next: x"+br)
		s.check(t, keyed(t, s.src))
	})
}

func TestAtFolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		indent := rapid.SampledFrom([]string{" ", "   "}).Draw(t, "indent")
		var units []unit
		count := rapid.IntRange(1, 6).Draw(t, "lines")
		more, blanks := make([]bool, count+1), make([]int, count)
		for i := 1; i < count; i++ {
			more[i] = rapid.Bool().Draw(t, "more indented")
		}
		for i := range count - 1 {
			blanks[i] = rapid.IntRange(0, 2).Draw(t, "blank lines")
		}
		for i := range count {
			units = append(units, unit{"", indent, indent})
			if more[i] {
				units = append(units, same("  "))
			}
			units = append(units, append([]unit{same("w")}, genUnits(t, same(" # no"))...)...)
			kept := more[i] || more[i+1] || i == count-1 // breaks around more-indented lines, and the last, stay
			switch {
			case kept:
				units = append(units, same("\n"))
			case blanks[i] == 0:
				units = append(units, unit{" ", "\n", "\n"})
			default:
				units = append(units, unit{"", "\n", "\n"})
			}

			for range blanks[i] {
				units = append(units, same("\n"))
			}
		}

		s := build(before+">\n", units, "next: x\n")
		s.check(t, keyed(t, s.src))
	})
}

func TestAtOfCollections(t *testing.T) {
	n := parseOne(t, "a: [1, 2]\n").Get("a")
	if n.At(0, 1) != n.Range || (&Node{Kind: String, Text: "x"}).At(0, 1) != (diag.Range{}) {
		t.Error("At of what has no text")
	}
	if r := parseOne(t, "a: ''\n").Get("a").At(0, 0); r.Start.Column != 5 || r.End.Column != 5 {
		t.Error(r)
	}
	if r := parseOne(t, "a: |+\n\n\nb: 1\n").Get("a").At(0, 1); r.Start.Line != 1 {
		t.Error(r)
	}
}

// Conversions of offsets and positions are inverse, whatever line breaks and wide characters
// there are.
func TestSourceRoundTrip(t *testing.T) {
	piece := rapid.SampledFrom(
		[]string{"a", "bc ", "é", "日本", "😀", "\n", "\r\n", "\r", strings.Repeat("x", 300), strings.Repeat("ö", 300)},
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "text"), "")
		s := newSource([]byte(text))
		line, column := 1, 1
		for i, r := range text {
			p := s.position(i)
			if p.Line != line || p.Column != column || s.offset(line, column) != i {
				t.Fatalf(
					"%q: byte %d is at %v, not %d:%d; back at %d",
					text,
					i,
					p,
					line,
					column,
					s.offset(line, column),
				)
			}

			column++
			if r == '\n' || r == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
				line, column = line+1, 1
			}
		}
	})
}

// encoding/json, our JSON reader and the YAML reader agree on every JSON text.
func TestJSONAgrees(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.Map(
			rapid.SampledFrom([]string{"", "a", "é\n\"", "😀", "yes", "1", " x ", "\\", "#", ": "}),
			func(s string) any {
				return s
			},
		),
		rapid.Map(
			rapid.SampledFrom([]json.Number{"0", "-1", "1.50", "12345678901234567890123"}),
			func(n json.Number) any {
				return n
			},
		),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	var value *rapid.Generator[any]
	value = rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			list := rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value }), 0, 3).
				Draw(t, "list")
			return append([]any{}, list...)
		case 1:
			return rapid.MapOfN(
				rapid.SampledFrom([]string{"a", "b c", "d.e", "\"", "é"}),
				rapid.Deferred(func() *rapid.Generator[any] {
					return value
				}),
				0,
				3,
			).
				Draw(t, "map")
		}

		return leaf.Draw(t, "leaf")
	})
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]any{"root": value.Draw(t, "value")}
		text := must.Get(json.MarshalIndent(want, "", rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent")))(t)
		for _, as := range []string{string(text), "--- " + string(text)} {
			d, fs := Parse("f", []byte(as), Limits{})
			if d == nil || len(fs) > 0 {
				t.Fatalf("%s: %v", as, fs)
			}
			if got := d.Root.Any(); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %v", as, fmt.Sprint(got))
			}
		}
	})
}

// Found by fuzzing: the range of an error that yaml.v3 detects in the middle of a wide
// character began after its end.
func TestFaultInsideAWideCharacter(t *testing.T) {
	for _, text := range []string{
		"'é",
		"a: '€",
		"a: \"\\u00e9 日本",
		"'\U0001f600",
		"x: 'é\U0001f600é",
		"- '日",
		"\"\U0001f600\U0001f600",
	} {
		for cut := range len(text) + 1 {
			_, fs := Parse("f", []byte(text[:cut]), Limits{})
			for _, f := range fs {
				if less(f.Range.End, f.Range.Start) {
					t.Errorf("%q: %v", text[:cut], f)
				}
			}
		}
	}
}
