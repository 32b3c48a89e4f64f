package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// AnyOf is a list of alternatives, each a list of stages. People fulfil it by filling all stages of
// one alternative.
type AnyOf [][]Stage

// mostOptions limits the lists of stages that Options returns.
const mostOptions = 1024

// Options returns the lists of stages of which one has to be filled: one alternative of each any_of
// is chosen, and its stages are joined with those of the others, and with stages, like the stages of
// several rules. It leaves out lists that require at least what another one requires. It returns
// false if there are too many, and nothing may then be approved.
func Options(stages []Stage, anyOf []AnyOf) ([][]Stage, bool) {
	out := [][]Stage{stages}
	for _, alternatives := range anyOf {
		var next [][]Stage
		for _, o := range out {
			for _, alternative := range alternatives {
				if next = weakest(next, normalStages(slices.Concat(o, alternative), nil)); len(next) > mostOptions {
					return nil, false
				}
			}
		}
		out = next
	}

	return out, true
}

// weakest adds a list of stages to lists of which none requires what another one requires.
func weakest(lists [][]Stage, one []Stage) [][]Stage {
	if slices.ContainsFunc(lists, func(o []Stage) bool { return tighterStages(one, o) }) {
		return lists
	}
	return append(slices.DeleteFunc(lists, func(o []Stage) bool { return tighterStages(o, one) }), one)
}

// TighterPeople reports whether all people who fulfil the stages and alternatives of a also fulfil
// those of b, whoever is in the groups.
func TighterPeople(a, b Require) bool {
	options, known := Options(a.Stages, a.AnyOf)
	others, sure := Options(b.Stages, b.AnyOf)
	return known && sure && !slices.ContainsFunc(options, func(x []Stage) bool {
		return !slices.ContainsFunc(others, func(y []Stage) bool { return tighterStages(x, y) })
	})
}

func tighterStages(a, b []Stage) bool { return each(b, a, Stage.tighter) }

// String describes the alternatives: "1 of cfo, or 2 of finance".
func (a AnyOf) String() string {
	var all []string
	for _, stages := range a {
		var one []string
		for _, s := range stages {
			one = append(one, strconv.Itoa(s.People)+" of "+s.Group)
		}
		all = append(all, strings.Join(one, " and "))
	}

	return strings.Join(all, ", or ")
}

// tighter reports whether every alternative requires what some alternative of the other requires.
func (a AnyOf) tighter(b AnyOf) bool {
	return !slices.ContainsFunc(a, func(x []Stage) bool {
		return !slices.ContainsFunc(b, func(y []Stage) bool { return tighterStages(x, y) })
	})
}

// normalAnyOf sorts the lists and the alternatives of each, and removes repetitions.
func normalAnyOf(in []AnyOf, lookers map[string]bool) []AnyOf {
	var out []AnyOf
	for _, alternatives := range in {
		var one AnyOf
		for _, stages := range alternatives {
			one = append(one, normalStages(stages, lookers))
		}
		slices.SortFunc(one, compareStages)
		out = append(out, slices.CompactFunc(one, func(a, b []Stage) bool { return compareStages(a, b) == 0 }))
	}
	compare := func(a, b AnyOf) int { return slices.CompareFunc(a, b, compareStages) }
	slices.SortFunc(out, compare)

	return slices.CompactFunc(out, func(a, b AnyOf) bool { return compare(a, b) == 0 })
}

func compareStages(a, b []Stage) int {
	return slices.CompareFunc(a, b, func(a, b Stage) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.People, b.People),
			slices.CompareFunc(a.StandIns, b.StandIns, func(a, b StandIn) int {
				return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.After, b.After))
			}),
		)
	})
}
