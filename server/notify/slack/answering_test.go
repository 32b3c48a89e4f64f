package slack_test

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

// TestSlackHidesAtAnyDepth hides values in the arguments and in the parent's input. The message
// must say which values are hidden, and offer no approval.
func TestSlackHidesAtAnyDepth(t *testing.T) {
	w := newWorld(t)
	w.open(&resolve.Call{
		Kind:        resolve.Tool,
		Tool:        "vault",
		Args:        []byte(`{"path":"p","auth":[{"secret":"hunter2"}]}`),
		ParentInput: []byte(`{"a":{"secret":"hunter2"}}`),
		Principal:   "rita@acme.example",
	})
	w.deliver()
	p := w.only()
	lacks(t, texts(p.blocks), "hunter2")
	p.shows(t,
		`"path": "p"`,
		"A policy hides values from channels: auth.0.secret, parent.input.a.secret.",
		"A policy forbids approving this while they are hidden",
	)
	if _, ok := p.button(approve); ok {
		t.Error("it can be approved")
	}
}

// TestSlackCallsAnUnknownPersonOne checks that the message says next to the name that the
// person is not known.
func TestSlackCallsAnUnknownPersonOne(t *testing.T) {
	w := newWorld(t)
	w.open(&resolve.Call{Kind: resolve.Tool, Tool: "trade", Args: []byte(`{}`), Principal: "mallory"})
	w.deliver()
	w.shows("unknown person", "For: mallory", "Needs: 1 of any approver, 1 of risk")
}

// TestSlackSaysWhatNobodyCanFill checks that the message shows a quorum that can't be reached,
// before the first vote.
func TestSlackSaysWhatNobodyCanFill(t *testing.T) {
	w, _ := asked(t, "nine", `{}`)
	w.shows("Nobody can fill this quorum: 9 of risk: only 3 of them may answer this.")
}

// TestSlackLabelsMessages checks that a message is labelled with its author, and that the
// reason of the rule is shown in words.
func TestSlackLabelsMessages(t *testing.T) {
	w := newWorld(t)
	w.ask("trade", `{"amount":5,"what":"gold"}`)
	w.ask("large", `{"amount":25000}`)
	w.deliver()
	var all []string
	for _, p := range w.slack.now() {
		all = append(all, texts(p.blocks))
	}
	slices.Sort(all)
	holds(
		t,
		all[0]+all[1],
		"Message by the author of the agent's file, with the agent's values",
		"Message made by assent from the call, with the agent's values",
		"│ Large ones are looked at.",
		"│ amount is 25,000, above 10,000",
	)
}

// TestSlackWantsAReasonOfWhoeverMayDeny checks that the form can't be sent empty, and opens
// only for people who may deny.
func TestSlackWantsAReasonOfWhoeverMayDeny(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	w.click(w.only(), deny, "U0ALICE")
	w.submit("U0ALICE", "   ")
	w.unanswered(r.ID, "a blank reason")
}
