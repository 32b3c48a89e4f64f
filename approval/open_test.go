package approval_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

func TestOpenAllowsAndDenies(t *testing.T) {
	h := newHarness(t)
	if out := h.open(tool("quote", `{}`)); out.Word() != "allow" || out.Binding == "" {
		t.Errorf("got %+v", out)
	}
	for _, call := range []*resolve.Call{
		tool("wire", `{}`),
		tool("unheard", `{}`),
		tool("pay", `{"a":1,"a":2}`),
		tool("pay", "\xff\x00"),
	} {
		if out := h.open(call); out.Outcome != resolve.Deny || out.Denied != "policy" || out.Request != nil {
			t.Errorf("%s %q: got %+v", call.Tool, call.Args, out)
		}
	}

	h.happened("call_allowed", "call_denied", "call_denied", "call_denied", "call_denied")
	_, err := h.tryOpen(tool("quote", `{}`), func(in *approval.OpenInput) { in.Agent = "nobody" })
	h.fails(err, approval.ErrUnknownAgent)
}

func TestOpenRefusesWhatItCouldNotRecord(t *testing.T) {
	h := newHarness(t)
	long := strings.Repeat("x", 4<<20)
	for field, call := range map[string]*resolve.Call{
		"call":                 nil,
		"call.args":            {Kind: resolve.Tool, Tool: "pay", Values: map[string]any{"n": 1}},
		"call.tool":            {Kind: resolve.Tool, Tool: "\xff"},
		"call.principal":       {Kind: resolve.Tool, Tool: "pay", Principal: long},
		"call.session":         {Kind: resolve.Tool, Tool: "pay", Session: "a\x00b"},
		"call.tool_definition": {Kind: resolve.Tool, Tool: "pay", ToolDefinition: "a\nb"},
	} {
		_, err := h.tryOpen(call)
		h.wrongField(err, field)
	}

	_, err := h.tryOpen(tool("pay", `{}`), func(in *approval.OpenInput) { in.Key = long })
	h.wrongField(err, "key")
	h.happened()
}

// TestOpenKeepsTheExactText: four megabytes of arguments are asked about, shown and consumed
// unchanged.
func TestOpenKeepsTheExactText(t *testing.T) {
	h := newHarness(t)
	for _, args := range []string{
		`{ "b" : 1.50, "a":"\u0000é" }`,
		`{"x":"` + strings.Repeat("x", 2<<20-9) + `"}`,
		`[]`,
		`"\ud83d\ude00"`,
	} {
		r := h.vote(h.asked(tool("pay", args)), "eve", approval.Approve, approval.VoteApproved).Request
		got, err := h.consume(r, tool("pay", args), "k")
		if err != nil || string(got.Current().Call.Args) != args ||
			string(h.request(r.ID).Current().Call.Args) != args {
			t.Fatalf("%.40q: %v", args, err)
		}
	}

	h.history()
}

