package condition

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// Length is the operator that counts the characters of a text, the elements of a list or the
// members of an object.
const Length Op = "length"

// lengths holds for texts, lists and objects whose length passes all of its tests.
type lengths struct{}

func (lengths) op() Op { return Length }

func (lengths) means() string {
	return "Code points of a text, elements of a list, or members of an object. Unknown for other types."
}

func (lengths) words() words { return words{"of length", "has a length"} }

func (lengths) slips() []Op { return nil } // mutation tests change the tests of the length

func (lengths) operand() operand { return countTests{} }

func (lengths) negative() bool { return false }

func (lengths) expression(string) (string, bool) { return "", false }

func (lengths) compare(t *Test, _ compiling) (comparison, bool) {
	all := allCounts(true)
	for i := range t.Tests {
		n := &t.Tests[i].Operand
		if n.Kind != value.Number || !slices.Contains(orders, t.Tests[i].Op) {
			return comparison{}, false
		}
		all = all.and(countsOf(t.Tests[i].Op, n.Num))
	}
	return comparison{texts: lengthFact(all), compounds: lengthTest{all}}, len(t.Tests) > 0
}

// orders are the operators that compare numbers.
var orders = []Op{Gt, Gte, Lt, Lte}

// lengthTest holds for lists and objects of some lengths.
type lengthTest struct{ counts counts }

func (l lengthTest) truth(s *value.Slot, _ *View) Truth {
	v, err := s.Value()
	if err != nil {
		return Unknown
	}
	return truthOf(l.counts.has(len(v.Items) + len(v.Members)))
}

func (l lengthTest) set(Truth, *question) *compounds {
	c := &compounds{objects: l.counts}
	if !l.counts.empty() {
		c.lists = []listBox{{lengths: l.counts}}
	}
	return c
}

func (l lengthTest) cost() int { return longList }

// lengthFact holds for texts of some lengths.
func lengthFact(c counts) *pattern {
	key := strconv.FormatBool(c.first)
	for _, cut := range c.cuts {
		key += " " + strconv.Itoa(cut)
	}
	f := &fact{family: textLengths{}, about: c}
	if n, ok := c.from(0); ok && n <= maxSample {
		f.samples = []string{strings.Repeat("x", n)}
	}
	words := c.words("character", "characters")
	return &pattern{
		text:   key,
		source: "length\x00" + key,
		is:     func(text string) bool { return c.has(utf8.RuneCountInString(text)) },
		fact:   f,
		named:  [2]string{"has " + words, "is a text that does not have " + words},
	}
}

// maxSample is the length of the longest text that is tried.
const maxSample = 1 << 20

// textLengths is the family of facts about the length of a text.
type textLengths struct{}

// maxCounted is the largest number of repetitions in a regular expression.
const maxCounted = 1_000

func (textLengths) cells(facts []*fact) []textCell {
	cuts := []int{0}
	for _, f := range facts {
		cuts = append(cuts, f.about.(counts).cuts...)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var cells []textCell
	for i, low := range cuts {
		c := textCell{
			possible: func() texts { return allTexts(true) },
			certain:  func() []texts { return nil },
			holds:    func(f *fact) bool { return f.about.(counts).has(low) },
		}
		if low <= maxSample {
			c.sample, c.known = strings.Repeat("x", low), true
		}
		last := i == len(cuts)-1
		switch {
		case low > maxCounted:
		case last:
			source := `\A(?s:.{` + strconv.Itoa(low) + `,})\z`
			c.certain, c.possible = certainly(source), possibly(source)
		case cuts[i+1]-1 <= maxCounted:
			source := `\A(?s:.{` + strconv.Itoa(low) + "," + strconv.Itoa(cuts[i+1]-1) + `})\z`
			c.certain, c.possible = certainly(source), possibly(source)
		default:
			c.certain = certainly(`\A(?s:.{` + strconv.Itoa(low) + "," + strconv.Itoa(maxCounted) + `})\z`)
			c.possible = possibly(`\A(?s:.{` + strconv.Itoa(low) + `,})\z`)
		}
		cells = append(cells, c)
	}
	return cells
}

// countTests are comparisons with whole numbers.
type countTests struct{}

func (countTests) schema() string {
	var all []string
	for _, op := range orders {
		all = append(all, `"`+string(op)+`": { "type": "integer", "minimum": 0 }`)
	}
	return `"type": "object", "minProperties": 1, "properties": { ` + strings.Join(all, ", ") +
		` }, "additionalProperties": false`
}

func (countTests) read(p *parser, t *Test, n *yamldoc.Node) bool {
	if n.Kind != yamldoc.Mapping || len(n.Fields) == 0 {
		p.refuse(n.Range)
		return false
	}
	sound := true
	for i := range n.Fields {
		key, operand := n.Fields[i].Key, n.Fields[i].Value
		number, ok := p.scalar(operand)
		switch {
		case !ok:
		case !slices.Contains(orders, Op(key.Text)):
			p.refuse(key.Range)
			ok = false
		case number.Kind != value.Number || !number.Num.IsInt() || strings.HasPrefix(number.Num.Canonical(), "-"):
			p.findings = append(p.findings, yamldoc.Stop(ruleOperand, operand.Range,
				"a length is compared with whole numbers", "a whole number from 0 on"))
			ok = false
		}
		sound = sound && ok
		t.Tests = append(t.Tests, Test{Op: Op(key.Text), Operand: number, Range: operand.Range})
	}
	return sound
}

func (countTests) of(*Test) []Scalar { return nil }

func (countTests) text(t *Test, most int) string { return "(" + textsOfTests(t.Tests, most) + ")" }

func textsOfTests(tests []Test, most int) string {
	var all []string
	for i := range tests {
		all = append(all, strings.TrimSpace(string(tests[i].Op)+" "+tests[i].operandText(most)))
	}
	return strings.Join(all, " and ")
}
