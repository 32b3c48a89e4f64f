package approval_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/resolve"
)

func (h *harness) void(frozen ...approval.Freeze) approval.Voided {
	h.t.Helper()
	out, err := h.s.Void(context.Background(), "t", "restore", frozen)
	must(h.t, err)
	must(h.t, h.s.Record(context.Background(), "t", approval.EventRestored, "", "restore", nil))
	return out
}

// TestARestoreVoidsWhatCouldRunByItself: unused permits and standing approvals of every agent are
// voided; pending and closed requests stay.
func TestARestoreVoidsWhatCouldRunByItself(t *testing.T) {
	h := newHarness(t)
	pay, refund := tool("pay", `{"n":1}`), tool("pay", `{"n":2}`)
	unused, grant := h.approved(pay, &approval.GrantOffer{MaxUses: 3, MaxAge: time.Hour})
	used, _ := h.approved(refund, nil)
	works(h.consume(used, refund, "k"))(t)
	waiting := h.asked(tool("trade", `{}`))
	must(t, h.s.Freeze(context.Background(), "t", "", "eve", "audit"))

	lost := []approval.Freeze{{Agent: "desk", By: "dee", Reason: "odd", At: h.now()}, {By: "eve", At: h.now()}}
	if got := h.void(lost...); got != (approval.Voided{Permits: 1, Grants: 1, Freezes: 1}) {
		t.Errorf("voided are %+v", got)
	}

	h.is(unused.ID, approval.Expired, approval.ByRestore)
	h.is(used.ID, approval.Consumed, "consumed")
	h.is(waiting.ID, approval.Pending, "")
	grants, err := h.store.Grants(context.Background(), "t", true, h.now())
	if err != nil || len(grants) != 1 || grants[0].ID != grant.ID || grants[0].Revoked == nil {
		t.Errorf("standing approvals are %+v, %v", grants, err)
	}
	if out := h.open(pay); out.Denied != "frozen" {
		t.Errorf("while frozen a call is %+v", out)
	}
	if _, err := h.consume(unused, pay, "late"); err == nil {
		t.Error("a voided permit runs")
	}

	if got := h.void(lost...); got != (approval.Voided{}) {
		t.Errorf("voided again are %+v", got)
	}
	for _, agent := range []string{"desk", ""} {
		must(t, h.s.Thaw(context.Background(), "t", agent, "dee", ""))
	}
	h.vote(waiting, "ann", approval.Approve, approval.VoteCounted)
	h.vote(waiting, "bob", approval.Approve, approval.VoteApproved)
	if _, err := h.consume(waiting, tool("trade", `{}`), "x"); err != nil {
		t.Error(err)
	}
	if all := h.history(); !slices.Contains(all, "restored") || !slices.Contains(all, "grant_revoked") {
		t.Errorf("the ledger tells %v", all)
	}
}

// TestARestoreVoidsAllPages covers a list of requests with several pages.
func TestARestoreVoidsAllPages(t *testing.T) {
	h := newHarness(t)
	const n = 520 // more than a page
	for i := range n {
		h.approved(tool("pay", fmt.Sprintf(`{"n":%d}`, i)), nil)
	}
	if got := h.void(); got.Permits != n {
		t.Errorf("%d permits are voided, want %d", got.Permits, n)
	}
}

// TestARestoreVoidsWhatNoIndexFinds: an attacker with access to the database can change the columns
// that find standing approvals, so all of them are checked.
func TestARestoreVoidsWhatNoIndexFinds(t *testing.T) {
	h := newHarness(t)
	call := tool("pay", `{}`)
	h.approved(call, &approval.GrantOffer{MaxUses: 3})
	hide := func(column string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+h.path+"?_pragma=busy_timeout(30000)")
		if err == nil {
			_, err = db.ExecContext(t.Context(), "UPDATE grants SET revoked = "+column)
			err = errors.Join(err, db.Close())
		}
		must(t, err)
	}

	hide("1")
	if got := h.void(); got.Grants != 1 {
		t.Errorf("%d standing approvals are voided", got.Grants)
	}
	hide("NULL")
	if out := h.open(call, key("k")); out.Outcome != resolve.Ask {
		t.Errorf("a voided standing approval lets a call run: %+v", out)
	}
}

// TestAnAuditorFindsWhatARestoreLeft: the audit reports approvals that could still run at the time
// of a restore.
func TestAnAuditorFindsWhatARestoreLeft(t *testing.T) {
	h := newHarness(t)
	unused, grant := h.approved(tool("pay", `{"n":1}`), &approval.GrantOffer{MaxUses: 3, MaxAge: time.Hour})
	spent, _ := h.approved(tool("pay", `{"n":2}`), &approval.GrantOffer{MaxUses: 1, MaxAge: time.Minute})
	works(h.consume(spent, tool("pay", `{"n":2}`), "k"))(t)
	h.pass(2 * time.Minute)
	must(t, h.s.Record(context.Background(), "t", approval.EventRestored, "", "restore", nil))
	sign := func(ledger.Checkpoint) ([]byte, error) { return []byte("signed"), nil }
	works(h.store.Seal(context.Background(), 1000, sign))(t)
	entries, err := h.store.Entries(context.Background(), "t", 0, 100)
	must(t, err)
	var audit approval.Auditor
	for _, e := range entries {
		leaf, err := ledger.ParseLeaf(e.Leaf)
		must(t, err)
		audit.Add(e.Index, leaf)
	}

	var said []string
	for _, p := range audit.Problems() {
		said = append(said, p.String())
	}
	text := strings.Join(said, "\n")
	if len(said) != 2 || !strings.Contains(text, "the approval of "+unused.ID+" was not voided") ||
		!strings.Contains(text, "the standing approval "+grant.ID+" was not voided") {
		t.Errorf("the auditor finds\n%s", text)
	}
}
