package condition

import "github.com/assent-dev/assent/value"

// The operators that compare numbers.
const (
	Gt  Op = "gt"
	Gte Op = "gte"
	Lt  Op = "lt"
	Lte Op = "lte"
)

// order holds for numbers on one side of its operand.
type order struct {
	name    Op
	meaning string
	named   words
	side    int  // 1: above the operand; -1: below
	equal   bool // also for the operand itself
}

func (o order) op() Op { return o.name }

func (o order) means() string { return o.meaning }

func (o order) words() words { return o.named }

// slips returns the same direction with or without equality, and the opposite direction.
func (o order) slips() []Op {
	return map[Op][]Op{Gt: {Gte, Lt}, Gte: {Gt, Lte}, Lt: {Lte, Gt}, Lte: {Lt, Gte}}[o.name]
}

func (o order) operand() operand { return one{value.Number} }

func (o order) negative() bool { return false }

func (o order) expression(string) (string, bool) { return "", false }

func (o order) compare(t *Test, _ compiling) (comparison, bool) {
	limit := t.Operand
	return comparison{numbers: &bound{o, limit.Num, limit.Num.Float()}}, limit.Kind == value.Number
}

// bound is an order with its operand.
type bound struct {
	order
	num   value.Num
	float float64
}

func (b *bound) truth(n *value.Num) Truth {
	c := n.CmpTo(&b.num)
	exact := c == b.side || c == 0 && b.equal
	if c == 0 || n.Plain() && b.num.Plain() || exact == b.equal || n.Float() != b.float {
		return truthOf(exact)
	}
	return Unknown // a reader that rounds would consider the number equal to the operand
}

func (b *bound) set(level Truth) numbers {
	above := (b.side > 0) != b.equal
	if (level == Unknown) != b.equal {
		return numbers{first: b.side < 0, cuts: []cut{{b.num, above}}}
	}

	set := alike(b.float)
	switch {
	case b.side > 0 && above:
		return set.upTo().not()
	case b.side > 0:
		return set.from()
	case above:
		return set.upTo()
	}

	return set.from().not()
}

func (b *bound) cost() int { return 1 }