func TestOpenSharesAndCoolsDown(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{"n":1, "m":2}`))
	again := h.open(tool("pay", `{"m":2.0,"n":1}`)) // equivalent JSON, so the same call
	if !again.Shared || again.Request.ID != r.ID {
		t.Errorf("got %+v", again)
	}
	for _, other := range []*resolve.Call{tool("pay", `{"n":1}`), tool("trade", `{"n":1, "m":2}`)} {
		h.asked(other)
	}
	h.vote(r, "eve", approval.Deny, approval.VoteDenied)
	h.pass(5*time.Minute - time.Second)
	cool := h.open(tool("pay", `{"n":1,"m":2}`))
	if cool.Outcome != resolve.Deny || cool.Denied != "cooling_down" || cool.Request == nil ||
		cool.Request.ID != r.ID {
		t.Errorf("got %+v", cool)
	}
	h.pass(time.Second)
	h.asked(tool("pay", `{"n":1,"m":2}`))
	h.history()
}

func TestOpenSharesAnApproval(t *testing.T) {
	h := newHarness(t)
	r, _ := h.approved(tool("pay", `{}`), nil)
	out := h.open(tool("pay", `{}`))
	if !out.Shared || out.Request.ID != r.ID || out.Request.State != approval.Approved {
		t.Fatalf("got %+v", out)
	}
	works(h.consume(r, tool("pay", `{}`), "k"))(t)
	h.asked(tool("pay", `{}`)) // one approval is for one run
	h.happened(
		"request_opened",
		"vote_counted",
		"request_approved",
		"request_shared",
		"permit_consumed",
		"request_opened",
	)
}

func as(runtime, person string) func(*approval.OpenInput) {
	return func(in *approval.OpenInput) {
		in.Asker = approval.Asker{Token: runtime, Person: person}
	}
}

// TestOpenSharedByRuntimes: runtimes that ask for the same call share its request, its permit, and
// the exclusion from voting.
func TestOpenSharedByRuntimes(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("trade", `{}`))
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	joined := h.open(tool("trade", `{}`), as("second", "ann")).Request
	h.open(tool("trade", `{}`), as("second", "ann"))
	now := h.request(r.ID)
	if !now.AskedBy(approval.Asker{Token: "runner"}) ||
		!now.AskedBy(approval.Asker{Token: "second", Person: "ann"}) ||
		now.AskedBy(approval.Asker{Token: "ann"}) ||
		joined.Version != now.Version ||
		len(now.Requester.Also) != 1 {
		t.Fatalf("got %+v", now.Requester)
	}

	h.open(tool("trade", `{}`), as("bob", ""))
	for _, name := range []string{"ann", "bob"} {
		h.vote(now, name, approval.Deny, approval.VoteNotEligible)
	}
	if h.is(r.ID, approval.Pending, ""); len(r.Requester.Also) != 0 {
		t.Error("what was handed out before changed")
	}
	h.history()
}

// TestApprovalIsForTheCallersThatWereShown: an approval is for the callers that its approvers were
// shown. Any other caller of the same call makes a new request, and each caller finds their own.
func TestApprovalIsForTheCallersThatWereShown(t *testing.T) {
	h := newHarness(t)
	call := tool("pay", `{}`)
	first, _ := h.approved(call, nil) // by cy
	second := h.asked(call, as("second", "eve"))
	for name, tt := range map[string]struct {
		who  func(*approval.OpenInput)
		want string
	}{
		"who was approved": {as("runner", ""), first.ID},
		"who asks anew":    {as("second", "eve"), second.ID},
		"the approver's":   {as("third", "cy"), second.ID}, // pending, so it is shared
	} {
		if out := h.open(call, tt.who); out.Request.ID != tt.want || !out.Shared {
			t.Errorf("%s: got %s, shared %v, want %s", name, out.Request.ID, out.Shared, tt.want)
		}
	}
	if h.request(first.ID).AskedBy(approval.Asker{Token: "second", Person: "eve"}) {
		t.Error("a caller who was not shown got the approval")
	}
	works(h.consume(first, call, "k"))(t)
	if out := h.open(call); out.Request.ID != second.ID {
		t.Errorf("got %s, want to join %s", out.Request.ID, second.ID)
	}
	h.history()
}

func TestJoiningVoidsEarlierApprovals(t *testing.T) {
	h := newHarness(t)
	call := tool("trade", `{}`)
	r := h.asked(call)
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	h.open(call, as("second", ""))
	now := h.request(r.ID)
	if got := now.ApprovedBy(); len(got) > 0 {
		t.Errorf("approvals of %v count for a caller that they were not shown", got)
	}
	_, err := h.tryVote(r, "bob", approval.Approve, func(in *approval.VoteInput) { in.IfVersion = r.Version })
	h.fails(err, approval.ErrVersion) // from a page that showed one caller
	_, err = h.tryVote(r, "bob", approval.Approve)
	h.fails(err, approval.ErrVersion) // from a message that showed one caller

	both := func(in *approval.VoteInput) { in.Also = 1 }
	h.vote(r, "bob", approval.Approve, approval.VoteCounted, both)
	h.vote(r, "ann", approval.Approve, approval.VoteApproved, both)
	for _, who := range []approval.Asker{runner(), {Token: "second"}} {
		if !h.request(r.ID).AskedBy(who) {
			t.Errorf("%s does not share the approval", who.Token)
		}
	}
	h.history()
}

// TestJoiningEndsApprovalByTimeout: a timeout that was accepted for one caller does not approve the
// call for another one.
func TestJoiningEndsApprovalByTimeout(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("drift", `{}`))
	h.open(tool("drift", `{}`), as("second", ""))
	h.pass(time.Hour)
	h.tick(1)
	h.is(r.ID, approval.Expired, approval.ByDeadline)
	h.history()
}

// TestEditedRequestIsFoundByTheOriginalCall: an edited request is found by the original call, with
// any idempotency key and for every asker.
func TestEditedRequestIsFoundByTheOriginalCall(t *testing.T) {
	h := newHarness(t)
	call := tool("trade", `{"n":5}`)
	r := h.asked(call, key("t1"))
	h.open(call, as("second", ""))
	r = h.request(r.ID)
	h.edit(r, "ann", `{"n":4}`)
	h.edit(h.request(r.ID), "bob", `{"n":3}`)

	for name, out := range map[string]*approval.Opened{
		"the caller":                 h.open(call, key("t2")),
		"with the first edit":        h.open(tool("trade", `{"n":4}`), key("t3")),
		"the one who joined":         h.open(call, as("second", ""), key("t2")),
		"without a key":              h.open(call),
		"asked as the edit has it":   h.open(tool("trade", `{"n":3}`)),
		"after the restart, a fresh": func() *approval.Opened { h.start(); return h.open(call) }(),
	} {
		if !out.Shared || out.Request.ID != r.ID {
			t.Errorf("%s: asked again: %+v", name, out.Request)
		}
	}
	other := h.asked(call, as("third", ""))
	elsewhere := *call
	elsewhere.Session = "s2"
	h.asked(&elsewhere)

	both := func(in *approval.VoteInput) { in.Also = 1 }
	h.vote(h.request(r.ID), "ann", approval.Approve, approval.VoteApproved, both)
	if out := h.open(call); out.Request.ID != r.ID || out.Request.State != approval.Approved {
		t.Errorf("got %+v, want the edited approval, not %s", out.Request, other.ID)
	}
	works(h.s.Consume(context.Background(), approval.ConsumeInput{
		Tenant: "t", ID: r.ID, Asker: runner(), Binding: h.request(r.ID).Binding(), Key: "k",
	}))(t)
	if out := h.open(call); out.Request.ID != other.ID { // the run was used; the third caller's is found
		t.Errorf("got %+v", out.Request)
	}
	h.history()
}

func TestOpenIsSharedByFiftyMore(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`))
	for i := range 52 {
		h.open(tool("pay", `{}`), as(fmt.Sprintf("r%d", i), "")) // the answer is still the same request
	}
	if now := h.request(r.ID); len(now.Requester.Also) != 50 || !now.AskedBy(approval.Asker{Token: "r49"}) ||
		now.AskedBy(approval.Asker{Token: "r50"}) {
		t.Errorf("got %v", now.Requester.Also)
	}
	h.history()
}

