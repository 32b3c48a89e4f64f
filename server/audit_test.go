package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

func TestAuditVerifiesOffline(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	c := h.client(mara)
	if a := h.do("GET", "/v1/audit/checkpoint", mara, "").must(200); a.get("size") != 0.0 ||
		a.str("checkpoint") != "" ||
		a.str("public_key") != h.signer.PublicKey() {
		t.Errorf("got %s", a.text)
	}
	h.do("GET", "/v1/audit/export", mara, "").must(404)
	for i := range 3 {
		r := h.ask(rt, fmt.Sprintf(`{"amount":%d,"note":"<&> é"}`, i))
		h.vote(mara, r, "approve").must(200)
	}
	n := h.size()
	checkpoint, err := c.Checkpoint(t.Context())
	if err != nil || checkpoint.Size < int64(n) {
		t.Fatalf("got %+v, %v", checkpoint, err)
	}
	var file bytes.Buffer
	must(t, c.Export(t.Context(), &file))
	report, err := ledger.Verify(bytes.NewReader(file.Bytes()), ledger.VerifyOptions{PublicKey: h.signer.PublicKey()})
	if err != nil || !strings.Contains(file.String(), `<&> é`) {
		t.Fatalf("the export does not verify: %v %+v", err, report)
	}
	h.do("HEAD", "/v1/audit/export", mara, "").must(200)
	for index := range int64(n) {
		proof, err := c.Proof(t.Context(), index)
		must(t, err)
		text, err := json.Marshal(proof)
		must(t, err)
		if _, err := ledger.VerifyProof(text, h.signer.PublicKey()); err != nil {
			t.Errorf("entry %d: %v", index, err)
		}
	}

	h.do("GET", "/v1/audit/proof/99", mara, "").must(404)
	h.do("GET", "/v1/audit/proof/x", mara, "").must(400)
	h.do("GET", "/v1/audit/proof/-1", mara, "").must(400)
}

// slowSealer is a store in which nothing is sealed in the background. If
// problem is set, nothing is sealed on request either.
type slowSealer struct {
	store.Store
	problem error
}

func (*slowSealer) Seal(context.Context, int, func(ledger.Checkpoint) ([]byte, error)) (int, error) {
	return 0, nil
}

func (s *slowSealer) SealTenant(
	ctx context.Context, tenant string, sign func(ledger.Checkpoint) ([]byte, error),
) (int, error) {
	if s.problem != nil {
		return 0, s.problem
	}
	return s.Store.SealTenant(ctx, tenant, sign)
}

// TestExportHoldsWhatWasRecordedBefore covers entries that the background work has not
// sealed yet. A log that can't be sealed is exported up to its last checkpoint only if it
// was tampered with.
func TestExportHoldsWhatWasRecordedBefore(t *testing.T) {
	var sealer *slowSealer
	h := newHarness(t, func(c *server.Config) {
		sealer = &slowSealer{Store: c.Store}
		c.Store = sealer
	})
	rt, mara := h.runtime(), h.voter("mara")
	export := func() string { return h.do("GET", "/v1/audit/export", mara, "").must(200).text }
	first, second := h.ask(rt, `{"amount":1}`), (*approval.Request)(nil)
	text := export()
	report, err := ledger.Verify(strings.NewReader(text), ledger.VerifyOptions{PublicKey: h.signer.PublicKey()})
	if err != nil || report.Entries == 0 || !strings.Contains(text, first.ID) {
		t.Fatalf("%v, %+v\n%s", err, report, text)
	}

	second = h.ask(rt, `{"amount":2}`)
	sealer.problem = store.ErrUnavailable
	h.do("GET", "/v1/audit/export", mara, "").must(503)
	sealer.problem = &store.TamperedError{Tenant: "acme", What: "the ledger", Problem: "cut"}
	if text = export(); !strings.Contains(text, first.ID) || strings.Contains(text, second.ID) {
		t.Errorf("got\n%s", text)
	}
}

