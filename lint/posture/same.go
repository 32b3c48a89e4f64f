package posture

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// unchanged reports whether both sides have the same gates, so that nothing can differ.
func (p pair) unchanged() bool {
	if p.old.denied != p.new.denied {
		return false
	}
	same := func(old, new []string) bool {
		slices.Sort(old)
		slices.Sort(new)
		return slices.Equal(old, new)
	}
	return same(p.signatures(p.old), p.signatures(p.new)) && same(p.denialKeys(p.old), p.denialKeys(p.new)) &&
		p.sameTemplate(p.old.asks, p.new.asks)
}

// sameTemplate reports whether the gates have the same templates in the same order. The order
// decides which message is shown.
func (p pair) sameTemplate(old, new []int) bool {
	texts := func(s side, list []int) []string {
		var out []string
		for _, i := range list {
			g := &s.target.Gates[i]
			out = append(out, p.signature(s, i)+string(g.Source)+g.Policy)
		}
		return out
	}
	return slices.Equal(texts(p.old, old), texts(p.new, new)) || !p.old.templates() &&
		!p.new.templates()
}

func (s side) templates() bool {
	return slices.ContainsFunc(s.asks, func(i int) bool { return s.target.Gates[i].Template != "" })
}

func (p pair) signatures(s side) []string {
	out := make([]string, len(s.asks))
	for i, at := range s.asks {
		out[i] = p.signature(s, at)
	}
	return out
}

// denialKeys returns keys of the conditions under which a side denies calls.
func (p pair) denialKeys(s side) []string {
	out := make([]string, len(s.denies))
	for i, at := range s.denies {
		out[i] = p.gateKey(s, at)
	}
	return out
}

// signature returns a key of everything about a gate that matters to calls.
func (p pair) signature(s side, at int) string {
	g := &s.target.Gates[at]
	return p.gateKey(s, at) + "\n" + requireKey(g.Require) + "\n" + p.templateKey(g.Template)
}

// templateKey returns a key that is equal for templates that render the same messages.
func (c *comparer) templateKey(text string) string {
	key, ok := c.templates[text]
	if !ok {
		parsed, _ := template.Parse(text)
		key = parsed.Key()
		c.templates[text] = key
	}
	return key
}

// gateKey returns a key of the condition of a gate.
func (p pair) gateKey(s side, at int) string {
	g := &s.target.Gates[at]
	if g.When == nil {
		return ""
	}
	key, ok := p.keys[g.When]
	if !ok {
		key = exprKey(g.When)
		p.keys[g.When] = key
	}
	return strings.Join([]string{
		strconv.Itoa(int(g.Use)), strconv.FormatBool(g.Certain), s.sem.OnMissing.String(),
		s.sem.OnMismatch.String(), s.sem.Anchor.String(),
		s.sem.Trim.String(), key,
	}, " ")
}

// exprKey returns a key that is equal for conditions with the same words. Numbers are compared as
// numbers.
func exprKey(e *condition.Expr) string {
	var b []byte
	for i := range e.Groups {
		b = append(b, '[')
		for _, m := range e.Groups[i].Matchers {
			b = append(strconv.AppendQuote(b, m.Key), '{')
			if m.Takes {
				b = append(b, "takes"...)
			}
			b = append(b, m.FactText()...)
			for j := range m.Tests {
				b = append(append(b, m.Tests[j].Op...), '(')
				for _, o := range m.Tests[j].Operands() {
					b = appendScalar(b, o)
				}
				if len(m.Tests[j].Operands()) == 0 {
					b = append(b, m.Tests[j].OperandText()...)
				}
				b = append(b, ')')
			}

			b = append(b, '}')
		}

		b = append(b, ']')
	}

	return string(b)
}

func appendScalar(b []byte, s condition.Scalar) []byte {
	if s.Kind == value.Number {
		return append(append(b, s.Num.Canonical()...), ',')
	}
	return append(append(b, s.String()...), ',')
}

// requireKey returns a key of the requirements of a gate. "No opinion" and the default have
// different keys, because they join differently.
func requireKey(r *policy.Require) string {
	if r == nil {
		return "nothing"
	}
	text, err := r.MarshalJSON()
	if err != nil {
		return "unreadable"
	}
	return string(r.OnTimeout) + strconv.FormatBool(r.Grants.Bounds == nil) + string(text)
}
