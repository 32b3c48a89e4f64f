package posture

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/resolve"
)

// mostHints limits the number of annotations that the rules of a target may read.
const mostHints = 6

func whyHints() string {
	return "the rules read more than " + strconv.Itoa(mostHints) + " annotations"
}

// classesOf lists sets of annotations, one for each group of calls that the rules of either side
// distinguish, smallest set first. It returns false if there are too many.
func classesOf(old, new *resolve.Target) ([]map[string]bool, bool) {
	var names []string
	for _, t := range []*resolve.Target{old, new} {
		for i := range t.Gates {
			names = append(names, t.Gates[i].Annotations()...)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > mostHints {
		return nil, false
	}
	all := []map[string]bool{nil}
	for _, name := range names {
		for _, class := range all { // those without the name
			all = append(all, with(class, name, true), with(class, name, false))
		}
	}
	slices.SortStableFunc(all, func(a, b map[string]bool) int { return len(a) - len(b) })
	seen := map[string]bool{}

	return slices.DeleteFunc(all, func(class map[string]bool) bool {
		key := metBy(old, class) + "|" + metBy(new, class)
		known := seen[key]
		seen[key] = true
		return known
	}), true
}

func with(class map[string]bool, name string, hint bool) map[string]bool {
	out := map[string]bool{name: hint}
	for k, v := range class {
		out[k] = v
	}
	return out
}

// metBy returns a key of the gates that match calls with these annotations.
func metBy(t *resolve.Target, class map[string]bool) string {
	var b []byte
	for i := range t.Gates {
		b = strconv.AppendBool(b, t.Gates[i].Meets(class))
	}
	return string(b)
}

// noteOf describes a set of annotations.
func noteOf(class map[string]bool) string {
	if len(class) == 0 {
		return "without annotations"
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(class)) {
		list = append(list, name+": "+strconv.FormatBool(class[name]))
	}

	return "with " + strings.Join(list, ", ")
}