func TestDeliveries(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	err := h.store.Update(t.Context(), "acme", func(tx approval.Tx) error {
		record, err := ledger.Entry{
			Time:   time.Now(),
			Tenant: "acme",
			Type:   "mark",
		}.Seal(strings.NewReader(strings.Repeat("salt", 100)))
		tx.Append(record, approval.Delivery{Target: "webhook:ops", Event: "mark", Subject: "x", Payload: `{"a":1}`})
		return err
	})
	must(t, err)
	if a := h.do("GET", "/v1/deliveries?state=waiting", admin, "").must(200); !strings.Contains(a.text, "webhook:ops") {
		t.Errorf("got %s", a.text)
	}

	now := h.clock.Now().Add(time.Second)
	jobs, err := h.store.Claim(t.Context(), "me", []string{"webhook:ops"}, now, time.Minute, 1)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("got %v, %v", jobs, err)
	}
	must(t, h.store.Bury(t.Context(), "me", jobs[0].ID, "410 Gone", now))
	c := h.client(admin)
	dead, err := c.Deliveries(t.Context(), openapi.DeliveryStateDead, 10)
	if err != nil || len(dead) != 1 || dead[0].Problem != "410 Gone" || dead[0].Payload != `{"a":1}` {
		t.Fatalf("got %+v, %v", dead, err)
	}
	must(t, c.Redeliver(t.Context(), dead[0].ID))
	if a := h.do("GET", "/v1/deliveries", admin, "").must(200); a.text != "{\"deliveries\":[]}\n" {
		t.Errorf("got %s", a.text)
	}
	h.do("POST", "/v1/deliveries/999/redeliver", admin, "").must(404)
	h.do("POST", "/v1/deliveries/x/redeliver", admin, "").must(400)
	h.do("GET", "/v1/deliveries?state=lost", admin, "").must(400)
	h.do("GET", "/v1/deliveries?limit=0", admin, "").must(400)
}

