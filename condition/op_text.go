package condition

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// The operators of Policy11 that look at texts.
const (
	NotPattern Op = "not_pattern"
	StartsWith Op = "starts_with"
	EndsWith   Op = "ends_with"
)

// unmatched holds for strings for which Pattern does not hold.
type unmatched struct{ search }

func (unmatched) op() Op { return NotPattern }

func (unmatched) means() string {
	return "Regular expression (RE2) found nowhere in the text. Unknown for what is no text."
}

func (unmatched) words() words { return words{"a text without a match of", "does not match"} }

func (unmatched) slips() []Op { return []Op{Pattern} }

func (unmatched) expression(string) (string, bool) { return "", false }

func (unmatched) compare(t *Test, with compiling) (comparison, bool) {
	c, ok := search{}.compare(t, with)
	if !ok {
		return c, false
	}
	return comparison{texts: without{c.texts.(*pattern)}}, true
}

// without holds for the texts that a pattern does not match.
type without struct{ *pattern }

func (w without) truth(text string) Truth { return truthOf(!w.holds(text)) }

func (w without) set(Truth) texts { return w.among(true) }

// affix holds for strings that begin or end with one of its operands.
type affix struct {
	name    Op
	meaning string
	named   words
}

func (a affix) op() Op { return a.name }

func (a affix) means() string { return a.meaning }

func (a affix) words() words { return a.named }

func (a affix) slips() []Op {
	return map[Op][]Op{StartsWith: {EndsWith}, EndsWith: {StartsWith}}[a.name]
}

func (a affix) operand() operand { return someTexts{} }

func (a affix) negative() bool { return false }

func (a affix) expression(string) (string, bool) { return "", false }

func (a affix) compare(t *Test, with compiling) (comparison, bool) {
	words, ok := textsOf(t)
	if !ok {
		return comparison{}, false
	}
	escaped, p := make([]string, len(words)), &pattern{}
	for i, word := range words {
		escaped[i] = regexp.QuoteMeta(word)
	}

	is, verb := strings.HasPrefix, "begins with "
	p.source = `\A(?:` + strings.Join(escaped, "|") + ")"
	if a.name == EndsWith {
		is, verb = strings.HasSuffix, "ends with "
		p.source, p.trims = "(?:"+strings.Join(escaped, "|")+`)\z`, with.sem.Trim == RawAndTrimmed
	}
	p.is = func(text string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return is(text, word) })
	}
	list := enumerate(quoted(words), " or ")
	p.named = [2]string{verb + list, "is a text that neither " + verb + list}
	if len(words) == 1 {
		p.named[1] = "is a text that does not " + strings.Replace(verb, "s with", " with", 1) + list
	}
	tree, err := syntax.Parse(p.source, syntax.Perl)
	p.tree, p.text = tree, p.source
	return comparison{texts: p}, err == nil
}

// someTexts is a text or a list of texts, none of which is empty.
type someTexts struct {
	// check returns what is wrong with a text, or an empty string. It is nil if every text is
	// allowed.
	check func(text string) (fault, expected string)
}

func (someTexts) schema() string {
	return `"anyOf": [{ "type": "string", "minLength": 1 }, { "type": "array", "minItems": 1, ` +
		`"items": { "type": "string", "minLength": 1 } }]`
}

func (l someTexts) read(p *parser, t *Test, n *yamldoc.Node) bool {
	items := []*yamldoc.Node{n}
	if n.Kind == yamldoc.Sequence {
		items = n.Items
	}
	if len(items) == 0 {
		p.refuse(n.Range)
		return false
	}
	sound := true
	for _, item := range items {
		if item.Kind != yamldoc.String || item.Text == "" {
			p.refuse(item.Range)
			sound = false
			continue
		}
		if l.check != nil {
			if fault, expected := l.check(item.Text); fault != "" {
				p.findings = append(p.findings, yamldoc.Stop(ruleOperand, item.Range, fault, expected))
				sound = false
			}
		}
		t.List = append(t.List, Scalar{Kind: value.String, Text: item.Text, Range: item.Range})
	}

	return sound
}

func (someTexts) of(t *Test) []Scalar { return t.List }

func (someTexts) text(t *Test, most int) string {
	if len(t.List) == 1 {
		return t.List[0].String()
	}
	return many{}.text(t, most)
}

// textsOf returns the texts of a test. It returns false if there are none, or other operands.
func textsOf(t *Test) ([]string, bool) {
	var words []string
	for i := range t.List {
		if t.List[i].Kind != value.String || t.List[i].Text == "" {
			return nil, false
		}
		words = append(words, t.List[i].Text)
	}
	return words, len(words) > 0
}
