package condition

import (
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// Pattern is the operator that searches a string for a regular expression.
const Pattern Op = "pattern"

// search holds for strings that contain a match of its operand.
type search struct{}

func (search) op() Op { return Pattern }

func (search) means() string { return "Regular expression (RE2) found anywhere in the text." }

func (search) words() words { return words{"a match of", "matches"} }

func (search) slips() []Op { return nil } // mutation tests change its anchors

func (search) operand() operand { return regularExpression{one{value.String}} }

func (search) negative() bool { return false }

func (search) expression(operand string) (string, bool) { return operand, true }

func (search) compare(t *Test, with compiling) (comparison, bool) {
	if t.Operand.Kind != value.String {
		return comparison{}, false
	}

	found, err := with.patterns(t.Operand.Text)
	return comparison{texts: found}, err == nil
}

// regularExpression is a string that must be a regular expression.
type regularExpression struct{ one }

func (r regularExpression) read(p *parser, t *Test, n *yamldoc.Node) bool {
	if !r.one.read(p, t, n) {
		return false
	}
	if _, err := parsePattern(n.Text); err != nil {
		p.findings = append(p.findings, patternFault(n, err))
		return false
	}

	p.findings = append(p.findings, patternAdvice(n)...)
	return true
}
