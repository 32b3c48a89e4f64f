package approval

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Limits of Diff. Texts with more differences are reported as one change of the whole text, because
// people would not read so many changes one by one.
const (
	mostChanges = 10_000
	mostValues  = 1 << 16 // of each text: a tree needs far more memory than its text
	mostPaths   = 1 << 20 // bytes of all paths: a long key may be a part of many paths
)

// Diff lists the differences between two JSON texts: first in the order of the first text, then
// what the second adds. Numbers are compared exactly, by value: 1 and 1.0 are equal. If a text
// can't be parsed, is too large or if there are too many differences, it returns one change of the
// whole text. Time and memory are linear in the size of the texts.
func Diff(before, after string) []Change {
	lim := value.DefaultLimits()
	lim.MaxValues = mostValues
	a, errA := value.Parse([]byte(before), lim)
	b, errB := value.Parse([]byte(after), lim)
	if errA != nil || errB != nil {
		if before == after {
			return nil
		}
		return []Change{{Old: before, New: after}}
	}

	var changes []Change
	paths := mostPaths
	d := differ{tell: func(at []string, before, after *value.Value) bool {
		path := strings.Join(at, ".")
		if paths -= len(path); paths < 0 || len(changes) == mostChanges {
			return false
		}
		changes = append(changes, Change{Path: path, Old: text(before), New: text(after)})
		return true
	}}
	if !d.compare(&a, &b) {
		return []Change{{Old: before, New: after}}
	}
	return changes
}

// text returns a value as JSON, or an empty string if it is absent.
func text(v *value.Value) string {
	if v.Kind == value.Absent {
		return ""
	}
	return string(v.AppendJSON(nil))
}

// differ compares two documents recursively.
type differ struct {
	at []string // segments of the current path
	// tell is called for each difference; a missing value is Absent. If it returns false, the
	// comparison stops.
	tell func(at []string, before, after *value.Value) bool
}

// compare reports whether the comparison was completed.
func (d *differ) compare(a, b *value.Value) bool {
	switch {
	case a.Kind == value.Object && b.Kind == value.Object:
		return d.members(a.Members, b.Members)
	case a.Kind == value.Array && b.Kind == value.Array:
		return d.items(a.Items, b.Items)
	}

	return sameScalar(a, b) || d.tell(d.at, a, b)
}

// sameScalar compares values that are not both objects or both arrays.
func sameScalar(a, b *value.Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	return a.Bool == b.Bool && a.Text == b.Text && (a.Kind != value.Number || a.Num.Cmp(b.Num) == 0)
}

func (d *differ) members(a, b []value.Member) bool {
	inB, both := indexMembers(b), 0
	for i := range a {
		other := inB.get(a[i].Key)
		if other.Kind != value.Absent {
			both++
		}
		if !d.below(a[i].Key, &a[i].Value, other) {
			return false
		}
	}

	if both == len(b) {
		return true
	}
	inA := indexMembers(a)
	for i := range b {
		one := inA.get(b[i].Key)
		if one.Kind == value.Absent && !d.below(b[i].Key, one, &b[i].Value) {
			return false
		}
	}

	return true
}

func (d *differ) items(a, b []value.Value) bool {
	for i := range max(len(a), len(b)) {
		before, after := &value.Value{}, &value.Value{}
		if i < len(a) {
			before = &a[i]
		}
		if i < len(b) {
			after = &b[i]
		}
		if !d.below(strconv.Itoa(i), before, after) {
			return false
		}
	}

	return true
}

// below compares the values of one member or item.
func (d *differ) below(segment string, a, b *value.Value) bool {
	d.at = append(d.at, segment)
	goesOn := d.compare(a, b)
	d.at = d.at[:len(d.at)-1]
	return goesOn
}

// memberIndex finds members by their key: by a linear search in small objects, and with a map in
// large ones.
type memberIndex struct {
	members []value.Member
	table   map[string]int
}

// fewMembers is the largest number of members for which a linear search is faster.
const fewMembers = 16

func indexMembers(members []value.Member) memberIndex {
	x := memberIndex{members: members}
	if len(members) <= fewMembers {
		return x
	}
	x.table = make(map[string]int, len(members))
	for i, m := range members {
		x.table[m.Key] = i
	}
	return x
}

// get returns the value of a member, or an absent value if there is none.
func (x memberIndex) get(key string) *value.Value {
	if x.table != nil {
		if i, ok := x.table[key]; ok {
			return &x.members[i].Value
		}
		return &value.Value{}
	}

	for i := range x.members {
		if x.members[i].Key == key {
			return &x.members[i].Value
		}
	}
	return &value.Value{}
}

func splitPath(path string) []string { return strings.Split(path, ".") }
