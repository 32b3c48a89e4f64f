package rules

import (
	"testing"
)

func TestIsGate(t *testing.T) {
	for name, want := range map[string]bool{
		"approval":          true,
		"aproval":           true,
		"Approval":          true,
		"requires_approval": true,
		"approve":           true,
		"human-approval":    true,
		"confirm":           true,
		"hitl":              true,
		"approved":          false,
		"approved_by":       false,
		"description":       false,
		"priority":          false,
		"proposal":          false,
	} {
		if got := isGate(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
