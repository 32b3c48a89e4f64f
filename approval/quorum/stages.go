package quorum

import (
	"slices"

	"github.com/assent-dev/assent/policy"
)

// Anyone is the stage of a request whose rules name no group: one
// approver of the tenant.
func Anyone() policy.Stage { return policy.Stage{Group: "", People: 1} }

// IsAnyone reports whether one approver of the tenant is all that is
// asked for.
func IsAnyone(stages []policy.Stage) bool {
	return len(stages) == 1 && stages[0].Group == "" && stages[0].People == 1
}

// Stages are what an approval takes: the stages of its rules, or
// anyone. Where the directory knows nobody by the principal's name it
// takes one more person, since the principal could be one of those who
// approve.
func Stages(required []policy.Stage, unknownPrincipal bool) []policy.Stage {
	if len(required) == 0 {
		required = []policy.Stage{Anyone()}
	}
	switch {
	case !unknownPrincipal:
		return slices.Clone(required)
	case IsAnyone(required):
		return []policy.Stage{{Group: "", People: 2}}
	}

	return append([]policy.Stage{Anyone()}, required...)
}
