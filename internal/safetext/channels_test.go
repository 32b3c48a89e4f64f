package safetext

import (
	"fmt"
	"strings"
	"testing"
)

// The text of each channel is compared character by character.
func TestTextsOnEachChannel(t *testing.T) {
	for name, c := range map[string]struct {
		show  func(string) string
		texts map[string]string
	}{
		"Terminal": {Terminal, map[string]string{
			"a ~\nb":             "a ~\nb",
			"\ta\r\nb":           `\u{9}a\u{d}` + "\nb",
			"\x1b[2J\u202e":      `\u{1b}[2J\u{202e}`,
			"é\xff\u00a0":        `é\x{ff}\u{a0}`,
			`\u{202e} \x{ff}`:    `\u{202e} \x{ff}`,
			"a\u0301 \u0301":     "a\u0301 " + `\u{301}`,
			"\u200b\u200b\u200b": `\u{200b}\u{200b}\u{200b}`,
		}},
		"TerminalLine": {TerminalLine, map[string]string{"a\nb": `a\u{a}b`, "a\tb": `a\u{9}b`, "a b": "a b"}},
		"JSON": {JSON, map[string]string{
			"{\n \"a\": 1}": "{\n \"a\": 1}",
			"\"\u202e\"":    `"\u202e"`,
			"\U000e0041":    `\udb40\udc41`,
			"\u007f\ufeff":  `\u007f\ufeff`,
		}},
		"Printable": {Printable, map[string]string{
			" a~":           " a~",
			"a\nb\tc":       `a\nb\tc`,
			"\x1f\x7f":      `\u{1f}\u{7f}`,
			"\xff\x80":      `\xff\x80`,
			"a\u00a0b":      "a\u00a0b",
			"\u200bé\ufffd": `\u{200b}é` + "\ufffd",
			"\v\r":          `\u{b}\u{d}`,
		}},
		"Author": {Author, map[string]string{
			"a\n\tb\r\nc":              "a\n\tb\nc",
			"\r\b\v":                   `\u{d}\u{8}\u{b}`,
			"\u200b\u200c\u200d\u200e": `\u{200b}` + "\u200c\u200d" + `\u{200e}`,
			"\u202e\x1b\xff\ufffd":     `\u{202e}\u{1b}\x{ff}` + "\ufffd",
			"☺\ufe0f é":                "☺\ufe0f é",
		}},
		"Markdown": {Markdown, map[string]string{
			"`*[]()<>#|~&@\\!_:$": "&#96;&#42;&#91;&#93;&#40;&#41;&#60;&#62;&#35;&#124;" +
				"&#126;&#38;&#64;&#92;&#33;&#95;&#58;&#36;",
			"a-b.c é\n": "a-b.c é\n",
		}},
		"Slack": {Slack, map[string]string{
			"a <b> & c\x7e": "a &lt;b&gt; &amp; c~",
			"é":             Isolate + "é" + PopIsolate,
			"\u0080":        `\u{80}`,
			"a\nb":          `a\u{a}b`,
		}},
		"SlackMessage": {SlackMessage, map[string]string{
			"a " + Isolate + "b" + PopIsolate + " <c>": Isolate + "a " +
				Isolate + "b" + PopIsolate + " &lt;c&gt;" + PopIsolate,
			"a\u202eb": Isolate + `a\u{202e}b` + PopIsolate,
		}},
	} {
		for text, want := range c.texts {
			if got := c.show(text); got != want {
				t.Errorf("%s of %+q: %+q, expected %+q", name, text, got, want)
			}
		}
	}
}

func TestWidth(t *testing.T) {
	for r, want := range map[rune]int{
		'a': 1, ' ': 1, 'é': 1, 'ｱ': 1, 'я': 1, '漢': 2, 'Ａ': 2, '가': 2, '\u0301': 0, '\u20dd': 0,
	} {
		if got := Width(r); got != want {
			t.Errorf("%c takes %d cells, expected %d", r, got, want)
		}
	}
}

