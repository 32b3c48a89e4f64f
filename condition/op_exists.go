package condition

import "github.com/assent-dev/assent/value"

// Exists is the operator that tests whether an argument is given.
const Exists Op = "exists"

// presence holds for given arguments, or for missing ones. Null is missing.
type presence struct{}

func (presence) op() Op { return Exists }

func (presence) means() string { return "Whether the argument is given and not null." }

func (presence) words() words { return words{"given:", "is given:"} }

func (presence) slips() []Op { return nil } // mutation tests change the operand

func (presence) operand() operand { return flag{one{value.Bool}} }

func (presence) negative() bool { return false }

func (presence) expression(string) (string, bool) { return "", false }

func (presence) compare(t *Test, _ compiling) (comparison, bool) {
	given := [2]Truth{truthOf(!t.Operand.Bool), truthOf(t.Operand.Bool)}
	return comparison{given: &given}, t.Operand.Kind == value.Bool
}

// flag is true or false, and no value that arguments are compared with.
type flag struct{ one }

func (flag) schema() string { return `"type": "boolean"` }

func (flag) of(*Test) []Scalar { return nil }
