package posture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

// fleet returns an agent with a hundred tools, half of them gated, and policies that each apply to
// a few of them. Every tenth policy has a bound of the given value.
func fleet(t testing.TB, policies, bound int) *Side {
	t.Helper()
	var list []string
	for i := range 100 {
		entry := fmt.Sprintf("{alias: tool_%d}", i)
		if i%2 == 0 {
			entry = fmt.Sprintf(
				`{alias: tool_%d, approval: {condition: [{args_match: {amount: {gt: %d}, currency: USD}}, {args_match: {to: {pattern: '^ext-\d+'}}}]}}`,
				i, 1000+bound)
		}
		list = append(list, entry)
	}

	var texts []string
	for i := range policies {
		high := 5000
		if i%10 == 0 {
			high += bound
		}
		rules := []string{
			fmt.Sprintf(
				`{id: large, match: {targets: ["tool_%d*"]}, approval: {condition: [{args_match: {amount: {gt: %d}}}]}, require: {stages: [{group: g%d, people: 2}], within: 30m}}`,
				i%100,
				high,
				i%7,
			),
			fmt.Sprintf(
				`{id: hosts, match: {targets: ["tool_%d"]}, approval: {condition: [{args_match: {host: {pattern: '\.c%d\.example$'}}}]}}`,
				(i+3)%100,
				i,
			),
		}
		texts = append(texts, policyText(fmt.Sprintf("p%04d", i), rules...))
	}

	return sideText(t, resolve.Options{}, agentText(tools(strings.Join(list, ", "))), texts...)
}

func BenchmarkCompare(b *testing.B) {
	for _, policies := range []int{50, 200, 1000} {
		for name, bound := range map[string]int{"same": 0, "changed": 500} {
			b.Run(fmt.Sprintf("%d policies, %s", policies, name), func(b *testing.B) {
				old, new := fleet(b, policies, 0), fleet(b, policies, bound)
				b.ReportAllocs()
				undecided := 0
				for b.Loop() {
					undecided = 0
					for _, c := range Compare(old, new) {
						if c.Effect == Undecided {
							undecided++
						}
					}
				}

				b.ReportMetric(float64(undecided), "undecided")
			})
		}
	}
}
