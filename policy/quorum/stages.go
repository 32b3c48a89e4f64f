package quorum

import (
	"slices"

	"github.com/assent-dev/assent/policy"
)

// Anyone returns the stage of a request whose rules name no group: one approver of the tenant.
func Anyone() policy.Stage { return policy.Stage{Group: "", People: 1} }

// IsAnyone reports whether the stages require only one approver of the tenant.
func IsAnyone(stages []policy.Stage) bool {
	return len(stages) == 1 && stages[0].Group == "" && stages[0].People == 1
}

// Stages returns the stages that an approval needs: those of the rules, or Anyone. If the directory
// does not contain the principal, one more person is needed, because the principal could be one of
// the approvers.
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
