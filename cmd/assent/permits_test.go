package main

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/openapi"
)

// withPermits returns a running service whose tool trade checks permits.
func withPermits(t *testing.T, tenant string) *testServer {
	t.Helper()
	return startWith(t, withFiles(t, deskFiles()), func(c *config.Serve) {
		c.Tenants[0].Name = tenant
		c.Tenants[0].Permits = []config.PermitAudience{
			{Audience: "broker", Targets: []string{"tool trade"}, Lifetime: time.Minute},
		}
	})
}

// broker returns the tool. It knows only the address of the service.
func (h *testServer) broker(t *testing.T) *permit.Verifier {
	t.Helper()
	v, err := permit.NewVerifier(permit.Config{Issuer: h.ready.URL + "/permits/default", Audience: "broker"})
	must.Do(t, err)
	return v
}

// approved returns a call that alice approved.
func (h *testServer) approved(t *testing.T, call string) *approval.Request {
	t.Helper()
	r := h.ask(t, call)
	body := openapi.VoteBody{Verdict: approval.Approve, Binding: r.Binding(), ShownFully: true}
	if _, err := h.client(t, "alice").Vote(t.Context(), r.ID, r.Version, body); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAToolChecksThatPeopleApproved: what consume answers with lets the
// tool run the call, once, and nothing else.
func TestAToolChecksThatPeopleApproved(t *testing.T) {
	h := withPermits(t, "default")
	const call = `{"kind":"tool","tool":"trade","args":{"n":1}}`
	r := h.approved(t, call)
	taken, err := h.client(t, "runtime").Consume(t.Context(), r.ID, []byte(call), "mine")
	must.Do(t, err)
	again, err := h.client(t, "runtime").Consume(t.Context(), r.ID, []byte(call), "mine")
	if err != nil || again.Permit.Signed != taken.Permit.Signed {
		t.Errorf("a lost answer, asked for again: %+v, %v", again, err)
	}

	tool := h.broker(t)
	var refused *permit.RefusedError
	_, err = tool.Verify(t.Context(), taken.Permit.Signed, "tool trade", []byte(`{"n":2}`))
	if !errors.As(err, &refused) || refused.Reason != permit.OtherArguments {
		t.Errorf("other arguments: %v", err)
	}
	p, err := tool.Verify(t.Context(), taken.Permit.Signed, "tool trade", []byte(`{"n":1}`))
	if err != nil || p.Request != r.ID || p.Agent != "desk" || p.Binding != r.Binding() {
		t.Fatalf("%+v, %v", p, err)
	}
	_, err = tool.Verify(t.Context(), taken.Permit.Signed, "tool trade", []byte(`{"n":1}`))
	if !errors.As(err, &refused) || refused.Reason != permit.Used {
		t.Errorf("a second run: %v", err)
	}
	if read := h.request(t, r.ID); read.Permit.Signed != "" {
		t.Error("who reads the request gets the permit")
	}
}

// TestACallThatNoPermitCanHoldStaysApproved: the runtime gets an error, and the approval can still
// be used.
func TestACallThatNoPermitCanHoldStaysApproved(t *testing.T) {
	h := withPermits(t, "default")
	const call = `{"kind":"tool","tool":"trade","args":{"n":9007199254740993}}`
	r := h.approved(t, call)
	_, err := h.client(t, "runtime").Consume(t.Context(), r.ID, []byte(call), "mine")
	if err == nil || !strings.Contains(err.Error(), "9007199254740993 is beyond 2^53") {
		t.Errorf("%v", err)
	}
	if now := h.request(t, r.ID); now.State != approval.Approved {
		t.Errorf("it is %s", now.State)
	}
}

// TestNobodySignsForATenantWithoutTools.
func TestNobodySignsForATenantWithoutTools(t *testing.T) {
	h := start(t, "")
	status, _ := fetched(t, http.MethodGet, h.ready.API+"/permits/default"+permit.KeysPath, "", "")
	if status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
}

// TestTheContractOfPermitsNamesEveryReason and every claim.
func TestTheContractOfPermitsNamesEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/contracts/permits.md")
	must.Do(t, err)
	words := []string{
		"iss", "aud", "sub", "jti", "iat", "exp", "binding", "target", "arguments", "principal", "alg", "kid", "typ",
		permit.Type, permit.Header,
	}
	for _, reason := range permit.Reasons() {
		words = append(words, string(reason))
	}
	for _, word := range words {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("docs/contracts/permits.md does not say `%s`", word)
		}
	}
}
