package rules

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// patternUnanchored reports patterns that match anywhere in a text, if the author probably
// meant the whole text.
func patternUnanchored(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if c.Asks() && !p.WholeTexts() {
			for i := range m.Tests {
				judgePatternUnanchored(p, m, &m.Tests[i])
			}
		}
	}
}

func judgePatternUnanchored(p *lint.Pass, m *condition.Matcher, t *condition.Test) {
	text, searches := t.Expression()
	if !searches {
		return
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return // another rule reports it
	}
	inside := strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$")
	fix := lint.Expected(fmt.Sprintf("'^(%s)$' for the whole text", inside))
	switch {
	case halfAnchored(parsed):
		p.Report(
			t.Range,
			"^ belongs to the first alternative alone and $ to the last, so the others match anywhere in a text",
			fix,
		)
	case speaksOfCodes(m.Key) && fixed(parsed):
		p.Report(
			t.Range,
			fmt.Sprintf("this matches anywhere in %q, in longer texts too", m.Key),
			fix,
			lint.Soften(diag.Info),
		)
	}
}

// halfAnchored reports whether only the first and the last alternative are anchored, as in
// `^a|b$`.
func halfAnchored(re *syntax.Regexp) bool {
	if re.Op != syntax.OpAlternate {
		return false
	}
	first, last := re.Sub[0], re.Sub[len(re.Sub)-1]
	return begins(first) && !ends(first) && ends(last) && !begins(last)
}

func begins(re *syntax.Regexp) bool {
	return re.Op == syntax.OpConcat && (re.Sub[0].Op == syntax.OpBeginText || re.Sub[0].Op == syntax.OpBeginLine)
}

func ends(re *syntax.Regexp) bool {
	if re.Op != syntax.OpConcat {
		return false
	}
	last := re.Sub[len(re.Sub)-1].Op
	return last == syntax.OpEndText || last == syntax.OpEndLine
}

// fixed reports whether a pattern describes a text of one length by counting characters, as in
// `[A-Z]{3}` or `\d{4}-\d{2}`, and has no anchor.
func fixed(re *syntax.Regexp) bool {
	counted := false
	var spells func(*syntax.Regexp) bool
	spells = func(re *syntax.Regexp) bool {
		switch re.Op {
		case syntax.OpLiteral, syntax.OpCharClass:
			return true
		case syntax.OpRepeat:
			counted = counted || re.Min == re.Max && re.Sub[0].Op == syntax.OpCharClass
			return re.Min == re.Max && spells(re.Sub[0])
		case syntax.OpConcat, syntax.OpCapture:
			return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !spells(sub) })
		}

		return false
	}
	return spells(re) && counted
}

// speaksOfCodes reports whether the last name in a key has a word for short values that are
// compared as a whole.
func speaksOfCodes(key string) bool {
	name := key[strings.LastIndexByte(key, '.')+1:]
	return slices.ContainsFunc(words.FindAllString(name, -1), func(w string) bool {
		return slices.Contains(codes, strings.ToLower(w))
	})
}

// codes lists words in the names of arguments that hold codes.
var codes = strings.Fields(
	"account bic code country currency date iban id isin key number plate postcode reference sku symbol ticker " +
		"version year zip",
)
