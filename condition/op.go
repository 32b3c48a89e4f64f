package condition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// Op is the name of an operator in a file: `amount: {gt: 5}`.
type Op string

// Unreadable is the operator of a test that Parse reported as an error. The test is always
// Unknown, whatever the arguments are. So is a test with an operator that does not exist.
const Unreadable Op = "unreadable"

// operator defines one kind of test completely. Programs evaluate the comparison, the Analyzer
// computes with its sets, and the JSON Schemas and the documentation are generated from the
// other methods. Therefore an operator without one of them does not compile.
type operator interface {
	// op returns the name.
	op() Op

	// means describes what the argument must be, for the JSON Schemas.
	means() string

	// words returns the names of the test in sentences.
	words() words

	// slips returns operators that an author may have meant instead. Mutation tests replace the
	// operator by each of them.
	slips() []Op

	// operand returns the form of the operand in a file.
	operand() operand

	// negative reports whether the test holds for every argument except its operands, including
	// those of other types.
	negative() bool

	// expression returns the regular expression that the test searches for, given an operand.
	// It returns false if the test has none.
	expression(operand string) (re string, ok bool)

	// compare compiles the operands of a test. It returns false if they don't have the form
	// that operand reads, which is possible in a Test built in code.
	compare(t *Test, with compiling) (comparison, bool)
}

// compiling holds the settings for compiling tests.
type compiling struct {
	sem      Semantics
	patterns patterns
}

// words are the names of a test: "above" as in "amount above 5" is for reasons, ">" as in
// "amount > 5" is for lists.
type words struct{ reason, list string }

// operators are the operators of AgentFormat, in the order in which sentences list them. To add
// one, write a file op_*.go and add a line here; then `make generate` adds it to the JSON Schemas
// and the documentation.
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

// additions are the operators that only Policy11 has. To add one, write a file op_*.go and add a
// line here, as for operators.
var additions = [...]operator{
	presence{},
	unmatched{},
	affix{StartsWith, "Begins with this text, or one of these.", words{"beginning with", "begins with"}},
	affix{EndsWith, "Ends with this text, or one of these.", words{"ending with", "ends with"}},
	lengths{},
	within{PathInside, "A path that is this directory or below it, or one of these.",
		words{"inside", "is inside"}, false},
	within{NotPathInside, "A path outside this directory, or all of these.", words{"outside", "is outside"}, true},
	site{Host, "An address of this host, or one of these; *.example.com is every host below example.com.",
		words{"an address of", "is an address of"}, false},
	site{NotHost, "A readable address of another host.", words{"no address of", "is an address, not of"}, true},
	elements{Any, "A list with an element that is this value, or passes these tests.",
		words{"with an element", "has an element"}},
	elements{All, "A list of which every element is this value, or passes these tests.",
		words{"with only elements", "has only elements"}},
	elements{None, "A list without an element that is this value, or passes these tests.",
		words{"without an element", "has no element"}},
	money{},
}

// all returns the operators of a language.
func (l Language) all() []operator {
	list := slices.Clone(operators[:])
	if l == Policy11 {
		list = append(list, additions[:]...)
	}
	return list
}

// find returns the operator with a name. A bare value in a file is Eq, which has no name in
// files.
func find(name Op) (operator, bool) {
	for _, o := range operators {
		if o.op() == name {
			return o, true
		}
	}
	for _, o := range additions {
		if o.op() == name {
			return o, true
		}
	}
	return equality{name: Eq, named: words{"equal to", "is"}, form: one{}}, name == Eq
}

// Has reports whether files of a language may use an operator.
func (l Language) Has(name Op) bool {
	return slices.ContainsFunc(l.all(), func(o operator) bool { return o.op() == name })
}

// Operators lists the names of operators in files of a language.
func Operators(l Language) []Op {
	var names []Op
	for _, o := range l.all() {
		names = append(names, o.op())
	}
	return names
}

