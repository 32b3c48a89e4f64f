package approval

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Diff lists what differs between two JSON texts, in the order of the first, then what the second adds. Numbers are compared exactly, as
// values: 1 and 1.0 do not differ. An unreadable text differs as a whole.
func Diff(before, after string) []Change {
	a, errA := value.Parse([]byte(before), value.DefaultLimits())
	b, errB := value.Parse([]byte(after), value.DefaultLimits())
	if errA != nil || errB != nil {
		if before == after {
			return nil
		}
		return []Change{{Old: before, New: after}}
	}
	return diff(nil, "", a, b)
}

func diff(out []Change, at string, a, b value.Value) []Change {
	switch {
	case a.Kind == value.Object && b.Kind == value.Object:
		return diffMembers(out, at, a, b)
	case a.Kind == value.Array && b.Kind == value.Array:
		return diffItems(out, at, a, b)
	case string(a.AppendCanonical(nil)) == string(b.AppendCanonical(nil)):
		return out
	}
	return append(out, Change{Path: at, Old: text(a), New: text(b)})
}

func text(v value.Value) string { return string(v.AppendJSON(nil)) }

func diffMembers(out []Change, at string, a, b value.Value) []Change {
	for _, m := range a.Members {
		if other, ok := b.Get(m.Key); ok {
			out = diff(out, join(at, m.Key), m.Value, other)
		} else {
			out = append(out, Change{Path: join(at, m.Key), Old: text(m.Value)})
		}
	}
	for _, m := range b.Members {
		if _, ok := a.Get(m.Key); !ok {
			out = append(out, Change{Path: join(at, m.Key), New: text(m.Value)})
		}
	}
	return out
}

func diffItems(out []Change, at string, a, b value.Value) []Change {
	for i := range max(len(a.Items), len(b.Items)) {
		path := join(at, strconv.Itoa(i))
		switch {
		case i >= len(b.Items):
			out = append(out, Change{Path: path, Old: text(a.Items[i])})
		case i >= len(a.Items):
			out = append(out, Change{Path: path, New: text(b.Items[i])})
		default:
			out = diff(out, path, a.Items[i], b.Items[i])
		}
	}
	return out
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func splitPath(path string) []string { return strings.Split(path, ".") }
