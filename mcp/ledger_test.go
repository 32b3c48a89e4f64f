package mcp_test

import (
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
)

// TestTheLedgerBindsWhatRan: what an approver changed is what ran.
func TestTheLedgerBindsWhatRan(t *testing.T) {
	t.Parallel()
	var book ledger
	w := newWorld(t, func(cfg *mcp.Config) {
		short(cfg)
		book.keep(cfg)
	})
	c := w.connect(t)
	bindings := map[any]bool{}
	for i, edit := range []string{"", `{"path":"/b"}`} {
		c.expect(c.call("write_file", write), "Not run yet.")
		id := w.pending(t).ID
		if edit == "" {
			w.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
		} else if err := w.Edit(id, "mara", edit); err != nil {
			t.Fatal(err)
		}

		c.until("write_file", write, "done")
		ran := book.all("mcp_call_ran")[i]
		if ran.facts["request"] != id {
			t.Errorf("the run has %v, expected the request %s", ran.facts, id)
		}

		bindings[ran.facts["binding"]] = true
	}

	if len(bindings) != 2 {
		t.Errorf("the runs have the bindings %v", bindings)
	}
}

// TestACallThatEndsLateIsRecorded: a call that is passed on while the
// gateway ends stands in the ledger when it has ended.
func TestACallThatEndsLateIsRecorded(t *testing.T) {
	t.Parallel()
	var book ledger
	w := newWorld(t, book.keep)
	w.files.hold = make(chan struct{})
	c := w.connect(t)
	c.sendCall(1, "read_file", `{}`)
	testwait.Until(t, "the server has it", func() bool { return len(w.files.seen()) == 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.stop()
	}()
	testwait.Until(t, "the gateway waits for the call", w.gateway.Leaving)
	select {
	case <-ended:
		t.Error("the gateway ended before the call did")
	default:
	}
	close(w.files.hold)
	<-ended
	if n := len(book.all("mcp_call_ran")); n != 1 {
		t.Errorf("the ledger has %d runs", n)
	}
	c.expect(c.hear(), "done")
}

// TestTheLedgerNamesAStandingApproval: nobody was asked about such a
// run.
func TestTheLedgerNamesAStandingApproval(t *testing.T) {
	t.Parallel()
	var book ledger
	w := newWorld(t, func(cfg *mcp.Config) {
		long(cfg)
		book.keep(cfg)
	})
	c := w.connect(t)
	c.sendCall(1, "write_file", write)
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 5}
	})
	c.expect(c.text(c.hear()), "done")
	c.expect(c.call("write_file", write), "done")
	testwait.Until(t, "the ledger has both", func() bool { return book.count("mcp_call_ran") == 2 })
	facts := book.all("mcp_call_ran")[1].facts
	if grant, _ := facts["grant"].(string); grant == "" ||
		facts["request"] != nil {
		t.Errorf("the run has %v", facts)
	}
}

// TestALostResultIsNoCallThatNeverRan: a client that was told, and lost
// it, hears that the same call ran before.
func TestALostResultIsNoCallThatNeverRan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, short)
	c := w.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	w.Votes(w.pending(t).ID, "mara", approval.Deny, approval.VoteDenied, nil)
	c.until("write_file", write, "denied this call")
	text := c.call("write_file", `{"path":"/b"}`)
	c.no(text, "another call than the same one before")
	w.Votes(w.pending(t).ID, "mara", approval.Approve, approval.VoteApproved, nil)
	c.until("write_file", `{"path":"/b"}`, "done")
	c.expect(c.call("write_file", `{"path":"/b"}`), "another call than the same one before, which ran")
}