// OperatorList returns the Operators as part of a sentence.
func OperatorList(l Language) string {
	var names []string
	for _, o := range l.all() {
		names = append(names, "`"+string(o.op())+"`")
	}
	return strings.Join(names, ", ")
}

// Schema returns the operator as a property of a JSON Schema that defines `scalar`.
func (o Op) Schema() string {
	known, _ := find(o)
	return `"` + string(o) + `": { "description": "` + known.means() + `", ` + known.operand().schema() + ` }`
}

// InReasons returns the operator's name in a reason: "above". It is empty for an unknown
// operator.
func (o Op) InReasons() string {
	if known, ok := find(o); ok {
		return known.words().reason
	}
	return ""
}

// InLists returns the operator's name in a list of rules: ">". It is empty for an unknown
// operator.
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

// patterns compiles regular expressions, each only once.
type patterns func(text string) (*pattern, error)

// comparison is a test's comparison with arguments of its operands' types. A field is nil if no
// operand has its type.
type comparison struct {
	bools     *[2]bool // the results for false and for true
	numbers   numberTest
	texts     textTest
	compounds compoundTest
	money     *moneyTest
	given     *[2]Truth // the results for a missing argument or null, and for every other value
}

// numberTest is a test of numbers. It is Unknown for a number for which a reader that rounds to
// doubles would get another result (docs/design/001-semantics.md, row "numbers"). set returns
// the numbers that reach a level of truth.
type numberTest interface {
	truth(n *value.Num) Truth
	set(level Truth) numbers
	cost() int
}

// textTest is a test of strings. truth evaluates it for one string; set returns the strings that
// reach a level of truth.
type textTest interface {
	truth(s string) Truth
	set(level Truth) texts
	cost() int
}

// compoundTest is a test of arrays and objects. truth evaluates it for one; set returns those that
// reach a level of truth, for a question.
type compoundTest interface {
	truth(s *value.Slot, v *View) Truth
	set(level Truth, q *question) *compounds
	cost() int
}

// operand is the form of an operator's operand in a file.
type operand interface {
	// schema returns its JSON Schema.
	schema() string

	// read reads it into a test. It returns false if it is invalid.
	read(p *parser, t *Test, n *yamldoc.Node) bool

	// of returns the operands of a test.
	of(t *Test) []Scalar

	// text formats the operands. It omits the entries of a list after the given number of them.
	text(t *Test, most int) string
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

func (o one) text(t *Test, _ int) string { return t.Operand.String() }

// many is a list of scalars. An invalid entry makes the whole test invalid.
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

func (many) text(t *Test, most int) string {
	var entries []string
	for i := range t.List[:min(len(t.List), most)] {
		entries = append(entries, t.List[i].String())
	}
	if more := len(t.List) - most; more > 0 {
		entries = append(entries, strconv.Itoa(more)+" more")
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

// Operands returns the values that the test compares arguments with.
func (t *Test) Operands() []Scalar {
	o, _ := find(t.Op)
	return o.operand().of(t)
}

// Negative reports whether the test holds for every argument except its operands.
func (t *Test) Negative() bool {
	o, _ := find(t.Op)
	return o.negative()
}

// Expression returns the regular expression that the test searches for, and false if it
// compares values.
func (t *Test) Expression() (re string, ok bool) {
	o, _ := find(t.Op)
	return o.expression(t.Operand.Text)
}

// String formats the test as in "gt 10000" or `in ["EUR", "USD"]`. Long lists are cut.
func (t *Test) String() string { return strings.TrimSpace(string(t.Op) + " " + t.operandText(8)) }

// OperandText formats the operands as String does, but completely.
func (t *Test) OperandText() string { return t.operandText(math.MaxInt) }

func (t *Test) operandText(most int) string {
	o, ok := find(t.Op)
	if !ok {
		return ""
	}
	return o.operand().text(t, most)
}
