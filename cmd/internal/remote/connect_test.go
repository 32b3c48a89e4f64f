package remote

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/server/openapi"
)

// TestExposed: a token in the clear stays on the machine.
func TestExposed(t *testing.T) {
	for server, want := range map[string]bool{
		"https://a.example":             false,
		"http://127.0.0.1:7717":         false,
		"http://[::1]:1":                false,
		"http://localhost":              false,
		"http://a.example":              true,
		"http://10.0.0.1":               true,
		"http://127.0.0.1.evil.example": true,
	} {
		if got := Exposed(server); got != want {
			t.Errorf("%s: %t", server, got)
		}
	}
}

// TestExplainMissingLeavesOutTheAdviceAboutIDs: the advice would send users with an empty ledger to
// a list of requests.
func TestExplainMissingLeavesOutTheAdviceAboutIDs(t *testing.T) {
	problem := func(code openapi.Code) error {
		return &client.Problem{Problem: openapi.Problem{Code: code, Detail: "nothing here"}}
	}
	for _, c := range []struct {
		err        error
		next, want string
	}{
		{problem(openapi.CodeNotFound), "wait", "nothing here\nnext: wait"},
		{problem(openapi.CodeNotFound), "", "nothing here"},
		{problem(openapi.CodePending), "wait", "nothing here (pending)"},
	} {
		if got := ExplainMissing(c.err, c.next).Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if err := ExplainMissing(nil, "wait"); err != nil {
		t.Error(err)
	}
}

// TestNextStepAfterNotFoundIsAboutTheID: unless the server names something else that is missing,
// for example to `assent login` if sign-ins are not configured.
func TestNextStepAfterNotFoundIsAboutTheID(t *testing.T) {
	p := &client.Problem{Problem: openapi.Problem{Code: openapi.CodeNotFound, Title: "not found"}}
	if got := nextStep(p); !strings.Contains(got, "look at the id") {
		t.Errorf("of an id: %q", got)
	}
	p.Detail = "nobody can sign in here, so no command line can"
	if got := nextStep(p); got != "" {
		t.Errorf("of something else: %q", got)
	}
}

func TestNextSteps(t *testing.T) {
	for code, want := range map[openapi.Code]string{
		openapi.CodeNotFound:     "freeze --list",
		openapi.CodeUnavailable:  "store (its log says why): try the same again in 2 seconds",
		openapi.CodeTokenExpired: "token create",
	} {
		if got := nextStep(&client.Problem{Problem: openapi.Problem{
			Code:       code,
			NextAction: openapi.NextActionRetry,
			RetryAfter: 2,
		}}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}
