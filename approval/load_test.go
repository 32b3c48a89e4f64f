package approval_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// wants opens a call with the given arguments for a token.
func (h *harness) wants(token, tool, args string) (*approval.Opened, error) {
	return h.s.Open(h.t.Context(), approval.OpenInput{
		Tenant: "t",
		Asker:  approval.Asker{Token: token},
		Agent:  "desk",
		Call:   &resolve.Call{Kind: resolve.Tool, Tool: tool, Args: []byte(args)},
	})
}

// limited checks that an error is a LimitError that contains the words.
func limited(t *testing.T, err error, words ...string) {
	t.Helper()
	var limit *approval.LimitError
	if !errors.As(err, &limit) || limit.After <= 0 {
		t.Fatalf("got %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestOpenRequestsOfATokenAndOfATenantEnd(t *testing.T) {
	h := newHarness(t)
	h.cfg.Quota = approval.Quota{Token: approval.Amounts{Open: 3}, Tenant: approval.Amounts{Open: 5}}
	h.start()
	var first *approval.Opened
	for i := range 3 {
		out, err := h.wants("one", "pay", fmt.Sprintf(`{"n":%d}`, i))
		must(t, err)
		if first == nil {
			first = out
		}
	}

	before := len(h.history())
	_, err := h.wants("one", "pay", `{"n":9}`)
	limited(t, err, "this token has 3 requests open", "wait until people have decided", "cancel")
	if after := len(h.history()); after != before {
		t.Errorf("%d entries tell of what was refused", after-before)
	}
	if again, err := h.wants("one", "pay", `{"n":0}`); err != nil || !again.Shared {
		t.Errorf("what is open already: %+v, %v", again, err)
	}
	if out, err := h.wants("one", "quote", `{"n":9}`); err != nil || out.Word() != "allow" {
		t.Errorf("what nobody is asked about: %+v, %v", out, err)
	}
	for i := range 2 {
		works(h.wants("two", "pay", fmt.Sprintf(`{"m":%d}`, i)))(t)
	}
	_, err = h.wants("two", "pay", `{"m":9}`)
	limited(t, err, "the tenant has 5 requests open")
	_, err = h.s.Ask(t.Context(), approval.AskInput{
		Tenant:   "t",
		Asker:    approval.Asker{Token: "three"},
		Agent:    "desk",
		Key:      "k",
		Call:     &resolve.Call{Kind: resolve.Tool, Tool: "quote"},
		Question: approval.Question{Asker: "files", Prompt: "Go on?", Choices: []string{"Yes", "No"}},
	})
	limited(t, err, "the tenant has 5 requests open")
	h.start() // the open requests are read from the store
	_, err = h.wants("one", "pay", `{"n":9}`)
	limited(t, err, "this token has 3 requests open")
	works(h.s.Cancel(t.Context(), "t", first.Request.ID, "one", ""))(t)
	h.pass(2 * time.Second)
	if _, err := h.wants("one", "pay", `{"n":9}`); err != nil {
		t.Errorf("one was taken back: %v", err)
	}
}

// TestRuntimesDontFillTheShareOfAdministration: runtimes that use up a tenant's open requests or
// hourly bytes can't keep administrators from asking to lift a freeze. Administrators have their
// own limit.
func TestRuntimesDontFillTheShareOfAdministration(t *testing.T) {
	h := newHarness(t)
	h.cfg.Quota = approval.Quota{Tenant: approval.Amounts{Open: 2, BytesPerHour: 30_000}}
	h.start()
	for _, token := range []string{"one", "two"} {
		works(h.wants(token, "pay", fmt.Sprintf(`{"by":%q,"text":"%s"}`, token, strings.Repeat("x", 12_000))))(t)
	}
	_, err := h.wants("three", "pay", `{"n":9}`)
	limited(t, err)
	admin := approval.AdministrationAsker("root", "").Token
	for i := range 2 {
		works(h.wants(admin, "pay", fmt.Sprintf(`{"m":%d,"text":"%s"}`, i, strings.Repeat("x", 5_000))))(t)
	}
	_, err = h.wants(admin, "pay", `{"m":9}`)
	limited(t, err, "2 requests open")
	h.start() // the open requests are read from the store
	_, err = h.wants(admin, "pay", `{"m":9}`)
	limited(t, err, "2 requests open")
}

func TestBytesOfOpenRequestsEnd(t *testing.T) {
	h := newHarness(t)
	h.cfg.Quota = approval.Quota{Token: approval.Amounts{OpenBytes: 100_000}}
	h.start()
	large := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 60_000))
	}
	works(h.wants("one", "pay", large(1)))(t)
	_, err := h.wants("one", "pay", large(2))
	limited(t, err, "bytes of requests open, and may have 100000")
	if _, err := h.wants("two", "pay", large(2)); err != nil {
		t.Errorf("another token: %v", err)
	}
	if _, err := h.wants("one", "pay", `{"n":3}`); err != nil {
		t.Errorf("a small one: %v", err)
	}
	if _, err := h.wants("three", "pay", fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", 200_000))); err != nil {
		t.Errorf("a single one that is larger than the part: %v", err)
	}
}

func TestBytesRecordedInAnHourEnd(t *testing.T) {
	h := newHarness(t)
	h.cfg.Quota = approval.Quota{
		Token:  approval.Amounts{BytesPerHour: 100_000},
		Tenant: approval.Amounts{BytesPerHour: 150_000},
	}
	h.start()
	fill := func(token, tool string) (n int, err error) {
		for ; n < 100 && err == nil; n++ {
			_, err = h.wants(token, tool, fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 9_000)))
		}
		return n - 1, err
	}
	n, err := fill("one", "quote") // allowed without asking, but recorded
	limited(t, err, "this token has had as many bytes of calls recorded as it may in an hour (100000)")
	if n < 8 || n > 10 {
		t.Errorf("%d calls were recorded", n)
	}
	before := len(h.history())
	_, err = h.wants("one", "wire", `{"text":"`+strings.Repeat("x", 9_000)+`"}`)
	if err == nil || len(h.history()) != before {
		t.Errorf("denied and recorded all the same: %v", err)
	}
	n, err = fill("two", "wire")
	limited(t, err, "the tenant has had as many bytes")
	if n < 3 || n > 6 {
		t.Errorf("%d calls of another token were recorded", n)
	}
	h.pass(30 * time.Minute)
	if n, _ = fill("one", "quote"); n < 3 || n > 6 {
		t.Errorf("after half an hour %d calls were recorded", n)
	}
}

func TestEditsOfOneRequestEnd(t *testing.T) {
	h := newHarness(t)
	text := func(n int) string {
		return fmt.Sprintf(`{"amount":%d,"text":"%s"}`, n, strings.Repeat("x", 3<<19))
	}
	out, err := h.wants("one", "trade", text(0))
	must(t, err)
	r := out.Request
	for n := 1; n < 10; n++ {
		edited, err := h.s.Edit(t.Context(), approval.EditInput{
			Tenant:  "t",
			ID:      r.ID,
			Binding: r.Binding(),
			Person:  []string{"ann", "bob"}[n%2],
			Args:    text(n),
			Channel: "cli",
			Full:    true,
		})
		var input *approval.InputError
		switch {
		case errors.As(err, &input):
			if n != 3 || !strings.Contains(err.Error(), "in all edits of one request") {
				t.Errorf("edit %d: %v", n, err)
			}
			return
		case err != nil:
			t.Fatal(err)
		}

		r = edited.Voted.Request
	}

	t.Error("there is no end to edits")
}