// TestDo covers everything that a runtime does, through the client.
func TestDo(t *testing.T) {
	h := newHarness(t)
	c, mara := h.client(h.runtime()), h.client(h.voter("mara"))
	ctx := testwait.Context(t)

	// people calls answer with the one pending request.
	people := func(answer func(*approval.Request)) {
		testwait.Until(t, "somebody is asked", func() bool {
			page, err := mara.Requests(ctx, client.Query{State: "pending", Mine: true})
			if err != nil || len(page.Requests) == 0 {
				return false
			}
			r, err := mara.Request(ctx, page.Requests[0].ID)
			must(t, err)
			answer(r)
			return true
		})
	}
	vote := func(body openapi.VoteBody) func(*approval.Request) {
		return func(r *approval.Request) {
			body.Binding, body.ShownFully = r.Binding(), true
			if _, err := mara.Vote(ctx, r.ID, r.Version, body); err != nil {
				t.Error(err)
			}
		}
	}
	for _, tt := range []struct {
		name, call string
		answer     func(*approval.Request)
		ran        string // the arguments; empty if it must not run
		says       string
	}{
		{"allowed", `{"kind":"tool","tool":"quote","args":{ "s": "A" }}`, nil, `{ "s": "A" }`, ""},
		{"no arguments", `{"kind":"tool","tool":"quote"}`, nil, `{}`, ""},
		{"denied by policy", `{"kind":"tool","tool":"drop"}`, nil, "", "Dropping tables is not delegated"},
		{
			"approved",
			`{"kind":"tool","tool":"trade","args":{ "amount": 1.0 }}`,
			vote(openapi.VoteBody{Verdict: approval.Approve}),
			`{ "amount": 1.0 }`,
			"",
		},
		{
			"denied",
			`{"kind":"tool","tool":"trade","args":{"amount":2}}`,
			vote(openapi.VoteBody{Verdict: approval.Deny, Reason: "too late in the day"}),
			"",
			"mara denied this call: too late in the day.",
		},
		{"denied a moment ago", `{"kind":"tool","tool":"trade","args":{"amount":2}}`, nil, "", "has just denied"},
		{
			"answered",
			`{"kind":"tool","tool":"trade","args":{"amount":3}}`,
			vote(openapi.VoteBody{Verdict: approval.Respond, Response: "Sell tomorrow."}),
			"",
			"A person answered instead: Sell tomorrow.",
		},
		{"edited", `{"kind":"tool","tool":"trade","args":{"amount":4}}`, func(r *approval.Request) {
			if _, err := mara.Edit(ctx, r.ID, r.Version, openapi.EditBody{
				Arguments:  `{"amount": 3.5}`,
				Binding:    r.Binding(),
				ShownFully: true,
			}, false); err != nil {
				t.Error(err)
			}
		}, `{"amount": 3.5}`, ""},
		{"taken back", `{"kind":"tool","tool":"trade","args":{"amount":5}}`, func(r *approval.Request) {
			if _, err := c.Cancel(ctx, r.ID, "never mind"); err != nil {
				t.Error(err)
			}
		}, "", "The request was taken back: never mind."},
		{"no one in time", `{"kind":"tool","tool":"trade","args":{"amount":6}}`, func(*approval.Request) {
			h.clock.Add(25 * time.Hour)
		}, "", "Nobody decided about this call in time"},
	} {
		if strings.HasPrefix(tt.name, "no one") { // tokens must outlive the wait
			c = h.client(h.token(store.Token{
				Name:    "rt",
				Scopes:  []string{"request"},
				Expires: time.Now().Add(99 * time.Hour),
			}))
			mara = h.client(h.token(store.Token{
				Name:    "m",
				Person:  "mara",
				Scopes:  []string{"read", "vote"},
				Expires: time.Now().Add(99 * time.Hour),
			}))
		}

		done := make(chan struct{})
		go func() {
			defer close(done)
			if tt.answer != nil {
				people(tt.answer)
			}
		}()
		var ran []string
		err := c.Do(ctx, "desk", []byte(tt.call), func(args string) error {
			ran = append(ran, args)
			return nil
		})
		<-done
		switch {
		case tt.ran != "" && (err != nil || len(ran) != 1 || ran[0] != tt.ran):
			t.Errorf("%s: ran %q, %v", tt.name, ran, err)
		case tt.ran == "" && (len(ran) > 0 || err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: ran %q, error %v", tt.name, ran, err)
		}
	}
}

// TestTheRestOfTheClient calls the methods that the other tests don't.
func TestTheRestOfTheClient(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	c := h.client(h.runtime())
	mara := h.client(h.voter("mara"))
	root := h.client(h.admin())
	d, err := c.Decide(ctx, "desk", []byte(`{"kind":"tool","tool":"trade"}`))
	if err != nil || d.Outcome.String() != "ask" {
		t.Errorf("got %+v, %v", d, err)
	}
	o, err := c.Open(ctx, "desk", []byte(`{"kind":"tool","tool":"trade","args":{"amount":8}}`), client.OpenOptions{})
	must(t, err)
	o2, err := c.Open(
		ctx,
		"desk",
		[]byte(`{"kind":"tool","tool":"trade","args":{"amount":9}}`),
		client.OpenOptions{Replaces: o.Request.ID},
	)
	if err != nil || o2.Request.Replaces != o.Request.ID {
		t.Fatalf("got %+v, %v", o2, err)
	}
	body := openapi.VoteBody{
		Verdict:    approval.Approve,
		ShownFully: true,
		Binding:    o2.Request.Binding(),
		Grant:      openapi.GrantOffer{MaxAge: "1h"},
	}
	voted, err := mara.Vote(ctx, o2.Request.ID, 1, body)
	if err != nil || voted.Grant == nil {
		t.Fatalf("got %+v, %v", voted, err)
	}
	if _, err := c.ConsumeBinding(ctx, o2.Request.ID, "sha256:0", ""); client.Code(err) != openapi.CodeBindingMismatch {
		t.Errorf("got %v", err)
	}
	if grants, err := mara.Grants(ctx, false); err != nil || len(grants) != 1 {
		t.Errorf("got %v, %v", grants, err)
	}
	if g, err := mara.Grant(ctx, voted.Grant.ID); err != nil || g.MaxUses != voted.Grant.MaxUses {
		t.Errorf("got %+v, %v", g, err)
	}
	if g, err := mara.RevokeGrant(ctx, voted.Grant.ID, "enough"); err != nil || g.Revoked == nil {
		t.Errorf("got %+v, %v", g, err)
	}
	if f, err := mara.Freeze(ctx, "desk", "odd"); err != nil || len(f) != 1 {
		t.Errorf("got %v, %v", f, err)
	}
	if err := c.Do(ctx, "desk", []byte(`{"kind":"tool","tool":"quote"}`), nil); err == nil ||
		!strings.Contains(err.Error(), "frozen") {
		t.Errorf("got %v", err)
	}
	_, err = root.LiftFreeze(ctx, "desk", "")
	h.approveAct(err)
	if f, err := root.LiftFreeze(ctx, "desk", ""); err != nil || len(f) != 0 {
		t.Errorf("got %v, %v", f, err)
	}
	if f, err := mara.Freezes(ctx); err != nil || len(f) != 0 {
		t.Errorf("got %v, %v", f, err)
	}
	if s, err := mara.Stats(ctx, time.Now().Add(-time.Hour)); err != nil || len(s.Approvers) != 3 {
		t.Errorf("got %+v, %v", s, err)
	}
	wanted := openapi.TokenBody{Name: "x", Scopes: []openapi.Scope{"read"}, ExpiresIn: "1h"}
	_, err = root.CreateToken(ctx, wanted)
	h.approveAct(err)
	made, err := root.CreateToken(ctx, wanted)
	if err != nil || made.Secret == "" {
		t.Fatalf("got %+v, %v", made, err)
	}
	if all, err := root.Tokens(ctx); err != nil || !slices.ContainsFunc(all, func(t openapi.Token) bool {
		return t.ID == made.Token.ID
	}) {
		t.Errorf("got %v, %v", all, err)
	}
	if err := root.RevokeToken(ctx, made.Token.ID); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "ready", func() bool {
		health, err := c.Ready(ctx)
		return err == nil && health.Ok
	})
	if got, err := mara.History(ctx, o2.Request.ID); err != nil || len(got) == 0 {
		h.size()
		if got, err = mara.History(ctx, o2.Request.ID); err != nil || len(got) == 0 {
			t.Errorf("got %v, %v", got, err)
		}
	}

	if _, err := mara.Request(ctx, ".."); err == nil || client.Code(err) != "" {
		t.Errorf("got %v", err)
	}
}
