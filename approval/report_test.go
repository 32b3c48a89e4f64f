package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

func (h *harness) report(
	call *resolve.Call, what approval.Report, key string, change ...func(*approval.ReportInput),
) error {
	in := approval.ReportInput{Tenant: "t", Asker: runner(), Agent: "desk", Call: call, Report: what, Key: key}
	for _, c := range change {
		c(&in)
	}

	return h.s.Report(context.Background(), in)
}

// told is one entry of the ledger.
type told struct {
	Type    string         `json:"type"`
	Subject string         `json:"subject"`
	Actor   string         `json:"actor"`
	Facts   map[string]any `json:"facts"`
}

// lastTold returns the newest entry of the ledger.
func (h *harness) lastTold() (last told) {
	h.t.Helper()
	n := len(h.history())
	entries, err := h.store.Entries(context.Background(), "t", int64(n-1), 1)
	must(h.t, err)
	must(h.t, json.Unmarshal(entries[0].Leaf, &last))

	return last
}

func TestReportsTellHowACallEnded(t *testing.T) {
	h := newHarness(t)
	h.open(tool("quote", `{"of":1}`))
	must(t, h.report(tool("quote", `{"of":1}`), approval.Returned, "1"))
	must(t, h.report(tool("quote", `{"of":1}`), approval.Returned, "1"))
	if leaf := h.lastTold(); leaf.Subject != "" || leaf.Actor != "runner" || leaf.Facts["target"] != "tool quote" {
		t.Errorf("a call that nobody was asked about: %+v", leaf)
	}

	r, _ := h.approved(tool("pay", `{"n":1}`), nil)
	_, err := h.consume(r, tool("pay", `{"n":1}`), "k")
	must(t, err)
	must(t, h.report(tool("pay", `{"n":1}`), approval.Failed, "2"))
	leaf := h.lastTold()
	if leaf.Subject != r.ID || leaf.Facts["state"] != "consumed" || leaf.Facts["binding"] != leaf.Facts["approved"] {
		t.Errorf("a call that people approved: %+v", leaf)
	}
	must(t, h.report(tool("pay", `{"n":1}`), approval.NotRun, "3"))
	if leaf := h.lastTold(); leaf.Subject != r.ID || leaf.Facts["state"] != "consumed" {
		t.Errorf("an approved call that something else blocked: %+v", leaf)
	}
	h.happened("call_allowed", "call_returned", "request_opened", "vote_counted", "request_approved",
		"permit_consumed", "call_failed", "call_not_run")
}

// TestNotRunGivesNoApprovalBack: anybody who can report could claim that a call did not run, so a
// second permit would let it run twice.
func TestNotRunGivesNoApprovalBack(t *testing.T) {
	pay := func() *resolve.Call { return tool("pay", `{"n":1}`) }
	other := func(in *approval.ReportInput) { in.Asker = approval.Asker{Token: "other"} }
	for name, report := range map[string]func(h *harness){
		"forged": func(h *harness) { must(h.t, h.report(pay(), approval.NotRun, "1")) },
		"twice": func(h *harness) {
			must(h.t, h.report(pay(), approval.NotRun, "1"))
			must(h.t, h.report(pay(), approval.NotRun, "2"))
		},
		"after it returned": func(h *harness) {
			must(h.t, h.report(pay(), approval.Returned, "1"))
			must(h.t, h.report(pay(), approval.NotRun, "2"))
		},
		"with the key of the run": func(h *harness) { must(h.t, h.report(pay(), approval.NotRun, "run")) },
		"by another asker":        func(h *harness) { must(h.t, h.report(pay(), approval.NotRun, "1", other)) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			r, _ := h.approved(pay(), nil)
			_, err := h.consume(r, pay(), "run")
			must(t, err)
			report(h)
			_, err = h.consume(r, pay(), "again")
			h.fails(err, approval.ErrConsumed)
			if next := h.asked(pay()); next.ID == r.ID {
				t.Error("the used request is open again")
			}
			h.history() // audits the ledger
		})
	}
}

