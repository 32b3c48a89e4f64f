package approval

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// What Diff lists at most. Texts with more differences are told to
// differ as a whole, which nobody reads one by one anyway.
const (
	mostChanges = 10_000
	mostPaths   = 1 << 20 // bytes of all paths: a long key may stand above many changes
)

// Diff lists what differs between two JSON texts, in the order of the
// first, then what the second adds. Numbers are compared exactly, as
// values: 1 and 1.0 do not differ. An unreadable text differs as a
// whole, and so do texts with very many differences. Time and memory
// are linear in the texts.
func Diff(before, after string) []Change {
	a, errA := value.Parse([]byte(before), value.DefaultLimits())
	b, errB := value.Parse([]byte(after), value.DefaultLimits())
	if errA != nil || errB != nil {
		if before == after {
			return nil
		}
		return []Change{{Old: before, New: after}}
	}

	d := differ{paths: mostPaths}
	if d.compare(a, b); d.full {
		return []Change{{Old: before, New: after}}
	}
	return d.changes
}

// differ compares two documents place by place.
type differ struct {
	at      []string // segments of the place
	changes []Change
	paths   int  // bytes that are left for paths
	full    bool // there are more changes than it lists
}

func (d *differ) compare(a, b value.Value) {
	switch {
	case d.full:
	case a.Kind == value.Object && b.Kind == value.Object:
		d.members(a.Members, b.Members)
	case a.Kind == value.Array && b.Kind == value.Array:
		d.items(a.Items, b.Items)
	case !sameScalar(a, b):
		d.add(text(a), text(b))
	}
}

// sameScalar compares values that are not both objects or both arrays.
func sameScalar(a, b value.Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	return a.Bool == b.Bool && a.Text == b.Text && (a.Kind != value.Number || a.Num.Cmp(b.Num) == 0)
}

func text(v value.Value) string { return string(v.AppendJSON(nil)) }

// add lists a change at the place.
func (d *differ) add(before, after string) {
	path := strings.Join(d.at, ".")
	if d.paths -= len(path); d.paths < 0 || len(d.changes) == mostChanges {
		d.full = true
		return
	}
	d.changes = append(d.changes, Change{
		Path: path,
		Old:  before,
		New:  after,
	})
}

func (d *differ) members(a, b []value.Member) {
	inA, inB := indexMembers(a), indexMembers(b)
	for _, m := range a {
		other, both := inB.get(m.Key)
		d.below(m.Key, func() {
			if both {
				d.compare(m.Value, other)
			} else {
				d.add(text(m.Value), "")
			}
		})
	}

	for _, m := range b {
		if _, both := inA.get(m.Key); !both {
			d.below(m.Key, func() { d.add("", text(m.Value)) })
		}
	}
}

func (d *differ) items(a, b []value.Value) {
	for i := range max(len(a), len(b)) {
		d.below(strconv.Itoa(i), func() {
			switch {
			case i >= len(b):
				d.add(text(a[i]), "")
			case i >= len(a):
				d.add("", text(b[i]))
			default:
				d.compare(a[i], b[i])
			}
		})
	}
}

// below does something one segment down.
func (d *differ) below(segment string, do func()) {
	if d.full {
		return
	}
	d.at = append(d.at, segment)
	do()
	d.at = d.at[:len(d.at)-1]
}

// memberIndex finds members by their key: among few one by one, among
// many by a table.
type memberIndex struct {
	members []value.Member
	table   map[string]int
}

// fewMembers are found faster one by one.
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

func (x memberIndex) get(key string) (value.Value, bool) {
	if x.table != nil {
		i, ok := x.table[key]
		if !ok {
			return value.Value{}, false
		}
		return x.members[i].Value, true
	}

	for i := range x.members {
		if x.members[i].Key == key {
			return x.members[i].Value, true
		}
	}
	return value.Value{}, false
}

func splitPath(path string) []string { return strings.Split(path, ".") }
