package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/resolve"
)

// object returns a JSON object of n members in ascending or descending order.
func object(n int, reverse bool, member func(i int) string) string {
	members := make([]string, n)
	for i := range n {
		members[i] = member(i)
	}
	if reverse {
		slices.Reverse(members)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// pairs returns pairs of arguments that are the most expensive to compare.
func pairs() map[string]func(n int) (before, after string) {
	number := func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) }
	return map[string]func(n int) (string, string){
		"keys in another order": func(n int) (string, string) {
			return object(n, false, number), object(n, true, number)
		},
		"every value another": func(n int) (string, string) {
			return object(n, false, number), object(n, true, func(i int) string {
				return fmt.Sprintf(`"k%d":"%d"`, i, i)
			})
		},
		"other keys": func(n int) (string, string) {
			return object(n, false, number), object(
				n,
				true,
				func(i int) string { return fmt.Sprintf(`"l%d":1`, i) },
			)
		},
		"a long key above many items": func(n int) (string, string) {
			key := strings.Repeat("k", 10*n)
			return `{"` + key + `":[` + strings.Repeat("1,", n) + `1]}`, `{"` + key + `":[` + strings.Repeat(
				"2,",
				n,
			) + `1]}`
		},
		"a long key above equal items": func(n int) (string, string) {
			key := strings.Repeat("k", 10*n)
			text := `{"` + key + `":[` + strings.Repeat("1,", n)
			return text + `1]}`, text + `2]}`
		},
		"items below many levels": func(n int) (string, string) {
			open, end := strings.Repeat("[", 100), strings.Repeat("]", 100)
			return open + strings.Repeat("1,", n) + "1" + end, open + strings.Repeat("1,", n) + "2" + end
		},
		"one item behind many levels, often": func(n int) (string, string) {
			deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
			text := "[" + strings.Repeat(deep+",", n/100)
			return text + "1]", text + "2]"
		},
	}
}

func TestComparesArgumentsInLinearTime(t *testing.T) {
	for name, pair := range pairs() {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, 10_000, func(n int) func() {
				before, after := pair(n)
				return func() { Diff(before, after) }
			})
		})
	}
}

func TestComparesWithAGrantInLinearTime(t *testing.T) {
	bounds := []Bound{{Path: "k1", Kind: AtMost}, {Path: "0.0.0.1", Kind: AtMost}}
	for name, pair := range pairs() {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, 10_000, func(n int) func() {
				before, after := pair(n)
				return func() {
					narrows(resolve.Raw(before), resolve.Raw(after), leeway{bounds: bounds})
					narrows(resolve.Raw(before), resolve.Raw(before), leeway{bounds: bounds})
				}
			})
		})
	}
}

// TestDiffersAsAWhole: texts with very many differences are reported as one change, so that their
// paths can't fill the memory.
func TestDiffersAsAWhole(t *testing.T) {
	before, after := pairs()["a long key above many items"](20_000)
	got := Diff(before, after)
	if len(got) != 1 || got[0].Path != "" || got[0].Old != before || got[0].New != after {
		t.Errorf("%d changes, the first at %.40q", len(got), got[0].Path)
	}
	before, after = pairs()["every value another"](mostChanges)
	if got = Diff(before, after); len(got) != mostChanges {
		t.Errorf("%d changes, want each of them", len(got))
	}
}

// TestDiffNamesPlaces: an empty key is a path segment like others.
func TestDiffNamesPlaces(t *testing.T) {
	got := Diff(`{"":{"x":1},"a":[{"b":true},null]}`, `{"":{"x":2},"a":[{"b":true,"c":0}]}`)
	want := []Change{{".x", "1", "2"}, {"a.0.c", "", "0"}, {"a.1", "null", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// BenchmarkCompare compares the largest valid input: 2 MiB of members in reverse order.
func BenchmarkCompare(b *testing.B) {
	before, after := pairs()["keys in another order"](45_000)
	pad := `,"pad":"` + strings.Repeat("x", 3<<19) + `"}`
	before, after = strings.TrimSuffix(before, "}")+pad, strings.TrimSuffix(after, "}")+pad
	for b.Loop() {
		if Diff(before, after) != nil || !narrows(resolve.Raw(before), resolve.Raw(after), leeway{}) {
			b.Fatal("they are the same")
		}
	}
}
