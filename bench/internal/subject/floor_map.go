package subject

import "github.com/assent-dev/assent/bench/internal/model"

// Map is the floor from decoded arguments. It has the tests of Slots, and each test reads its
// argument from the map.
func Map(w *model.Workload) *Subject {
	plans := slotPlans(w)
	calls, reasons := w.Calls, make([]int32, 0, 64)
	return &Subject{
		Engine: "map",
		Input:  Decoded,
		Scope:  Floor,
		Decide: func(i int) int {
			c := &calls[i]
			reasons = reasons[:0]
			for _, r := range plans[c.Tool].rules {
				if r.matchesMap(c.Args) {
					reasons = append(reasons, r.index)
				}
			}
			return len(reasons)
		},
		Reasons: func() []string { return idsAt(w.Rules, reasons) },
	}
}

func (r *slotRule) matchesMap(args map[string]any) bool {
next:
	for _, g := range r.groups {
		for i := range g {
			if s := fetch(args, g[i].path); !g[i].holds(&s) {
				continue next
			}
		}
		return true
	}
	return false
}

// fetch reads the value at a path.
func fetch(args map[string]any, path []string) slot {
	last := len(path) - 1
	for _, key := range path[:last] {
		args, _ = args[key].(map[string]any)
	}
	switch v := args[path[last]].(type) {
	case string:
		return slot{kind: 's', text: v}
	case float64:
		return slot{kind: 'n', num: v}
	}

	return slot{}
}
