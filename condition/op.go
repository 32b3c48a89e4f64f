package condition

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// Op is the name of an operator, as a file writes it: `amount: {gt: 5}`.
type Op string

// Unreadable is the operator that Parse gives a test which it had to
// report as an error. The test is always Unknown, whatever the
// arguments. A test with an operator that does not exist is, too.
const Unreadable Op = "unreadable"

// operator is all there is to one kind of test. Programs evaluate the
// comparison, the Analyzer computes with its sets, and the JSON Schemas
// and the documentation are written from the rest, so an operator is
// known everywhere or doesn't compile.
type operator interface {
	// op is the name.
	op() Op

	// means says what an argument must be, for the JSON Schemas.
	means() string

	// words name the test in sentences.
	words() words

	// slips are the operators that an author may have meant instead.
	// Mutation tests put each in the place of the operator.
	slips() []Op

	// operand is what a file writes behind the name.
	operand() operand

	// negative reports whether the test holds for every argument but
	// its operands, of other types too.
	negative() bool

	// expression is the regular expression that the test searches for,
	// of an operand; false if it searches for none.
	expression(operand string) (re string, ok bool)

	// compare compiles the operands of a test. It fails when they
	// aren't what operand reads, as a hand-made Test may.
	compare(operands []Scalar, patterns patterns) (comparison, bool)
}

// words name a test: a reason says "amount above 5", a list "amount > 5".
type words struct{ reason, list string }

// operators are those that a file may write, in the order in which
// sentences list them. A new operator is a file op_*.go and a line
// here; then `make generate` writes it into the JSON Schemas and the
// documentation.
var operators = [...]operator{
	order{Gt, "Greater than.", words{"above", ">"}, 1, false},
	order{Gte, "Greater or equal.", words{"at least", "≥"}, 1, true},
	order{Lt, "Less than.", words{"below", "<"}, -1, false},
	order{Lte, "Less or equal.", words{"at most", "≤"}, -1, true},
	equality{Ne, "Any other value.", words{"not", "is not"}, one{}, true},
	search{},
	equality{In, "One of these.", words{"one of", "is one of"}, many{}, false},
	equality{NotIn, "None of these.", words{"none of", "is none of"}, many{}, true},
}

// find returns the operator of a name. What a file writes as a bare
// value is Eq, which no file can name.
func find(name Op) (operator, bool) {
	for _, o := range operators {
		if o.op() == name {
			return o, true
		}
	}
	return equality{name: Eq, named: words{"equal to", "is"}, form: one{}}, name == Eq
}

// Operators lists the names that a file may write.
func Operators() []Op {
	var names []Op
	for _, o := range operators {
		names = append(names, o.op())
	}
	return names
}

// OperatorList is Operators as a sentence has them.
func OperatorList() string {
	var names []string
	for _, o := range operators {
		names = append(names, "`"+string(o.op())+"`")
	}
	return strings.Join(names, ", ")
}

// Schema returns the operator as a property of a JSON Schema that
// defines `scalar`.
func (o Op) Schema() string {
	known, _ := find(o)
	return `"` + string(o) + `": { "description": "` + known.means() + `", ` + known.operand().schema() + ` }`
}

// InReasons names the operator in a reason: "above". It is empty for a
// name that is no operator.
func (o Op) InReasons() string {
	if known, ok := find(o); ok {
		return known.words().reason
	}
	return ""
}

// InLists names the operator in a list of rules: ">". It is empty for a
// name that is no operator.
func (o Op) InLists() string {
	if known, ok := find(o); ok {
		return known.words().list
	}
	return ""
}

// Slips lists the operators that an author may have meant instead.
func (o Op) Slips() []Op {
	if known, ok := find(o); ok {
		return known.slips()
	}
	return nil
}

// patterns compiles regular expressions, each once.
type patterns func(text string) (*pattern, error)

// comparison is what a test does with arguments of its operands' types.
// A field is nil when no operand is of its type.
type comparison struct {
	bools   *[2]bool // whether the test holds for false and for true
	numbers numberTest
	texts   textTest
}

// numberTest is a test of numbers. It is Unknown for a number which a
// reader that rounds to doubles would answer differently
// (docs/design/001-semantics.md, row "numbers"). set returns the numbers
// that reach a level of truth.
type numberTest interface {
	truth(n *value.Num) Truth
	set(level Truth) numbers
	cost() int
}

// textTest is a test of strings: holds evaluates it, set is the same for
// all strings at once.
type textTest interface {
	holds(s string) bool
	set() texts
	cost() int
}

// operand is what a file writes behind the name of an operator.
type operand interface {
	// schema describes it in a JSON Schema.
	schema() string

	// read takes it into a test; false if it can't.
	read(p *parser, t *Test, n *yamldoc.Node) bool

	// of lists the operands of a test.
	of(t *Test) []Scalar

	// text prints them.
	text(t *Test) string
}

// one is a single scalar of a kind, or of any kind.
type one struct{ kind value.Kind }

func (o one) schema() string {
	switch o.kind {
	case value.Number:
		return `"type": "number"`
	case value.String:
		return `"type": "string"`
	}

	return `"$ref": "#/$defs/scalar"`
}

func (o one) read(p *parser, t *Test, n *yamldoc.Node) bool {
	scalar, ok := p.scalar(n)
	if ok && o.kind != value.Absent && o.kind != scalar.Kind {
		p.refuse(n.Range)
		return false
	}

	t.Operand = scalar
	return ok
}

func (o one) of(t *Test) []Scalar { return []Scalar{t.Operand} }

func (o one) text(t *Test) string { return t.Operand.String() }

// many is a list of scalars. An entry that cannot be read spoils the test.
type many struct{}

func (many) schema() string { return `"type": "array", "items": { "$ref": "#/$defs/scalar" }` }

func (many) read(p *parser, t *Test, n *yamldoc.Node) bool {
	if n.Kind != yamldoc.Sequence {
		p.refuse(n.Range)
		return false
	}

	sound := true
	for _, item := range n.Items {
		scalar, ok := p.scalar(item)
		sound = sound && ok
		t.List = append(t.List, scalar)
	}
	return sound
}

func (many) of(t *Test) []Scalar { return t.List }

func (many) text(t *Test) string {
	const shown = 8
	var entries []string
	for i := range t.List[:min(len(t.List), shown)] {
		entries = append(entries, t.List[i].String())
	}
	if more := len(t.List) - shown; more > 0 {
		entries = append(entries, strconv.Itoa(more)+" more")
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

// Operands lists what the test compares arguments with.
func (t *Test) Operands() []Scalar {
	o, _ := find(t.Op)
	return o.operand().of(t)
}

// Negative reports whether the test holds for every argument but its
// operands.
func (t *Test) Negative() bool {
	o, _ := find(t.Op)
	return o.negative()
}

// Expression returns the regular expression that the test searches for;
// false if it compares values.
func (t *Test) Expression() (re string, ok bool) {
	o, _ := find(t.Op)
	return o.expression(t.Operand.Text)
}

// String prints the test as in "gt 10000" or `in ["EUR", "USD"]`. Long
// lists are cut.
func (t *Test) String() string {
	o, ok := find(t.Op)
	if !ok {
		return string(t.Op)
	}
	return string(t.Op) + " " + o.operand().text(t)
}
