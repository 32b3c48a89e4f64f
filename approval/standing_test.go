package approval

import (
	"testing"
	"time"
)

func TestStandingCovers(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	given := Standing{
		Basis:   []string{"plan", "tool"},
		Rules:   []string{"a", "b"},
		Created: noon,
		Expires: noon.Add(time.Hour),
		Uses:    1,
		MaxUses: 2,
	}
	basis := []string{"plan", "tool"}
	for name, c := range map[string]struct {
		change func(*Standing)
		basis  []string
		rules  []string
		now    time.Time
		want   bool
	}{
		"the same call":            {nil, basis, []string{"a", "b"}, noon, true},
		"fewer rules":              {nil, basis, []string{"b"}, noon, true},
		"no rules":                 {nil, basis, nil, noon, true},
		"another rule":             {nil, basis, []string{"a", "c"}, noon, false},
		"another tool":             {nil, []string{"plan", "other"}, nil, noon, false},
		"a name less":              {nil, []string{"plan"}, nil, noon, false},
		"names in another order":   {nil, []string{"tool", "plan"}, nil, noon, false},
		"before it was given":      {nil, basis, nil, noon.Add(-1), false},
		"just before its end":      {nil, basis, nil, noon.Add(time.Hour - 1), true},
		"at its end":               {nil, basis, nil, noon.Add(time.Hour), false},
		"used up":                  {func(s *Standing) { s.Uses = 2 }, basis, nil, noon, false},
		"used too often":           {func(s *Standing) { s.Uses = 3 }, basis, nil, noon, false},
		"given by another machine": {func(s *Standing) { s.Created = time.Time{} }, basis, nil, noon.Add(-1), true},
	} {
		s := given
		if c.change != nil {
			c.change(&s)
		}
		if got := s.Covers(c.basis, c.rules, c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
