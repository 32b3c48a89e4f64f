package condition

import (
	"slices"
	"unicode/utf8"

	"github.com/assent-dev/assent/value"
)

// The operators that compare values for equality. Eq is a bare value:
// `currency: EUR`.
const (
	Eq    Op = "equals"
	Ne    Op = "ne"
	In    Op = "in"
	NotIn Op = "not_in"
)

// longList is the number of entries from which on a list is searched
// instead of compared one by one, for speed.
const longList = 9

// equality holds for its operands, or for everything else. There is no
// equality between types.
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

func (e equality) compare(operands []Scalar, _ patterns) (comparison, bool) {
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
		slices.SortFunc(nums, value.Num.Cmp)
		c.numbers = &numberList{nums, e.not}
	}
	if words != nil {
		c.texts = newTextList(words, e.not)
	}
	return c, true
}

// numberList holds for the listed numbers, or for all others.
type numberList struct {
	nums []value.Num // sorted
	not  bool
}

func (l *numberList) holds(n *value.Num) bool { return l.has(n) != l.not }

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

func (l *numberList) set() numbers {
	set := numbers{first: l.not}
	for i, n := range l.nums {
		if i == 0 || n.Cmp(l.nums[i-1]) != 0 {
			set.cuts = append(set.cuts, cut{n, false}, cut{n, true})
		}
	}
	return set
}

func (l *numberList) cost() int { return min(len(l.nums), longList) }

// textList holds for the listed strings, or for all others.
type textList struct {
	words []string
	index map[string]struct{} // of words, if they are many
	not   bool
}

func newTextList(words []string, not bool) *textList {
	l := &textList{words: words, not: not}
	if len(words) >= longList {
		l.index = setOf(words)
	}
	return l
}

func (l *textList) holds(s string) bool { return l.has(s) != l.not }

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

// set leaves out what no argument can be: arguments are valid UTF-8.
func (l *textList) set() texts {
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
