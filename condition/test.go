package condition

import (
	"slices"

	"github.com/assent-dev/assent/value"
)

// longList is from how many entries on a list is searched instead of compared one by one, which is a matter of speed.
const longList = 9

// kinds is the number of kinds an argument can have, Absent included.
const kinds = int(value.Object) + 1

// test is a compiled Test. For most kinds of argument its truth is fixed; for the kinds of its operands the value
// decides.
type test struct {
	op    Op
	fixed [kinds]Truth // by kind; not consulted for booleans, nor for numbers and strings that are compared
	bools [2]Truth     // of false and true

	byNumber bool
	nums     []value.Num // operands; of a long list sorted

	byText bool
	texts  []string            // operands
	set    map[string]struct{} // of texts, if they are many
	pat    *pattern
}

// newTest applies docs/design/001-semantics.md. A test that cannot be compiled, which only a hand-made Expr has, is Unreadable.
func newTest(src *Test, sem Semantics, patterns func(string) (*pattern, error)) test {
	operands := src.List
	if src.Op != In && src.Op != NotIn {
		operands = []Scalar{src.Operand}
	}
	t := test{op: src.Op}
	t.fix(sem, len(operands))
	ok := true
	switch src.Op {
	case Gt, Gte, Lt, Lte:
		ok = src.Operand.Kind == value.Number
	case Pattern:
		var err error
		t.pat, err = patterns(src.Operand.Text)
		ok = err == nil && src.Operand.Kind == value.String
	case Eq, Ne, In, NotIn:
	default:
		ok = false
	}
	if !ok || !t.compare(operands) {
		t = test{op: Unreadable}
		t.fill(Unknown)
	}
	return t
}

// fix sets the truth for every kind of argument as it is when no operand is of that kind.
func (t *test) fix(sem Semantics, operands int) {
	missing, mismatch := sem.OnMissing.truth(), sem.OnMismatch.truth()
	switch {
	case t.negative(): // another type is another value, and null is one; what is missing is none
		t.fill(True)
		t.fixed[value.Absent] = Unknown
	case operands == 0: // `in: []`
		t.fill(False)
		t.fixed[value.Absent] = missing
	default:
		t.fill(mismatch)
		t.fixed[value.Absent], t.fixed[value.Null] = missing, missing
	}
}

func (t *test) fill(truth Truth) {
	for k := range t.fixed {
		t.fixed[k] = truth
	}
	t.bools = [2]Truth{truth, truth}
}

func (s Silence) truth() Truth {
	if s == NoMatch {
		return False
	}
	return Unknown
}

// negative tells whether the test holds for values other than its operands.
func (t *test) negative() bool { return t.op == Ne || t.op == NotIn }

// compare takes in the operands; false if one is no scalar.
func (t *test) compare(operands []Scalar) bool {
	listed, any := [2]bool{}, false
	for i := range operands {
		switch s := &operands[i]; s.Kind {
		case value.Bool:
			listed[index(s.Bool)], any = true, true
		case value.Number:
			t.byNumber, t.nums = true, append(t.nums, s.Num)
		case value.String:
			t.byText, t.texts = true, append(t.texts, s.Text)
		default:
			return false
		}
	}
	for i := range t.bools {
		if any {
			t.bools[i] = truthOf(listed[i] != t.negative())
		}
	}
	if len(t.nums) >= longList {
		slices.SortFunc(t.nums, value.Num.Cmp)
	}
	if len(t.texts) >= longList {
		t.set = setOf(t.texts)
	}
	return true
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

func setOf(texts []string) map[string]struct{} {
	set := make(map[string]struct{}, len(texts))
	for _, s := range texts {
		set[s] = struct{}{}
	}
	return set
}

// truth evaluates the test for one argument.
func (t *test) truth(s *value.Slot) Truth {
	switch s.Kind {
	case value.Bool:
		return t.bools[index(s.Bool)]
	case value.Number:
		if t.byNumber {
			return truthOf(t.number(&s.Num))
		}
	case value.String:
		if t.byText {
			return truthOf(t.string(s.Text))
		}
	}
	if int(s.Kind) >= kinds {
		return Unknown
	}
	return t.fixed[s.Kind]
}

func (t *test) number(n *value.Num) bool {
	switch t.op {
	case Gt:
		return n.CmpTo(&t.nums[0]) > 0
	case Gte:
		return n.CmpTo(&t.nums[0]) >= 0
	case Lt:
		return n.CmpTo(&t.nums[0]) < 0
	case Lte:
		return n.CmpTo(&t.nums[0]) <= 0
	}
	return t.hasNumber(n) != t.negative()
}

func (t *test) hasNumber(n *value.Num) bool {
	if len(t.nums) >= longList {
		_, found := slices.BinarySearchFunc(t.nums, *n, value.Num.Cmp)
		return found
	}
	for i := range t.nums {
		if t.nums[i].CmpTo(n) == 0 {
			return true
		}
	}
	return false
}

func (t *test) string(s string) bool {
	if t.pat != nil {
		return t.pat.match(s)
	}
	return t.hasText(s) != t.negative()
}

func (t *test) hasText(s string) bool {
	if t.set != nil {
		_, found := t.set[s]
		return found
	}
	for _, text := range t.texts {
		if text == s {
			return true
		}
	}
	return false
}

// cost orders tests: cheap ones first. In any order they have the same truth.
func (t *test) cost() int {
	switch {
	case t.pat == nil:
		return min(len(t.nums)+len(t.texts), longList)
	case t.pat.plain:
		return longList + 1
	}
	return longList + 2
}
