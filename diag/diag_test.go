package diag

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
	"pgregory.net/rapid"
)

func TestSeverity(t *testing.T) {
	for _, s := range []Severity{Info, Warning, Error} {
		if got, err := ParseSeverity(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if _, err := ParseSeverity("fatal"); err == nil || !strings.Contains(err.Error(), "error, warning or info") {
		t.Error(err)
	}
}

func TestStamp(t *testing.T) {
	fs := []Finding{{}, {File: "sub"}}
	if Stamp(fs, "main"); fs[0].File != "main" || fs[1].File != "sub" {
		t.Error(fs)
	}
}

// Sort returns the same order for any permutation of findings.
func TestSortIsTotal(t *testing.T) {
	small := rapid.IntRange(0, 2)
	word := rapid.SampledFrom([]string{"a", "b"})
	finding := rapid.Custom(func(t *rapid.T) Finding {
		return Finding{
			File:     word.Draw(t, "file"),
			Rule:     word.Draw(t, "rule"),
			Message:  word.Draw(t, "message"),
			Severity: Severity(small.Draw(t, "severity")),
			Range: Range{
				Position{small.Draw(t, "line"), small.Draw(t, "column")},
				Position{small.Draw(t, "endLine"), small.Draw(t, "endColumn")},
			},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		fs := rapid.SliceOf(finding).Draw(t, "findings")
		want := slices.Clone(fs)
		Sort(want)
		got := rapid.Permutation(fs).Draw(t, "permutation")
		Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v\n%v", got, want)
		}
	})
	fs := []Finding{
		{File: "b"},
		{File: "a", Range: Range{Start: Position{10, 1}}},
		{File: "a", Range: Range{Start: Position{9, 5}}},
	}
	if Sort(fs); fs[0].Range.Start.Line != 9 || fs[2].File != "b" {
		t.Error(fs)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"approval", "alias", "allowed_tools", "allowed_skills", "gt", "gte", "lt", "not_in", "name"}
	for name, want := range map[string]string{
		"aproval":      "approval",
		"aprpoval":     "approval",
		"Approval":     "approval",
		"alais":        "alias",
		"allow_tools":  "allowed_tools",
		"allowedTools": "allowed_tools",
		"notin":        "not_in",
		"not-in":       "not_in",
		"gtt":          "gt",
		"nmae":         "name",
		"approval":     "",
		"zzz":          "",
		"":             "",
		"x":            "",
		"eq":           "",
		"contains":     "",
		"tl":           "lt",
		"ähnlich":      "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{
		"approval",
		"alias",
		"message_template",
		"local_agents",
		"remote_agents",
		"agf.react",
		"condition",
		"approve",
	}
	for name, want := range map[string]string{
		"message":           "message_template",
		"agents":            "local_agents",
		"react":             "agf.react",
		"requires_approval": "approval",
		"Require Approval":  "approval",
		"when":              "condition",
		"allow":             "approve",
		"aproval":           "approval",
		"reject":            "",
		"template":          "message_template",
		"cond":              "condition",
		"con":               "",
		"local":             "local_agents",
		"":                  "",
		"x":                 "",
		"message_template":  "",
		"some_message":      "",
		"alias":             "",
	} {
		if got := Suggest(name, known); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":            "plain",
		"日本 é ß":           "日本 é ß",
		"\x1b[31m":         `\u{1b}[31m`,
		"a\nb\tc":          `a\nb\tc`,
		"\u202e\u200b":     `\u{202e}\u{200b}`,
		"\u0085\u2028":     `\u{85}\u{2028}`,
		"\xff\xc0":         `\xff\xc0`,
		"\U000e0041":       `\u{e0041}`,
		"\ue000\u3164":     `\u{e000}\u{3164}`,
		"\ufe0f\U000e0100": `\u{fe0f}\u{e0100}`,
		"\u0378":           `\u{378}`,
		"\ufffd":           "\ufffd",
		"a\u00a0b":         "a\u00a0b",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %s, want %s", in, got, want)
		}
	}
}

func cells(s string) int {
	n := 0
	for _, r := range s {
		n += safetext.Width(r)
	}
	return n
}

// For any line, the output is harmless and short, and the underline covers exactly the range.
func TestSnippetFits(t *testing.T) {
	char := rapid.SampledFrom(
		[]string{"a", " ", "日", "é", "e\u0301", "\t", "\x1b", "\u202e", "😀", "\xff", "\u200b", "한"},
	)
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(char, 0, 200).Draw(t, "line"), "")
		n := utf8.RuneCountInString(line)
		start := rapid.IntRange(1, n+1).Draw(t, "start")
		end := rapid.IntRange(start, n+1).Draw(t, "end")
		width := rapid.IntRange(minWindow, maxWindow).Draw(t, "width")
		shown, underline := snippet(line, Range{Position{1, start}, Position{1, end}}, width)
		for _, r := range shown {
			if r == utf8.RuneError || unicode.In(r, unicode.C) {
				t.Fatalf("%q shows %q", line, r)
			}
		}
		if cells(shown) > width+2 {
			t.Fatalf("%d cells: %q", cells(shown), shown)
		}
		lead := len(underline) - len(strings.TrimLeft(underline, " "))
		all := layout(line)
		first, last := window(all, start-1, width)
		if want := total(all[first:start-1]) + min(first, 1); lead != want {
			t.Fatalf("%q: underline at %d, want %d", line, lead, want)
		}
		if want := max(1, total(all[start-1:min(max(end-1, min(start, n)), last)])); len(underline)-lead != want {
			t.Fatalf("%q %d-%d: %d cells underlined, want %d", line, start, end, len(underline)-lead, want)
		}
	})
}

