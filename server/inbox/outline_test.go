package inbox

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
)

func TestNamesStayWhole(t *testing.T) {
	for subject, want := range map[string]string{
		"apr_06gvuevv09vr8etigtedtonn80": "…tonn80",
		"tok_36f15908749bd4500d01":       "…500d01",
		"mara@example.com":               "mara@example.com",
		"all_agents":                     "all_agents",
		"":                               "",
	} {
		if got := about(subject); got != want {
			t.Errorf("%q: %q", subject, got)
		}
	}
}

// TestATakenSeatIsSaid: people who could only fill seats that are already filled see that, and are
// not asked to approve.
func TestATakenSeatIsSaid(t *testing.T) {
	idle := approval.Eligibility{Answer: true, Approve: true}
	if got := whyNot(idle, true); !strings.Contains(got, "the seats that you may fill are taken") ||
		!strings.Contains(got, "deny") {
		t.Errorf("%q", got)
	}
	if (request{Pending: true, Say: true, Seat: true}).Approvable() || !(request{
		Pending: true,
		Say:     true,
		Seat:    true,
		Fills:   true,
	}).Approvable() {
		t.Error("only an approval that fills a seat is offered")
	}

	for _, c := range []struct {
		e    approval.Eligibility
		want string
	}{
		{approval.Eligibility{Why: "an owner of the agent"}, "You may not answer this: you own the agent."},
		{approval.Eligibility{Why: "something new"}, "You may not answer this: something new."},
		{
			approval.Eligibility{Answer: true, Waiting: true, Why: "called in to look"},
			"You were called in to look: you may deny it or answer, but approvals must come from the groups below.",
		},
		{approval.Eligibility{Answer: true, Approve: true, Waiting: true}, ""},
	} {
		if got := whyNot(c.e, true); got != c.want {
			t.Errorf("%+v: %q", c.e, got)
		}
	}
}
