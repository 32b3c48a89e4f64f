package approval_test

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/approval"
)

// TestHiddenValuesAreRecordedAsHidden: the paths of values that a policy hid from the approver are
// recorded, at any depth of the arguments.
func TestHiddenValuesAreRecordedAsHidden(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("login", `{"user":"u","password":"p","more":[{"password":{"old":"x"}}]}`))
	out := h.vote(r, "cy", approval.Approve, approval.VoteApproved)
	if got := out.Request.Votes[0].Hidden; !slices.Equal(got, []string{"password", "more.0.password"}) {
		t.Errorf("got %q", got)
	}
	plain := h.vote(h.asked(tool("login", `{"user":"u"}`)), "cy", approval.Approve, approval.VoteApproved)
	if got := plain.Request.Votes[0].Hidden; got != nil {
		t.Errorf("nothing is hidden, got %q", got)
	}
	h.history()
}

// TestARuleMayForbidApprovingHiddenValues: a rule may forbid approving hidden values; denying them
// and removing them by an edit remain possible.
func TestARuleMayForbidApprovingHiddenValues(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("unlock", `{"user":"u","password":"p"}`))
	_, err := h.tryVote(r, "cy", approval.Approve)
	h.fails(err, approval.ErrHidden)
	_, err = h.edit(r, "cy", `{"user":"u","password":"q"}`)
	h.fails(err, approval.ErrHidden)
	works(h.edit(r, "cy", `{"user":"u"}`))(t)
	h.is(r.ID, approval.Approved, approval.ByVotes)

	second := h.asked(tool("unlock", `{"user":"v","password":"p"}`))
	h.vote(second, "cy", approval.Deny, approval.VoteDenied)
	h.history()
}

// TestAnEditNeedsToBeShownFully: an edit is only approved by a person who was shown the whole new
// call.
func TestAnEditNeedsToBeShownFully(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`))
	in := approval.EditInput{
		Tenant:  "t",
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  "cy",
		Args:    `{"n":1}`,
		Channel: "api",
	}
	_, err := h.s.Edit(t.Context(), in)
	h.fails(err, approval.ErrNotShown)
	h.is(r.ID, approval.Pending, "")
	in.Full = true
	works(h.s.Edit(t.Context(), in))(t)
	h.history()
}
