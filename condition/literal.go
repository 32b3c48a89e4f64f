package condition

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLiterals bounds how many literals a pattern may stand for and still be tested without the regex engine.
const maxLiterals = 128

// form is a pattern that is a choice of literals at the beginning, at the end, anywhere, or as the whole text.
type form struct {
	begin, end bool
	literals   []string
	set        map[string]struct{} // of literals, when they are the whole text and many
}

func (f *form) find(text string) bool {
	if f.set != nil {
		_, ok := f.set[text]
		return ok
	}
	for _, l := range f.literals {
		if f.holds(text, l) {
			return true
		}
	}
	return false
}

func (f *form) holds(text, literal string) bool {
	switch {
	case f.begin && f.end:
		return text == literal
	case f.begin:
		return strings.HasPrefix(text, literal)
	case f.end:
		return strings.HasSuffix(text, literal)
	}
	return strings.Contains(text, literal)
}

// literalForms rewrites an expression as a choice of forms, if it is one.
func literalForms(re *syntax.Regexp) ([]form, bool) {
	re = bare(re)
	alternatives := []*syntax.Regexp{re}
	if re.Op == syntax.OpAlternate {
		alternatives = re.Sub
	}
	var forms []form
	total := 0
	for _, alt := range alternatives {
		f, ok := literalForm(alt)
		if total += len(f.literals); !ok || total > maxLiterals {
			return nil, false
		}
		forms = append(forms, f)
	}
	return forms, true
}

func literalForm(re *syntax.Regexp) (form, bool) {
	parts := flatten(nil, re)
	f := form{}
	parts, f.begin = cutAnchor(parts, syntax.OpBeginText, first)
	parts, f.end = cutAnchor(parts, syntax.OpEndText, last)
	literals, ok := expandAll(parts)
	f.literals = literals
	if f.begin && f.end && len(literals) > longList {
		f.set = setOf(literals)
	}
	return f, ok
}

// bare looks through groups: their captures do not matter to a test.
func bare(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	return re
}

func flatten(parts []*syntax.Regexp, re *syntax.Regexp) []*syntax.Regexp {
	if re = bare(re); re.Op != syntax.OpConcat {
		return append(parts, re)
	}
	for _, sub := range re.Sub {
		parts = flatten(parts, sub)
	}
	return parts
}

// first and last look at one end of a list: the part there, and the list without it.
func first(parts []*syntax.Regexp) (*syntax.Regexp, []*syntax.Regexp) {
	return parts[0], parts[1:]
}

func last(parts []*syntax.Regexp) (*syntax.Regexp, []*syntax.Regexp) {
	return parts[len(parts)-1], parts[:len(parts)-1]
}

// cutAnchor takes the anchor off one end. Where there is none, or `(?s).*` undoes it, it also takes off whatever may
// match nothing: a search finds the rest with or without it.
func cutAnchor(parts []*syntax.Regexp, anchor syntax.Op, end func([]*syntax.Regexp) (*syntax.Regexp, []*syntax.Regexp)) ([]*syntax.Regexp, bool) {
	anchored := false
	for len(parts) > 0 {
		part, rest := end(parts)
		switch {
		case part.Op == anchor:
			anchored = true
		case isAnything(part):
			anchored = false
		case anchored || part.Op != syntax.OpStar && part.Op != syntax.OpQuest:
			return parts, anchored
		}
		parts = rest
	}
	return parts, anchored
}

func isAnything(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar && re.Sub[0].Op == syntax.OpAnyChar
}

// expand lists every text that an expression without assertions matches, if they are few.
func expand(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		return expandLiteral(re)
	case syntax.OpCharClass:
		return expandClass(re.Rune)
	case syntax.OpCapture:
		return expand(re.Sub[0])
	case syntax.OpConcat:
		return expandAll(re.Sub)
	case syntax.OpQuest:
		list, ok := expand(re.Sub[0])
		return append(list, ""), ok
	case syntax.OpAlternate:
		return expandAlternate(re.Sub)
	}
	return nil, false
}

func expandAlternate(subs []*syntax.Regexp) ([]string, bool) {
	var all []string
	for _, sub := range subs {
		list, ok := expand(sub)
		if !ok || len(all)+len(list) > maxLiterals {
			return nil, false
		}
		all = append(all, list...)
	}
	return all, true
}

func expandAll(parts []*syntax.Regexp) ([]string, bool) {
	all := []string{""}
	for _, part := range parts {
		list, ok := expand(part)
		if !ok {
			return nil, false
		}
		if all, ok = product(all, list); !ok {
			return nil, false
		}
	}
	return all, true
}

func product(heads, tails []string) ([]string, bool) {
	if len(heads)*len(tails) > maxLiterals {
		return nil, false
	}
	all := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			all = append(all, h+t)
		}
	}
	return all, true
}

func expandLiteral(re *syntax.Regexp) ([]string, bool) {
	fold := re.Flags&syntax.FoldCase != 0
	if !fold && !slices.ContainsFunc(re.Rune, func(r rune) bool { return !utf8.ValidRune(r) }) { // for speed
		return []string{string(re.Rune)}, true
	}
	all, ok := []string{""}, true
	for _, r := range re.Rune {
		set := []rune{r, r}
		for f := unicode.SimpleFold(r); fold && f != r; f = unicode.SimpleFold(f) {
			set = append(set, f, f)
		}
		list, few := expandClass(set)
		if all, ok = product(all, list); !ok || !few {
			return nil, false
		}
	}
	return all, true
}

// expandClass lists the characters of a class. Surrogates are in no text, but a class of them is left to the engine.
func expandClass(set []rune) ([]string, bool) {
	var all []string
	for i := 0; i < len(set); i += 2 {
		for r := set[i]; r <= set[i+1]; r++ {
			if len(all) == maxLiterals || !utf8.ValidRune(r) {
				return nil, false
			}
			all = append(all, string(r))
		}
	}
	return all, true
}
