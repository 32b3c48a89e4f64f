package condition

import "github.com/assent-dev/assent/value"

// kinds is the number of kinds of arguments, including Absent.
const kinds = int(value.Object) + 1

// test is a compiled Test. For most kinds of arguments its truth is fixed; for the kinds of its
// operands it depends on the value.
type test struct {
	fixed      [kinds]Truth // by kind; not used for booleans and compared kinds
	bools      [2]Truth     // of false and true
	numbers    numberTest   // nil: the truth for numbers is fixed
	texts      textTest     // nil: the truth for strings is fixed
	compounds  compoundTest // nil: the truth for arrays and objects is fixed
	money      *moneyTest   // nil: numbers are not compared by currency
	unreadable bool
}

// newTest compiles a test according to docs/design/001-semantics.md. A test that can't be
// compiled, which is possible in an Expr built in code, is Unknown for all arguments.
func newTest(src *Test, sem Semantics, patterns patterns) test {
	o, known := find(src.Op)
	t := test{}
	if !known {
		return unknownTest()
	}

	c, ok := o.compare(src, compiling{sem, patterns})
	if !ok {
		return unknownTest()
	}
	t.numbers, t.texts, t.compounds, t.money = c.numbers, c.texts, c.compounds, c.money
	_, lists := o.operand().(many)
	t.fix(sem, o.negative(), lists && len(src.List) == 0)
	if c.given != nil {
		t.fill(c.given[1])
		t.fixed[value.Absent], t.fixed[value.Null] = c.given[0], c.given[0]
	}
	if c.bools != nil {
		t.bools = [2]Truth{truthOf(c.bools[0]), truthOf(c.bools[1])}
	}
	return t
}

func unknownTest() test {
	t := test{unreadable: true}
	t.fill(Unknown)
	return t
}

// fix sets the truth for every kind of argument, assuming that no operand is of that kind. without
// means that there are no operands at all.
func (t *test) fix(sem Semantics, negative, without bool) {
	missing, mismatch := sem.OnMissing.truth(), sem.OnMismatch.truth()
	switch {
	case negative: // another type, or null, is another value; a missing argument has no value
		t.fill(True)
		t.fixed[value.Absent] = Unknown
	case without: // `in: []`
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

// truth evaluates the test for one argument.
func (t *test) truth(s *value.Slot, v *View) Truth {
	switch s.Kind {
	case value.Bool:
		return t.bools[index(s.Bool)]
	case value.Number:
		if t.money != nil {
			return t.money.truth(&s.Num, v)
		}
		if t.numbers != nil {
			return t.numbers.truth(&s.Num)
		}
	case value.String:
		if t.texts != nil {
			return t.texts.truth(s.Text)
		}
	case value.Array, value.Object:
		if t.compounds != nil {
			return t.compounds.truth(s, v)
		}
	}

	if int(s.Kind) >= kinds {
		return Unknown
	}
	return t.fixed[s.Kind]
}

// cost is used to sort tests. The order does not affect the truth.
func (t *test) cost() int {
	n := 0
	if t.numbers != nil {
		n += t.numbers.cost()
	}
	if t.texts != nil {
		n += t.texts.cost()
	}
	if t.compounds != nil {
		n += t.compounds.cost()
	}
	if t.money != nil {
		n += t.money.cost()
	}
	return n
}
