package automata

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// rule is a pattern with its compiled form in the standard library, with which all results are
// compared.
type rule struct {
	text    string
	trim    bool
	machine *Pattern
	re      *regexp.Regexp
}

func newRule(t fataler, text string, trim bool) rule {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rule{text, trim, NewPattern(tree, trim), regexp.MustCompile(text)}
}

type fataler interface{ Fatalf(string, ...any) }

func (r *rule) matches(s string) bool {
	return r.re.MatchString(s) || r.trim && r.re.MatchString(strings.TrimRightFunc(s, unicode.IsSpace))
}

// run walks a machine over a text.
func run(m Machine, text string) bool {
	state := m.start()
	for _, r := range text {
		state = m.next(state, classOf(m.classes(), r))
	}
	return m.accepts(state)
}

func classOf(p *partition, r rune) int {
	i, found := slices.BinarySearch(p.lo, r)
	if !found {
		i--
	}
	return p.class[i]
}

// patterns draws expressions in which every kind of instruction occurs.
func patterns() *rapid.Generator[string] {
	atom := rapid.SampledFrom([]string{
		"a",
		"b",
		" ",
		"é",
		`\n`,
		".",
		"(?s:.)",
		"[ab]",
		"[^a]",
		`\w`,
		`\W`,
		`\s`,
		`\pL`,
		"(?i:a)",
		"(?i:K)",
		"(?i:[k-l])",
		"^",
		"$",
		`\A`,
		`\z`,
		`\b`,
		`\B`,
		"(?m:^)",
		"(?m:$)",
		"",
		`[^\x00-\x{10FFFF}]`,
		"[a-z&&[x]]",
	})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := atom.Draw(t, "atom")
			if rapid.Bool().Draw(t, "group") {
				part = "(?:" + part + rapid.SampledFrom([]string{"", "|"}).Draw(t, "or") + atom.Draw(t, "atom") + ")"
			} else {
				part = "(?:" + part + ")"
			}

			b.WriteString(part + rapid.SampledFrom([]string{"", "", "*", "+", "?", "{2}", "*?"}).Draw(t, "repeat"))
			if rapid.IntRange(0, 9).Draw(t, "alternative") == 0 {
				b.WriteByte('|')
			}
		}

		return b.String()
	})
}

func texts() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune("abkKſé x\n\t\u00a0\u2028")), 0, 8, -1)
}

func TestPatternAgreesWithRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRule(t, patterns().Draw(t, "pattern"), rapid.Bool().Draw(t, "trim"))
		for range 10 {
			if s := texts().Draw(t, "text"); run(r.machine, s) != r.matches(s) {
				t.Fatalf("%q in %q: %v, want %v", r.text, s, run(r.machine, s), r.matches(s))
			}
		}
	})
}

// allTexts returns the texts of up to n characters of an alphabet that
// tells the generator's atoms apart.
func allTexts(n int) []string {
	list, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, s := range last {
			for _, r := range "abé \n" {
				next = append(next, s+string(r))
			}
		}
		list, last = append(list, next...), next
	}

	return list
}

// TestFindAgreesWithBruteForce asks for texts in some machines and not
// in others.
func TestFindAgreesWithBruteForce(t *testing.T) {
	short := allTexts(4)
	tooLarge, questions := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var rules []rule
		var machines []Machine
		for range rapid.IntRange(1, 3).Draw(t, "patterns") {
			r := newRule(t, patterns().Draw(t, "pattern"), rapid.Bool().Draw(t, "trim"))
			rules, machines = append(rules, r), append(machines, r.machine)
		}
		words := rapid.SliceOfN(texts(), 0, 3).Draw(t, "words")
		machines = append(machines, NewWords(words))
		wanted := rapid.SliceOfN(rapid.Bool(), len(machines), len(machines)).Draw(t, "wanted")
		holds := func(s string) bool {
			for i := range rules {
				if rules[i].matches(s) != wanted[i] {
					return false
				}
			}
			return slices.Contains(words, s) == wanted[len(rules)]
		}
		s, outcome := Find(machines, func(contains []bool) bool { return slices.Equal(contains, wanted) }, 2000)
		questions++
		switch outcome {
		case Found:
			if !holds(s) || !utf8.ValidString(s) {
				t.Fatalf("%q is no witness", s)
			}
		case TooLarge:
			tooLarge++
		}

		for _, other := range short {
			if holds(other) &&
				(outcome == None || outcome == Found && utf8.RuneCountInString(other) < utf8.RuneCountInString(s)) {
				t.Fatalf("outcome %d with %q, but %q is shorter", outcome, s, other)
			}
		}
	})
	if tooLarge*100 > questions {
		t.Errorf("%d of %d small questions were too large", tooLarge, questions)
	}
}

