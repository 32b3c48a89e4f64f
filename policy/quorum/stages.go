package quorum

import (
	"github.com/assent-dev/assent/policy"
)

// Anyone returns the stage of a request whose rules name no group: one approver of the tenant.
func Anyone() policy.Stage { return policy.Stage{Group: "", People: 1} }

// IsAnyone reports whether the stages require only one approver of the tenant.
func IsAnyone(stages []policy.Stage) bool {
	return len(stages) == 1 && stages[0].Group == "" && stages[0].People == 1
}

// Stages returns the stages that an approval needs: those of the rules, or Anyone if there are no
// alternatives either. If the directory does not contain the principal, one more person is needed,
// because the principal could be one of the approvers.
func Stages(required []policy.Stage, anyOf []policy.AnyOf, unknownPrincipal bool) []policy.Stage {
	if len(required)+len(anyOf) == 0 {
		required = []policy.Stage{Anyone()}
	}
	switch {
	case !unknownPrincipal:
		return append([]policy.Stage{}, required...)
	case IsAnyone(required) && len(anyOf) == 0:
		return []policy.Stage{{Group: "", People: 2}}
	}

	return append([]policy.Stage{Anyone()}, required...)
}