// Source lines and their underlines don't wrap.
func TestTextFitsTheTerminal(t *testing.T) {
	line := strings.Repeat("日\t", 100)
	for terminal, want := range map[int]int{80: 80, 40: 40, 1: 40, 0: 130, 500: 130} {
		var out strings.Builder
		w := NewText(&out, Options{Width: terminal, Source: func(string) []byte { return []byte(line) }})
		f := Finding{Rule: "r", Range: Range{Position{1, 100}, Position{1, 200}}}
		if err := w.File(Report{File: "f", Findings: []Finding{f}}); err != nil {
			t.Fatal(err)
		}
		drawn := strings.Split(out.String(), "\n")[1:3]
		if n := max(cells(drawn[0]), cells(drawn[1])); n > want || n < want-6 {
			t.Errorf("terminal of %d: %d cells\n%s\n%s", terminal, n, drawn[0], drawn[1])
		}
	}
}

func TestSnippetOddRanges(t *testing.T) {
	for _, r := range []Range{
		{},
		{Position{1, 0}, Position{1, 0}},
		{Position{1, 900}, Position{1, 2}},
		{Position{1, 2}, Position{9, 1}},
		{Position{1, 3}, Position{1, 1}},
	} {
		if shown, underline := snippet("abc", r, maxWindow); shown != "abc" || !strings.Contains(underline, "^") {
			t.Errorf("%v: %q %q", r, shown, underline)
		}
	}

	if _, underline := snippet("", Range{Position{1, 1}, Position{1, 1}}, maxWindow); underline != "^" {
		t.Errorf("%q", underline)
	}
}

func TestSnippetOfHugeLine(t *testing.T) {
	line := strings.Repeat("日", 100_000) + "HERE" + strings.Repeat("x", 100_000)
	shown, underline := snippet(line, Range{Position{1, 100_001}, Position{1, 100_005}}, maxWindow)
	at := strings.Index(shown, "HERE")
	if at < 0 || !strings.HasPrefix(shown, "…") || !strings.HasSuffix(shown, "…") {
		t.Fatalf("%q", shown)
	}
	if want := strings.Repeat(" ", cells(shown[:at])) + "^~~~"; underline != want {
		t.Errorf("%q, want %q", underline, want)
	}
	if _, underline := snippet(line, Range{Position{1, 900_000}, Position{1, 900_000}}, maxWindow); strings.TrimLeft(
		underline,
		" ",
	) != "^" {
		t.Errorf("%q", underline)
	}
}

func TestLines(t *testing.T) {
	l := newLines([]byte("\ufeffa\r\nb\rc\n"))
	for n, want := range map[int]string{1: "a", 2: "b", 3: "c", 4: ""} {
		if got, ok := l.line(n); !ok || got != want {
			t.Errorf("%d: %q, %v", n, got, ok)
		}
	}

	for _, n := range []int{0, -1, 5} {
		if _, ok := l.line(n); ok {
			t.Errorf("there is a line %d", n)
		}
	}
	if _, ok := newLines(nil).line(1); ok {
		t.Error("an unknown file has lines")
	}
}

func TestFileURI(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.yaml": "a/b.yaml",
		"/abs/x y": "file:///abs/x%20y",
		"-":        "stdin",
		"":         "stdin",
		"c:d.yaml": "./c:d.yaml",
		"ä.yaml":   "%C3%A4.yaml",
	} {
		if got := fileURI(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func BenchmarkText(b *testing.B) {
	line := "    - alias: execute_trade\n"
	text := []byte(strings.Repeat(line, 100))
	w := NewText(discard{}, Options{Source: func(string) []byte { return text }})
	r := Report{File: "f", Findings: make([]Finding, 20)}
	for i := range r.Findings {
		r.Findings[i] = Finding{Rule: "r", Message: "m", Range: Range{Position{i + 1, 7}, Position{i + 1, 12}}}
	}

	for b.Loop() {
		if err := w.File(r); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