func TestSlackLengthCountsUTF16(t *testing.T) {
	for text, want := range map[string]int{"": 0, "aé": 2, "\uffff": 1, "\U00010000": 2, "😀a": 3} {
		if got := SlackLength(text); got != want {
			t.Errorf("%+q: %d, expected %d", text, got, want)
		}
	}
}

// A text is never longer than the limit, complete if it fits, and otherwise says how much is
// left out.
func TestSlackIsCutToItsLimit(t *testing.T) {
	for _, unit := range []string{"a", "é", "😀", "<", "\u202e"} {
		for _, n := range []int{1, 100, 200, 201, 500} {
			text := strings.Repeat(unit+"-", n)
			const limit = 200
			shown, whole := CutSlack(text, limit)
			if SlackLength(shown) > limit || whole != (SlackLength(Slack(text)) <= limit) {
				t.Errorf("%d of %+q: %d units, whole: %v", n, unit, SlackLength(shown), whole)
			}
			if whole && shown != Slack(text) {
				t.Errorf("%d of %+q: %+q", n, unit, shown)
			}
			head := HeadSlack(text, limit)
			if SlackLength(head) > limit+1 || whole != (head == Slack(text)) || !whole != strings.HasSuffix(head, "…") {
				t.Errorf("%d of %+q: %d units begin %+q", n, unit, SlackLength(head), head)
			}
		}
	}

	long := strings.Repeat("a", 1000)
	words := fmt.Sprintf(" … (%d characters are not shown here) … ", 880)
	want := strings.Repeat("a", 80) + words + strings.Repeat("a", 40)
	if got, whole := CutSlack(long, 200); got != want || whole {
		t.Errorf("got %s", got)
	}
	if got := HeadSlack(long, 75); got != strings.Repeat("a", 73)+"…" {
		t.Errorf("got %s", got)
	}
	if got := HeadSlack(long[:75], 75); got != long[:75] {
		t.Errorf("got %s", got)
	}
}

func TestSequencesEndWithTheirLastCharacter(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[?25lx":    "x",
		"\x1b[~x":       "x",
		"\x1b[@x":       "x",
		"\x1b[ qx":      "x",
		"\x1b[/mx":      "x",
		"\x1b[\x7fx":    "x",
		"\x1b[éx":       "éx",
		"\x1b[":         "",
		"\x1bP1\x1b\\x": "x",
		"\x1b^1\u009cx": "x",
		"\x1bX1\ax":     "x",
		"\x1b_1\ax":     "x",
	} {
		if got := Strip(text); got.Text != want || got.Out[Control] == 0 {
			t.Errorf("%+q: %+q, expected %+q", text, got.Text, want)
		}
	}
}

func TestFlagsSayWhatWasFound(t *testing.T) {
	for flag, want := range map[string][2]bool{
		"bidi": {true, false}, "tag": {true, false}, "invisible": {true, false}, "control": {true, false},
		"invalid": {true, false}, "alike": {false, true}, "mixed": {false, true}, "digits": {false, true},
		"rtl": {false, false}, "spaces": {false, false},
	} {
		f := Flags{}
		f.Add(Flags{flag: true})
		if got := [2]bool{f.Hides(), f.Deceives()}; got != want {
			t.Errorf("%s: hides and deceives %v, expected %v", flag, got, want)
		}
	}
}

func TestEscapesOfMessagesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		`\u{202e}x`: 8, `\x{ff}`: 6, `\u{a*40}b`: 8, `\u{a}`: 5,
		`\u{}`: 0, `\x{}`: 0, `\u{g}`: 0, `\u{a`: 0, `\u{a `: 0, `\n{a}`: 0, `u{a}`: 0, "": 0,
	} {
		if got := spelled(text); got != want {
			t.Errorf("%s: %d bytes, expected %d", text, got, want)
		}
	}
}

func TestHead(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
		cut  bool
	}{
		{"éab", 2, "éa", true},
		{"éa", 2, "éa", false},
		{"a", 0, "", true},
		{"", 0, "", false},
	} {
		if got, cut := Head(c.text, c.n); got != c.want || cut != c.cut {
			t.Errorf("%d of %q: %q, %v", c.n, c.text, got, cut)
		}
	}
}
