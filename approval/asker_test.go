package approval_test

import (
	"context"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// TestAnAskerIsNeverEmpty: every method of the service requires the name of the asker.
func TestAnAskerIsNeverEmpty(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	r := h.asked(tool("pay", `{}`))
	nobody := approval.Asker{Person: "cy", Principal: "pat@acme"}

	_, err := h.tryOpen(tool("pay", `{"n":2}`), func(in *approval.OpenInput) { in.Asker = nobody })
	h.wrongField(err, "asker.token")
	_, err = h.tryAsk("k", func(in *approval.AskInput) { in.Asker = nobody })
	h.wrongField(err, "asker.token")
	_, err = h.s.Consume(ctx, approval.ConsumeInput{
		Tenant:  "t",
		ID:      r.ID,
		Asker:   nobody,
		Binding: r.Binding(),
		Key:     "k",
	})
	h.wrongField(err, "asker.token")
	for _, who := range []approval.Asker{nobody, {}} {
		_, err = h.s.Own(ctx, "t", r.ID, who)
		h.fails(err, approval.ErrNotFound)
	}

	_, err = h.tryOpen(tool("pay", `{"n":3}`), func(in *approval.OpenInput) { in.Asker.Principal = "ann" })
	h.wrongField(err, "asker.principal") // the call has the principal pat
}

// TestOneNameOfTwoPeopleIsTwoAskers: if a token name moves to another owner, the new owner does not
// get the requests of the old one.
func TestOneNameOfTwoPeopleIsTwoAskers(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	bens := as("shared", "bob")
	r := h.asked(tool("pay", `{}`), bens)
	h.vote(r, "cy", approval.Approve, approval.VoteApproved)

	cys := approval.Asker{Token: "shared", Person: "cy"}
	_, err := h.s.Own(ctx, "t", r.ID, cys)
	h.fails(err, approval.ErrNotFound)
	_, err = h.s.Consume(ctx, approval.ConsumeInput{
		Tenant:  "t",
		ID:      r.ID,
		Asker:   cys,
		Binding: r.Binding(),
		Key:     "k",
	})
	h.fails(err, approval.ErrNotFound)
	if out := h.open(tool("pay", `{}`), as("shared", "cy")); h.request(r.ID).AskedBy(cys) || out.Shared {
		t.Errorf("who approved it shares its permit: %+v", out)
	}

	bobs := approval.Asker{Token: "shared", Person: "bob"}
	if _, err := h.s.Consume(ctx, approval.ConsumeInput{
		Tenant:  "t",
		ID:      r.ID,
		Asker:   bobs,
		Binding: r.Binding(),
		Key:     "k",
	}); err != nil {
		t.Error(err)
	}

	h.history()
}

// TestStandingApprovalsAndKeysAreOfOneAsker: standing approvals and idempotency keys belong to one
// asker, too.
func TestStandingApprovalsAndKeysAreOfOneAsker(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`), as("shared", "bob"), key("k"))
	h.vote(r, "cy", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 5}
	})
	if out := h.open(tool("pay", `{}`), as("shared", "bob")); !out.Granted() {
		t.Fatalf("got %+v", out)
	}
	for name, other := range map[string]func(*approval.OpenInput){
		"another person's": as("shared", "eve"),
		"nobody's":         as("shared", ""),
		"another name":     as("other", "bob"),
	} {
		if out := h.open(tool("pay", `{}`), other); out.Granted() {
			t.Errorf("%s token uses the standing approval", name)
		}
	}

	if out := h.open(tool("pay", `{"n":9}`), as("shared", "eve"), key("k")); out.Outcome != resolve.Ask || out.Shared {
		t.Errorf("a key is shared by two askers: %+v", out)
	}
	h.history()
}

// TestAPrincipalNobodyKnowsBarsOneMorePerson: a principal with an impossible name is refused; an
// unknown principal needs one more approver.
func TestAPrincipalNobodyKnowsBarsOneMorePerson(t *testing.T) {
	h := newHarness(t)
	acting := func(name, principal string) *resolve.Call {
		c := tool(name, `{}`)
		c.Principal = principal
		return c
	}
	for _, name := range []string{"pat ", " pat", "pat\u00a0doe", "ｐａｔ", "pаt", "p\u200bat", "pat\u202e", "pat\x7f"} {
		_, err := h.tryOpen(acting("pay", name))
		h.wrongField(err, "call.principal")
		_, err = h.tryAsk("k", func(in *approval.AskInput) { in.Call.Principal = name })
		h.wrongField(err, "call.principal")
	}

	// cy asks for themselves, under a name that the directory doesn't contain.
	for _, name := range []string{"cy.", "mailto:cy@acme", "cy+x", "slack:UNKNOWN", "су"} {
		r := h.asked(acting("pay", name))
		if !r.Requester.Unknown || approval.Summarize(r).Needed != 2 {
			t.Fatalf("%s: got %+v", name, r)
		}
		h.vote(r, "cy", approval.Approve, approval.VoteCounted)
		h.vote(r, "bob", approval.Approve, approval.VoteApproved)
	}

	two := h.asked(acting("trade", "zoe"))
	h.vote(two, "ann", approval.Approve, approval.VoteCounted)
	h.vote(two, "bob", approval.Approve, approval.VoteCounted) // two people of risk are enough
	h.vote(two, "cy", approval.Approve, approval.VoteApproved)

	known := h.asked(acting("trade", "pat@acme"))
	if known.Requester.Unknown {
		t.Error("pat is known")
	}
	h.history()
}

// TestAcceptUnknownPrincipals: if the configuration accepts unknown principals, they need no
// further approver.
func TestAcceptUnknownPrincipals(t *testing.T) {
	h := newHarness(t)
	h.cfg.AcceptUnknown = func(tenant string) bool { return tenant == "t" }
	h.start()
	c := tool("pay", `{}`)
	c.Principal = "client-7"
	h.vote(h.asked(c), "cy", approval.Approve, approval.VoteApproved)
	h.history()
}

// TestAStandingApprovalIsHeldToWhoThePrincipalIsNow: a standing approval does not cover a call that
// its approvers may no longer approve, because the directory now resolves the principal to one of
// them. It does not cover a call that now needs more people than approved it, because the directory
// no longer contains the principal.
func TestAStandingApprovalIsHeldToWhoThePrincipalIsNow(t *testing.T) {
	for name, c := range map[string]struct {
		accepts bool              // unknown principals need no further approver
		alias   map[string]string // names in the directory, set later
		want    string
	}{
		"as it was":                          {alias: map[string]string{"pat@acme": "pat"}, want: "granted"},
		"who gave it":                        {alias: map[string]string{"pat@acme": "cy"}, want: "pending"},
		"nobody, who takes one more":         {alias: map[string]string{}, want: "pending"},
		"nobody, where that takes none more": {accepts: true, alias: map[string]string{}, want: "granted"},
	} {
		h := newHarness(t)
		h.cfg.AcceptUnknown = func(string) bool { return c.accepts }
		h.start()
		h.people.set(func(d *directory) { d.alias["pat@acme"] = "pat" })
		call := tool("spend", `{"amount":1}`)
		call.Principal = "pat@acme"
		h.approved(call, &approval.GrantOffer{MaxUses: 5})
		h.people.set(func(d *directory) { d.alias = c.alias })
		if out := h.open(call); out.Word() != c.want {
			t.Errorf("%s: got %s, want %s", name, out.Word(), c.want)
		}
		h.history()
	}
}
