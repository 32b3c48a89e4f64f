package condition

import (
	"cmp"
	"slices"

	"github.com/assent-dev/assent/value"
)

// box is a set of arguments: those whose value at each place is in a domain. Its sides are the
// domains, sorted by place. Places without a side are unrestricted.
type box []side

type side struct {
	place int
	domain
}

// find returns the index of a place's side, or the index at which to insert it.
func (b box) find(place int) (int, bool) {
	return slices.BinarySearchFunc(b, place, func(s side, place int) int { return cmp.Compare(s.place, place) })
}

func (b box) at(place int) domain {
	if i, ok := b.find(place); ok {
		return b[i].domain
	}
	return everything()
}

// narrow intersects the box with one side, in place. It returns false if the result is
// certainly empty.
func (b *box) narrow(place int, d domain) bool {
	i, ok := b.find(place)
	if ok {
		d = (*b)[i].and(d)
		(*b)[i].domain = d
	} else {
		*b = slices.Insert(*b, i, side{place, d})
	}

	return !d.empty()
}

// narrowTo intersects the box with another, in place.
func (b *box) narrowTo(c box) bool {
	for _, s := range c {
		if !b.narrow(s.place, s.domain) {
			return false
		}
	}
	return true
}

// meets reports whether two boxes may have arguments in common.
func (b box) meets(c box) bool {
	return !slices.ContainsFunc(c, func(s side) bool {
		i, ok := b.find(s.place)
		if !ok {
			return s.empty()
		}
		common := b[i].and(s.domain)
		return common.empty()
	})
}

// inside reports whether b is certainly a subset of c.
func (b box) inside(c box) bool {
	return !slices.ContainsFunc(c, func(s side) bool {
		outside := b.at(s.place).minus(s.domain)
		return !outside.empty()
	})
}

// difference looks for arguments that are in one of the boxes and in none of the others.
func (q *question) difference(boxes, others []box) (Verdict, value.Value) {
	if q.unclear() {
		return Undecided, value.Value{}
	}
	result := No
	for _, b := range boxes {
		switch found, witness := q.subtract(b, others); found {
		case Yes:
			return Yes, witness
		case Undecided:
			result = Undecided
		}
	}

	if q.unclear() { // because of a difference of sets of lists
		result = Undecided
	}
	return result, value.Value{}
}

// subtract looks for arguments in b that are in none of the others. It cuts b along the sides
// of one of them, and subtracts the rest from every piece outside.
func (q *question) subtract(b box, others []box) (Verdict, value.Value) {
	if q.work -= 1 + len(others) + len(q.places)/16; q.work < 0 { // roughly the cost of this step
		return Undecided, value.Value{}
	}
	var near []box
	for _, o := range others {
		if b.inside(o) {
			return No, value.Value{}
		}
		if b.meets(o) {
			near = append(near, o)
		}
	}

	if len(near) == 0 {
		return q.witness(b)
	}
	result, rest := No, slices.Clone(b)
	for _, s := range near[0] {
		piece, outside := slices.Clone(rest), rest.at(s.place).minus(s.domain)
		if !outside.empty() {
			piece.set(s.place, outside)
			switch found, witness := q.subtract(piece, near[1:]); found {
			case Yes:
				return Yes, witness
			case Undecided:
				result = Undecided
			}
		}

		rest.narrow(s.place, s.domain)
	}

	return result, value.Value{}
}

func (b *box) set(place int, d domain) {
	if i, ok := b.find(place); ok {
		(*b)[i].domain = d
	} else {
		*b = slices.Insert(*b, i, side{place, d})
	}
}
