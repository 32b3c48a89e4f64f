package condition

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/internal/automata"
	bounded "github.com/assent-dev/assent/internal/pattern"
)

// Limits of a pattern. RE2 matches in time linear in the text; these limit the other factor.
const (
	maxPatternBytes  = 8 << 10
	maxPatternSize   = 10_000 // instructions with repetitions expanded
	maxPatternGroups = 1_000
)

// parsePattern parses RE2 syntax. The error is a *pattern.SizeError or a *syntax.Error.
func parsePattern(text string) (*syntax.Regexp, error) {
	return bounded.Bounds{Bytes: maxPatternBytes, Size: maxPatternSize, Groups: maxPatternGroups}.Parse(text)
}

// CheckPattern returns an error if a text is not a valid operand of Pattern.
func CheckPattern(text string) error {
	_, err := parsePattern(text)
	return err
}

// pattern is a compiled Pattern operand.
type pattern struct {
	text   string // as in the file
	source string // the expression that is searched for
	tree   *syntax.Regexp
	trims  bool           // the right-trimmed text may match even if the whole text does not
	re     *regexp.Regexp // see compile

	// is evaluates the pattern instead of re, if it is not nil.
	is func(text string) bool
	// fact says what a pattern without an expression stands for. Such a pattern has no tree.
	fact *fact
	// named describes a pattern that is not the operand of an operator: the words after the
	// argument if the text matches, and if it does not.
	named [2]string

	machine *automata.Pattern // of an Analyzer, built when needed
}

// newPattern parses a pattern. Call compile before matching.
func newPattern(text string, sem Semantics) (*pattern, error) {
	p := &pattern{text: text, source: text}
	var err error
	p.tree, err = parsePattern(text)
	if err == nil && sem.Anchor == Full {
		p.source, p.tree, err = wholeText(text)
	}
	if err != nil {
		return nil, err
	}
	p.trims = sem.Trim == RawAndTrimmed && seesEnd(p.tree)
	return p, nil
}

// wholeText anchors a pattern at both ends. An open \Q at the end of a pattern is closed first.
// For the deepest patterns the result may exceed the limit of nesting.
func wholeText(text string) (source string, tree *syntax.Regexp, err error) {
	for _, end := range []string{`)\z`, `\E)\z`} {
		source = `\A(?:` + text + end
		if tree, err = syntax.Parse(source, syntax.Perl); err == nil {
			break
		}
	}

	return source, tree, err
}

// compile builds the regular expression, once.
func (p *pattern) compile() {
	if p.re == nil && p.is == nil {
		// newPattern has parsed it; the anchors of wholeText add a little.
		p.re = bounded.Bounds{
			Bytes:  maxPatternBytes + 16,
			Size:   maxPatternSize + 16,
			Groups: maxPatternGroups,
		}.MustCompile(p.source)
	}
}

// automaton builds the pattern's machine, once.
func (p *pattern) automaton() *automata.Pattern {
	if p.machine == nil {
		p.machine = automata.NewPattern(p.tree, p.trims)
	}
	return p.machine
}

// holds reports whether the pattern matches the text or, if that may differ, the text without
// trailing white space.
func (p *pattern) holds(text string) bool {
	is := p.is
	if is == nil {
		is = p.re.MatchString
	}
	if is(text) {
		return true
	}
	if !p.trims {
		return false
	}
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	return len(trimmed) < len(text) && is(trimmed)
}

func (p *pattern) truth(text string) Truth { return truthOf(p.holds(text)) }

func (p *pattern) set(Truth) texts { return p.among(false) }

// among returns the texts that match the pattern, or those that don't.
func (p *pattern) among(not bool) texts { return texts{but: true, pats: []literal{{p, not}}} }

// cost is higher than that of lists of numbers and strings.
func (p *pattern) cost() int { return 2*longList + 1 }

// seesEnd reports whether an expression has an assertion about what follows. Without one,
// whatever matches a prefix of a text also matches the text.
func seesEnd(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEndText, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if seesEnd(sub) {
			return true
		}
	}
	return false
}
