package condition

import (
	"slices"
	"unicode/utf8"

	"github.com/assent-dev/assent/value"
)

// The operators that compare values for equality. Eq is a bare value: `currency: EUR`.
const (
	Eq    Op = "equals"
	Ne    Op = "ne"
	In    Op = "in"
	NotIn Op = "not_in"
)

// longList is the number of entries from which on a list is searched instead of compared one by
// one, for speed.
const longList = 9

// equality holds for its operands, or for everything else. Values of different types are never
// equal.
type equality struct {
	name    Op
	meaning string
	named   words
	form    operand
	not     bool
}

func (e equality) op() Op { return e.name }

func (e equality) means() string { return e.meaning }

func (e equality) words() words { return e.named }

func (e equality) slips() []Op {
	return map[Op][]Op{Eq: {Ne}, Ne: {Eq}, In: {NotIn}, NotIn: {In}}[e.name]
}

func (e equality) operand() operand { return e.form }

func (e equality) negative() bool { return e.not }

func (e equality) expression(string) (string, bool) { return "", false }

func (e equality) compare(t *Test, _ compiling) (comparison, bool) {
	operands := e.form.of(t)
	var bools *[2]bool
	var nums []value.Num
	var words []string
	for i := range operands {
		switch s := &operands[i]; s.Kind {
		case value.Bool:
			if bools == nil {
				bools = &[2]bool{e.not, e.not}
			}
			bools[index(s.Bool)] = !e.not
		case value.Number:
			nums = append(nums, s.Num)
		case value.String:
			words = append(words, s.Text)
		default:
			return comparison{}, false
		}
	}

	c := comparison{bools: bools}
	if nums != nil {
		c.numbers = newNumberList(nums, e.not)
	}
	if words != nil {
		c.texts = newTextList(words, e.not)
	}
	return c, true
}

// numberList holds for the listed numbers, or for all others.
type numberList struct {
	nums   []value.Num // sorted
	floats []float64   // the nearest doubles of nums
	plain  bool        // whether all nums are
	not    bool
}

func newNumberList(nums []value.Num, not bool) *numberList {
	slices.SortFunc(nums, value.Num.Cmp)
	l := &numberList{nums: nums, not: not, plain: true, floats: make([]float64, len(nums))}
	for i := range nums {
		l.floats[i] = nums[i].Float()
		l.plain = l.plain && nums[i].Plain()
	}
	return l
}

func (l *numberList) truth(n *value.Num) Truth {
	if l.has(n) {
		return truthOf(!l.not)
	}
	if l.plain && n.Plain() {
		return truthOf(l.not)
	}
	if _, rounds := slices.BinarySearch(l.floats, n.Float()); rounds {
		return Unknown // a reader that rounds would find the number in the list
	}
	return truthOf(l.not)
}

func (l *numberList) has(n *value.Num) bool {
	if len(l.nums) >= longList {
		_, found := slices.BinarySearchFunc(l.nums, *n, value.Num.Cmp)
		return found
	}

	for i := range l.nums {
		if l.nums[i].CmpTo(n) == 0 {
			return true
		}
	}
	return false
}

func (l *numberList) set(level Truth) numbers {
	var set numbers
	if (level == Unknown) != l.not {
		set = roundedTo(l.floats)
	} else {
		set = pointsAt(l.nums)
	}
	set.first = set.first != l.not
	return set
}

func (l *numberList) cost() int { return min(len(l.nums), longList) }

// textList holds for the listed strings, or for all others.
type textList struct {
	words []string
	index map[string]struct{} // of words, if there are many
	not   bool
}

func newTextList(words []string, not bool) *textList {
	l := &textList{words: words, not: not}
	if len(words) >= longList {
		l.index = setOf(words)
	}
	return l
}

func (l *textList) truth(s string) Truth { return truthOf(l.has(s) != l.not) }

func (l *textList) has(s string) bool {
	if l.index != nil {
		_, found := l.index[s]
		return found
	}

	for _, word := range l.words {
		if word == s {
			return true
		}
	}
	return false
}

// set leaves out strings that arguments can't have, because they are not valid UTF-8.
func (l *textList) set(Truth) texts {
	words := slices.DeleteFunc(slices.Clone(l.words), func(s string) bool { return !utf8.ValidString(s) })
	slices.Sort(words)
	return texts{but: l.not, list: slices.Compact(words)}
}

func (l *textList) cost() int { return min(len(l.words), longList) }

func setOf(words []string) map[string]struct{} {
	set := make(map[string]struct{}, len(words))
	for _, word := range words {
		set[word] = struct{}{}
	}
	return set
}
