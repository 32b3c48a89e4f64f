package resolve

import "github.com/assent-dev/assent/diag"

// Rules describes the findings of Plan.Findings.
func Rules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: "policy-unresolved", Title: "required policy is not in the registry", Severity: diag.Error,
			Why: "An agent that names a governance policy as required (the default) must not run without it. Every call is denied with " +
				"`policy_unresolved` until a registry holds the policy. Correct the reference, give the right `--policies`, or say `required: false` where the policy is only advice.",
			Bad:  "constraints:\n  governance_policies:\n    - policy_ref: acme.finance.trade-controls-v9 # not in the registry\n",
			Good: "constraints:\n  governance_policies:\n    - policy_ref: acme.finance.trade-controls-v2\n",
			Spec: "Agent Format, GovernancePolicyRef.required",
		},
		{
			ID: "policy-advisory-missing", Title: "advisory policy is not in the registry", Severity: diag.Warning,
			Why:  "The agent runs without this policy, as `required: false` allows. If it was meant to hold, the reference is wrong or the registry incomplete.",
			Bad:  "constraints:\n  governance_policies:\n    - {policy_ref: acme.hints-v1, required: false} # not in the registry\n",
			Good: "constraints:\n  governance_policies:\n    - {policy_ref: acme.finance.trade-controls-v2, required: false}\n",
			Spec: "Agent Format, GovernancePolicyRef.required",
		},
		{
			ID: "policy-selector-overridden", Title: "named policy applies although its selector leaves the agent out", Severity: diag.Info,
			Why:  "A policy that the agent names applies to it whatever the policy's own selector says: the selector limits only implicit policies. This tells the policy's owner that it reaches further than the selector suggests.",
			Spec: "docs/contracts/policy.md",
		},
		{
			ID: "policy-timeout-refused", Title: "approval by timeout is read as deny", Severity: diag.Warning,
			Why:  "A policy wants unanswered requests to be approved. The runtime owner has not opted in to that, so the plan denies them instead: silence is no consent.",
			Spec: "docs/contracts/policy.md",
		},
	}
}