func TestFindPrefersReadableTexts(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{`@gmail\.com$`, "@gmail.com"},
		{`^.$`, "a"},
		{`^\W$`, "!"},
		{`^[\x00-\x{10FFFF}]{3}$`, "aaa"},
		{`^\d-\PL[^\x00-\x7f]$`, "0-0¡"},
		{`^[\s]$`, " "},
		{`^[\x00-\x08]$`, "\x00"},
		{`^[\x{AC00}-\x{AC10}]$`, "가"},
		{`(?m)^b$`, "b"},
		{`^(?i:\x{212a})\w\b.$`, "ka!"},
		{`a\bb`, ""},
		{`^$^`, ""},
	} {
		r := newRule(t, c.pattern, false)
		got, outcome := Find(
			[]Machine{r.machine, NewWords(nil)},
			func(in []bool) bool { return in[0] && !in[1] },
			1000,
		)
		if got != c.want || outcome == TooLarge || (outcome == Found) != r.matches(got) {
			t.Errorf("%s: %q (%d), want %q", c.pattern, got, outcome, c.want)
		}
	}
}

// TestTrimming: a text of white space behind a match is a match, in
// front of the end only.
func TestTrimming(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{`com$`, "x.com", true}, {`com$`, "x.com \u00a0\n", true}, {`com$`, "x.com \u00a0x", false},
		{`^$`, " \t", true}, {`^ $`, " ", true}, {`^ $`, "  ", false}, {`^a $`, "a  ", false},
		{`a\B`, "a ", false}, {`a\b`, "a ", true}, {` $`, "a ", true}, {` $`, " a", false},
		{`(?m)^b$`, "b \nb ", true},
	} {
		r := newRule(t, c.pattern, true)
		if got := run(r.machine, c.text); got != c.want || got != r.matches(c.text) {
			t.Errorf("%s in %q: %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}

func TestFindGivesUp(t *testing.T) {
	for _, pattern := range []string{`^[ab]*a[ab]{12}$`, `(\pL\d?){40}x\b`, `(a?){500}b$`} {
		r := newRule(t, pattern, true)
		both := []Machine{r.machine, newRule(t, `^$`, false).machine}
		never := func(in []bool) bool { return in[0] && in[1] }
		if _, outcome := Find(both, never, 50); outcome != TooLarge {
			t.Errorf("%s: outcome %d with 50 states", pattern, outcome)
		}
	}
}

// TestFindHasNoMemory: the answer does not depend on what the machines
// were asked before.
func TestFindHasNoMemory(t *testing.T) {
	r := newRule(t, `^[ab]*a[ab]{6}$`, true)
	matched := func(in []bool) bool { return in[0] }
	never := func([]bool) bool { return false }
	for limit := range 300 {
		fresh := newRule(t, r.text, true)
		_, want := Find([]Machine{fresh.machine}, never, limit)
		if _, got := Find([]Machine{r.machine}, never, limit); got != want {
			t.Fatalf("limit %d: %d after other questions, %d before", limit, got, want)
		}
	}

	before := r.machine.Size()
	if s, outcome := Find([]Machine{r.machine}, matched, 300); outcome != Found || s != "aaaaaaa" ||
		r.machine.Size() != before ||
		before == 0 {
		t.Errorf("%q, %d, size %d then %d", s, outcome, before, r.machine.Size())
	}
}

// TestPartitionSharesRepetitions: a repeated Unicode class costs one set.
func TestPartitionSharesRepetitions(t *testing.T) {
	r := newRule(t, `^(\pL{100}|\pL\pL)$`, false)
	if n := r.machine.classes().n; n != 2 {
		t.Errorf("%d classes, want letters and others", n)
	}
}

func TestWordsLeaveOutInvalidTexts(t *testing.T) {
	w := NewWords([]string{"a\xff", "ab", ""})
	for text, want := range map[string]bool{
		"":        true,
		"ab":      true,
		"a":       false,
		"a\ufffd": false,
		"abc":     false,
		"b":       false,
	} {
		if run(w, text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// BenchmarkFind builds machines and proves things of them: the last
// pattern is what byte automata explode on.
func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		name     string
		patterns []string
	}{
		{"literal suffix is no other", []string{`@gmail\.com$`, `\.com$`}},
		{"digits", []string{`^acct_[0-9]+_prod$`, `^acct_`}},
		{"ignoring case", []string{`(?i)drop\s+table`, `(?i)drop`}},
		{"mail addresses", []string{`^[^@]+@(gmail|yahoo|hotmail)\.com$`, `@[a-z]+\.com$`}},
		{"Unicode classes", []string{`\pL+ \d{4}-\d{2}-\d{2}`, `\d{2}`}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				both := []Machine{newRule(b, c.patterns[0], true).machine, newRule(b, c.patterns[1], true).machine}
				if s, outcome := Find(both, func(in []bool) bool { return in[0] && !in[1] }, 10_000); outcome != None {
					b.Fatalf("%q: %d", s, outcome)
				}
			}
		})
	}
}
