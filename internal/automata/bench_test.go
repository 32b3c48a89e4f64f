package automata

import "testing"

// BenchmarkFind builds machines and proves things of them: the last
// pattern is what byte automata explode on.
func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		name     string
		patterns []string
	}{
		{"literal suffix is no other", []string{`@gmail\.com$`, `\.com$`}},
		{"digits", []string{`^acct_[0-9]+_prod$`, `^acct_`}},
		{"ignoring case", []string{`(?i)drop\s+table`, `(?i)drop`}},
		{"mail addresses", []string{`^[^@]+@(gmail|yahoo|hotmail)\.com$`, `@[a-z]+\.com$`}},
		{"Unicode classes", []string{`\pL+ \d{4}-\d{2}-\d{2}`, `\d{2}`}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				both := []Machine{newRule(b, c.patterns[0], true).machine, newRule(b, c.patterns[1], true).machine}
				if s, outcome := Find(both, func(in []bool) bool { return in[0] && !in[1] }, 10_000); outcome != None {
					b.Fatalf("%q: %d", s, outcome)
				}
			}
		})
	}
}