// TestOpenLetsTimeActFirst: an overdue request is not shared, because it expires first.
func TestOpenLetsTimeActFirst(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("vault", `{}`))
	h.pass(time.Hour)
	if next := h.asked(tool("vault", `{}`)); next.ID == r.ID {
		t.Error("an expired request was shared")
	}
	h.is(r.ID, approval.Expired, approval.ByDeadline)
	h.happened("request_opened", "request_expired", "request_opened")
}

func key(k string) func(*approval.OpenInput) { return func(in *approval.OpenInput) { in.Key = k } }

func TestOpenIdempotency(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`), key("k"))
	h.vote(r, "eve", approval.Approve, approval.VoteApproved)
	works(h.consume(r, tool("pay", `{}`), "c"))(t)
	again := h.open(tool("pay", `{}`), key("k")) // the answer was lost: the same request, although it has ended
	if !again.Shared || again.Request.ID != r.ID || again.Request.State != approval.Consumed {
		t.Errorf("got %+v", again)
	}
	changed := tool("pay", `{}`)
	changed.Annotations = map[string]bool{"destructiveHint": false}
	remote := tool("pay", `{}`)
	remote.Remote = resolve.RemoteYes
	session := tool("pay", `{}`)
	session.Session = "s2"
	for _, call := range []*resolve.Call{tool("pay", `{ }`), tool("vault", `{}`), changed, remote, session} {
		_, err := h.tryOpen(call, key("k"))
		h.fails(err, approval.ErrKeyReuse)
	}
	h.pass(25 * time.Hour)
	if next := h.asked(tool("pay", `{}`), key("k")); next.ID == r.ID {
		t.Error("the key was known for too long")
	}
	h.history()
}

func TestOpenReplaces(t *testing.T) {
	h := newHarness(t)
	replaces := func(id string) func(*approval.OpenInput) { return func(in *approval.OpenInput) { in.Replaces = id } }
	first := h.asked(tool("pay", `{"n":1}`))
	second := h.asked(tool("pay", `{"n":2}`), replaces(first.ID))
	old := h.is(first.ID, approval.Cancelled, approval.BySupersede)
	if old.Replaced != second.ID || second.Replaces != first.ID {
		t.Errorf("%q is replaced by %q, %q replaces %q", old.ID, old.Replaced, second.ID, second.Replaces)
	}
	third := h.asked(tool("pay", `{"n":2}`), replaces(second.ID)) // the same call, replacing its own request
	h.is(second.ID, approval.Cancelled, approval.BySupersede)
	if out := h.open(tool("quote", `{}`), replaces(third.ID)); out.Word() != "allow" {
		t.Errorf("got %+v", out)
	}
	h.is(third.ID, approval.Cancelled, approval.BySupersede) // whatever the decision on the new call is
	approved, _ := h.approved(tool("pay", `{"n":4}`), nil)
	h.asked(tool("pay", `{"n":5}`), replaces(approved.ID))
	h.is(approved.ID, approval.Expired, approval.BySupersede)

	overdue := h.asked(tool("vault", `{"n":1}`))
	h.pass(time.Hour)
	h.asked(tool("pay", `{"n":6}`), replaces(overdue.ID))
	h.is(overdue.ID, approval.Expired, approval.ByDeadline)

	_, err := h.tryOpen(tool("pay", `{"n":9}`), replaces("apr_nothing"))
	h.wrongField(err, "replaces")
	stranger := tool("pay", `{"n":9}`)
	stranger.Principal = "somebody"
	_, err = h.tryOpen(stranger, replaces(h.asked(tool("pay", `{"n":8}`)).ID))
	h.wrongField(err, "replaces")
	h.history()
}

// TestOpenAtOnce: runtimes that ask for one call at the same time share one request (threat 26).
func TestOpenAtOnce(t *testing.T) {
	h := newHarness(t)
	ids, wg := make([]string, 64), sync.WaitGroup{}
	for i := range ids {
		wg.Go(func() {
			if out, err := h.tryOpen(tool("pay", `{}`)); err == nil {
				ids[i] = out.Request.ID
			}
		})
	}

	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("got %q and %q", id, ids[0])
		}
	}
	h.history()
}

func TestFreeze(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	approved, _ := h.approved(tool("pay", `{}`), nil)
	lost, _ := h.approved(tool("pay", `{"lost":1}`), nil)
	works(h.consume(lost, tool("pay", `{"lost":1}`), "k"))(t)
	if err := h.s.Freeze(ctx, "t", "desk", "ann", "\xff\x00"+strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal("a freeze must not fail for its reason:", err)
	}
	for _, name := range []string{"quote", "pay", "wire"} {
		if out := h.open(tool(name, `{}`)); out.Outcome != resolve.Deny || out.Denied != "frozen" ||
			len(out.Decision.Reasons) == 0 {
			t.Errorf("%s: got %+v", name, out)
		}
	}

	if d, err := h.s.Decide(ctx, "t", "desk", tool("quote", `{}`)); err != nil || d.Outcome != resolve.Deny {
		t.Errorf("got %+v, %v", d, err)
	}
	_, err := h.consume(approved, tool("pay", `{}`), "k")
	h.fails(err, approval.ErrFrozen)
	_, err = h.consume(lost, tool("pay", `{"lost":1}`), "k") // a repetition after a lost answer is refused, too
	h.fails(err, approval.ErrFrozen)
	must(t, h.s.Freeze(ctx, "t", "", "ann", ""))
	must(t, h.s.Thaw(ctx, "t", "desk", "ann", "fine"))
	_, err = h.consume(approved, tool("pay", `{}`), "k")
	h.fails(err, approval.ErrFrozen)
	must(t, h.s.Thaw(ctx, "t", "", "ann", "fine"))
	h.fails(h.s.Thaw(ctx, "t", "", "ann", ""), approval.ErrNotFound)
	if _, err = h.consume(approved, tool("pay", `{}`), "k"); err != nil {
		t.Error(err)
	}
	if d, err := h.s.Decide(ctx, "t", "desk", tool("quote", `{}`)); err != nil || d.Outcome != resolve.Allow {
		t.Errorf("got %+v, %v", d, err)
	}
	h.history()
}

func TestRecord(t *testing.T) {
	h := newHarness(t)
	if err := h.s.Record(
		context.Background(),
		"t",
		"token_created",
		"tok_1",
		"ann",
		map[string]any{"scopes": []any{"read"}},
	); err != nil {
		t.Fatal(err)
	}

	if err := h.s.Record(context.Background(), "t", "", "", "", nil); err == nil {
		t.Error("an event without a type was recorded")
	}
	h.happened("token_created")
}