// TestReportsShowWhatRanWithoutItsPermit: the entry contains the state of the request together with
// the runtime's claim.
func TestReportsShowWhatRanWithoutItsPermit(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{"n":1}`), func(in *approval.OpenInput) { in.Key = "call-1" })
	must(t, h.report(tool("pay", `{"n":2}`), approval.Returned, "1", func(in *approval.ReportInput) {
		in.Opened = "call-1"
	}))
	leaf := h.lastTold()
	if leaf.Subject != r.ID || leaf.Facts["state"] != "pending" || leaf.Facts["binding"] == leaf.Facts["approved"] {
		t.Errorf("%+v", leaf)
	}
}

// TestReportsOfObservedCallsTellWhatTheRulesSay: the entry contains the decision of the rules, and
// people are not asked.
func TestReportsOfObservedCallsTellWhatTheRulesSay(t *testing.T) {
	h := newHarness(t)
	for name, outcome := range map[string]string{"quote": "allow", "pay": "ask", "wire": "deny"} {
		must(t, h.report(tool(name, `{"n":1}`), approval.Observed, name))
		leaf := h.lastTold()
		if leaf.Type != approval.EventCallObserved || leaf.Facts["outcome"] != outcome || leaf.Facts["rules"] == nil {
			t.Errorf("%s: %+v", name, leaf)
		}
	}

	page, err := h.store.Requests(context.Background(), "t", approval.Filter{})
	must(t, err)
	if page.Total != 0 {
		t.Errorf("people were asked: %+v", page)
	}
}

func TestReportsAreRefused(t *testing.T) {
	h := newHarness(t)
	quote := func() *resolve.Call { return tool("quote", `{}`) }
	h.asked(tool("pay", `{"n":1}`), func(in *approval.OpenInput) { in.Key = "call-1" })
	must(t, h.report(quote(), approval.Returned, "1"))
	h.fails(h.report(quote(), approval.Failed, "1"), approval.ErrKeyReuse)
	h.fails(h.report(tool("quote", `{"n":2}`), approval.Returned, "1"), approval.ErrKeyReuse)
	h.fails(h.report(quote(), approval.Returned, "2", func(in *approval.ReportInput) {
		in.Opened = "call-1"
	}), approval.ErrKeyReuse)
	h.fails(h.report(quote(), approval.Returned, "3", func(in *approval.ReportInput) {
		in.Agent = "nobody"
	}), approval.ErrUnknownAgent)
	h.wrongField(h.report(quote(), "ran", "4"), "report")
	h.wrongField(h.report(quote(), approval.Returned, ""), "key")
	h.wrongField(h.report(tool("quote", `{"a":1,"a":2}`), approval.Returned, "5"), "call")
	h.wrongField(h.report(quote(), approval.Returned, strings.Repeat("k", 2000)), "key")
	administers := h.report(quote(), approval.Returned, "6", func(in *approval.ReportInput) {
		in.Agent = approval.AdministrationAgent
	})
	if administers == nil {
		t.Error("administration is reported of")
	}
	h.happened("request_opened", "call_returned")
}

// TestReportsAreTheAskersOwn: a key or a request of another asker has no effect.
func TestReportsAreTheAskersOwn(t *testing.T) {
	h := newHarness(t)
	h.asked(tool("pay", `{"n":1}`), func(in *approval.OpenInput) { in.Key = "call-1" })
	must(t, h.report(tool("pay", `{"n":1}`), approval.Returned, "1", func(in *approval.ReportInput) {
		in.Asker = approval.Asker{Token: "other"}
		in.Opened = "call-1"
	}))
	if leaf := h.lastTold(); leaf.Subject != "" || leaf.Actor != "other" {
		t.Errorf("%+v", leaf)
	}
	must(t, h.report(tool("pay", `{"n":1}`), approval.Failed, "1")) // keys are separate for each asker
}

func TestReportsCountForTheQuota(t *testing.T) {
	h := newHarness(t)
	h.cfg.Quota = approval.Quota{Token: approval.Amounts{BytesPerHour: 3000}}
	h.start()
	var full *approval.LimitError
	for _, key := range []string{"1", "2", "3", "4"} {
		if err := h.report(tool("quote", `{}`), approval.Returned, key); errors.As(err, &full) {
			return
		}
	}
	t.Error("reports are recorded without bounds")
}
