package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// limited returns a change of the server's configuration that sets other limits.
func limited(change func(*quota.Limits)) func(*server.Config) {
	return func(c *server.Config) {
		limits := quota.Default(1<<30, 2)
		change(&limits)
		c.Shares = quota.New(limits)
	}
}

// tooMany checks that an answer is 429 and says what to do.
func (a *answer) tooMany(words ...string) {
	a.t.Helper()
	if a.status != http.StatusTooManyRequests || a.str("code") != "too_many" || a.str("next_action") != "retry" ||
		a.header.Get("Retry-After") == "" {
		a.t.Fatalf("status %d: %s", a.status, a.text)
	}
	for _, w := range words {
		if !strings.Contains(a.str("detail"), w) {
			a.t.Errorf("%q does not say %q", a.str("detail"), w)
		}
	}
}

// other returns a token of another tenant than acme.
func (h *harness) other(scopes ...string) string {
	return h.token(store.Token{Tenant: "beta", Name: "rt", Scopes: scopes})
}

// TestBodiesWeighWhatTheyTake checks that the memory counted for a body is no less than its
// processing takes at most, and not much more.
func TestBodiesWeighWhatTheyTake(t *testing.T) {
	h := newHarness(t)
	const size = 1 << 20
	h.ask(h.runtime(), `{"quantity":1}`) // code and tables that the first call loads are not counted
	for name, args := range map[string]string{
		"a text":  `{"a":"` + strings.Repeat("x", size) + `"}`,
		"quotes":  `{"a":"` + strings.Repeat(`\"`, size/2) + `"}`,
		"numbers": `{"a":[` + strings.Repeat("1,", 49_000) + `1]}`,
		"members": "{" + members(40_000) + `"z":1}`,
		"nested": `{"a":` + strings.Repeat(`[`, 100) + strings.Repeat("1,", 40_000) + "1" +
			strings.Repeat("]", 100) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"call":{"kind":"tool","tool":"trade","args":` + args + `}}`)
			took := growth.Footprint(func() {
				call := &resolve.Call{Kind: resolve.Tool, Tool: "trade", Args: bytes.Clone([]byte(args))}
				out, err := h.svc.Open(t.Context(), approval.OpenInput{
					Tenant: "acme",
					Asker:  approval.Asker{Token: "rt"},
					Agent:  "desk",
					Call:   call,
				})
				if err != nil || out.Outcome != resolve.Ask {
					t.Errorf("%+v, %v", out, err)
				}
			})
			weight := server.BodyWeight(body)
			t.Logf("%d bytes take %d and weigh %d", len(body), took, weight)
			if took := int64(took); took > weight+4<<20 || weight > 12*took {
				t.Errorf("it takes %d bytes, and weighs %d", took, weight)
			}
		})
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"m%d":%d,`, i, i)
	}
	return b.String()
}

// upload is a call whose body has not been sent. Its client waits for 100 Continue.
type upload struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (h *harness) upload(token string, length int) *upload {
	h.t.Helper()
	at, err := url.Parse(h.url)
	must(h.t, err)
	conn, err := net.Dial("tcp", at.Host)
	must(h.t, err)
	h.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/agents/desk/decide HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", token, length)
	return &upload{h.t, conn, bufio.NewReader(conn)}
}

// answer reads the next response, which may be 100 Continue.
func (u *upload) answer() *answer {
	u.t.Helper()
	deadline, _ := testwait.Context(u.t).Deadline()
	_ = u.conn.SetReadDeadline(deadline)
	resp, err := http.ReadResponse(u.in, nil)
	must(u.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(u.t, err)
	return &answer{t: u.t, status: resp.StatusCode, header: resp.Header, text: string(text)}
}

// TestMemoryIsTakenBeforeABodyIsRead checks that a token that has begun as many large calls
// as its share allows is refused before it sends more, that other tokens of the tenant and
// other tenants are not affected, and that the calls that it has begun get their answers.
func TestMemoryIsTakenBeforeABodyIsRead(t *testing.T) {
	h := newHarness(t, limited(func(l *quota.Limits) {
		l.Memory = quota.Parts{Total: 400 << 20, Tenant: 300 << 20, Caller: 150 << 20}
	}))
	greedy := h.runtime()
	fellow := h.token(store.Token{Name: "rt2", Scopes: []string{"decide"}})
	other := h.other("decide")
	const size = 2 << 20 // 56 MiB of memory
	var begun []*upload
	for range 2 {
		u := h.upload(greedy, size)
		u.answer().must(http.StatusContinue)
		begun = append(begun, u)
	}
	h.upload(greedy, size).answer().tooMany("this token has as much in work as it may")
	large := `{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`
	for name, token := range map[string]string{"another token": fellow, "another tenant": other} {
		// The uploads are not finished: waiting for them would never end.
		if a := h.do("POST", "/v1/agents/desk/decide", token, large); a.status != http.StatusOK {
			t.Errorf("%s: status %d", name, a.status)
		}
	}

	if a := h.do(
		"POST",
		"/v1/agents/desk/decide",
		greedy,
		`{"kind":"tool","tool":"quote"}`,
	); a.status != http.StatusOK {
		t.Errorf("a small call of the same token: status %d", a.status)
	}

	body := `{"kind":"tool","tool":"quote","args":{"a":"`
	body += strings.Repeat("x", size-len(body)-3) + `"}}`
	for _, u := range begun {
		if _, err := io.WriteString(u.conn, body); err != nil {
			t.Fatal(err)
		}
		u.answer().must(http.StatusOK)
	}

	testwait.Until(t, "the memory is free again", func() bool {
		return h.do("POST", "/v1/agents/desk/decide", greedy, large).status == http.StatusOK
	})
}

// TestBodiesOfUnknownLengthTakeWhatTheyHave checks that a body of unknown length is refused
// when there is no more memory.
func TestBodiesOfUnknownLengthTakeWhatTheyHave(t *testing.T) {
	h := newHarness(t, limited(func(l *quota.Limits) {
		l.Memory = quota.Parts{Total: 110 << 20, Tenant: 100 << 20, Caller: 60 << 20}
	}))
	held := h.upload(h.other("decide"), 2<<20) // 72 MiB with the values that it may have
	held.answer().must(http.StatusContinue)
	rt := h.runtime()
	small := strings.NewReader(`{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", 100_000) + `"}}`)
	if status := h.chunked(rt, small); status != http.StatusOK {
		t.Errorf("a small one: status %d", status)
	}
	large := strings.NewReader(
		`{"kind":"tool","tool":"quote","args":{"a":"` + strings.Repeat("x", 2_000_000) + `"}}`,
	)
	if status := h.chunked(rt, large); status != http.StatusTooManyRequests {
		t.Errorf("a large one: status %d", status)
	}
	held.conn.Close()
}

// chunked asks for a decision with a body of unknown length.
func (h *harness) chunked(token string, body io.Reader) int {
	h.t.Helper()
	req, err := http.NewRequestWithContext(
		h.t.Context(),
		"POST",
		h.url+"/v1/agents/desk/decide",
		io.MultiReader(body),
	)
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestACallMayHave50000Values checks that more values are denied with their number in the
// message.
func TestACallMayHave50000Values(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	call := func(n int) string {
		return `{"kind":"tool","tool":"quote","args":{"a":[` + strings.Repeat("1,", n-3) + `1]}}`
	}
	if a := h.do("POST", "/v1/agents/desk/decide", rt, call(50_000)); a.str("outcome") != "allow" {
		t.Errorf("got %.300s", a.text)
	}
	a := h.do("POST", "/v1/agents/desk/decide", rt, call(50_001))
	if a.status != http.StatusOK || a.str("outcome") != "deny" ||
		!strings.Contains(a.text, `"code":"unreadable_arguments"`) ||
		!strings.Contains(a.text, "50001 values, at most 50000 are read") {
		t.Errorf("got %.300s", a.text)
	}
}

// TestAFieldMayHave10000Values checks the limit for everything other than calls.
func TestAFieldMayHave10000Values(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	id := h.ask(rt, `{"quantity":1}`).ID
	numbers := "[" + strings.Repeat("1,", 400_000) + "1]"
	for path, body := range map[string]string{
		"/v1/requests/" + id + "/cancel": `{"reason":` + numbers + `}`,
		"/v1/agents/desk/decide":         `{"kind":"tool","tool":` + numbers + `}`,
	} {
		a := h.do("POST", path, rt, body)
		if a.status != http.StatusBadRequest || !strings.Contains(a.str("detail"), "values, at most 1000") {
			t.Errorf("%s: %d %.300s", path, a.status, a.text)
		}
	}
}

// TestLargeRequestsAreReadInTurn checks that many readers of a request of 2 MiB share
// memory and turns, and that nobody else has to wait for them.
func TestLargeRequestsAreReadInTurn(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	reader := h.token(store.Token{Name: "reader", Scopes: []string{"read"}})
	other := h.other("decide")
	r := h.ask(rt, `{"a":"`+strings.Repeat(`\"`, 1_000_000)+`"}`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var answered, refused atomic.Int64
	for range 24 {
		all.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/requests/"+r.ID, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+reader)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return // the test is over
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			switch resp.StatusCode {
			case http.StatusOK:
				answered.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}

	took := growth.Footprint(func() {
		for range 50 {
			if a := h.do(
				"POST",
				"/v1/agents/desk/decide",
				other,
				`{"kind":"tool","tool":"quote"}`,
			); a.status != http.StatusOK {
				t.Errorf("status %d", a.status)
			}
		}

		all.Wait()
	})
	if answered.Load() == 0 || answered.Load()+refused.Load() != 24 {
		t.Errorf("%d were answered, %d refused", answered.Load(), refused.Load())
	}
	if took > 600<<20 {
		t.Errorf("it took %d bytes", took)
	}
}

// TestPollsOfOneTokenEnd checks that long polls have a share for each token and tenant. A
// client without a place may still ask without waiting.
func TestPollsOfOneTokenEnd(t *testing.T) {
	h := newHarness(t, limited(func(l *quota.Limits) {
		l.Polls = quota.Parts{Total: 4, Tenant: 3, Caller: 2}
	}))
	rt, fellow := h.runtime(), h.token(store.Token{Name: "reader", Scopes: []string{"read"}})
	r := h.ask(rt, `{"a":1}`)
	path := "/v1/requests/" + r.ID
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	waiting := 0
	wait := func(token string) {
		all.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "GET", h.url+path+"?wait=60s&version=1", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+token)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		})
		waiting++
		testwait.Until(t, "it waits", func() bool {
			return strings.Contains(
				h.do("GET", "/metrics", "", "").text,
				fmt.Sprintf("assent_long_polls %d\n", waiting),
			)
		})
	}
	wait(rt)
	wait(rt)
	h.do("GET", path+"?wait=60s&version=1", rt, "").tooMany("this token has 2 requests that wait for a change",
		"ask again without wait")
	h.do("GET", path, rt, "").must(http.StatusOK)
	wait(fellow)
	h.do("GET", path+"?wait=60s&version=1", fellow, "").tooMany("the tenant has 3 requests")
	text := h.do("GET", "/metrics", "", "").text
	if !strings.Contains(text, `assent_limited_total{share="polls",whose="caller"} 1`) {
		t.Error("the figures don't tell of it")
	}
}

// TestStreamsOfOneTokenEnd checks the same for event streams, and that another tenant has
// its own share.
func TestStreamsOfOneTokenEnd(t *testing.T) {
	h := newHarness(t, limited(func(l *quota.Limits) {
		l.Streams = quota.Parts{Total: 4, Tenant: 3, Caller: 2}
	}))
	mara, fellow := h.voter("mara"), h.token(store.Token{Name: "reader", Scopes: []string{"read"}})
	for range 2 {
		h.stream(t.Context(), mara, "")
	}
	h.do("HEAD", "/v1/events", fellow, "").must(http.StatusOK)
	if a := h.do("HEAD", "/v1/events", mara, ""); a.status != http.StatusTooManyRequests {
		t.Errorf("status %d", a.status)
	}
	h.stream(t.Context(), fellow, "")
	h.do("GET", "/v1/events", fellow, "").tooMany("the tenant has 3 event streams open")
	h.stream(t.Context(), h.other("read"), "")
	h.do("GET", "/v1/events", h.other("read"), "").tooMany("this server has 4 event streams open")
}

// TestTooManyOpenRequestsAreRefused checks that the answer is a problem that says what to
// do, and denies.
func TestTooManyOpenRequestsAreRefused(t *testing.T) {
	h := newHarness(t)
	h.stop()
	h.svc = approval.New(h.store, h.plans, h.people, h.clock.Now, rand.Reader,
		approval.Config{Quota: approval.Quota{Token: approval.Amounts{Open: 1}}})
	h.start()
	rt := h.runtime()
	h.ask(rt, `{"a":1}`)
	a := h.opens(rt, `{"call":{"kind":"tool","tool":"trade","args":{"a":2}}}`)
	a.tooMany("this token has 1 requests open", "cancel what nobody needs")
	if a.str("outcome") != "deny" {
		t.Errorf("got %s", a.text)
	}
}

// TestProblemsRepeatNoLongNames checks that the answer to a refused request is short,
// whatever was sent.
func TestProblemsRepeatNoLongNames(t *testing.T) {
	h := newHarness(t)
	rt, admin := h.runtime(), h.admin()
	long := strings.Repeat("é", 400_000)
	for name, c := range map[string]struct{ path, token, body string }{
		"a field":            {"/v1/agents/desk/requests", rt, `{"call":{"kind":"tool","tool":"trade"},"` + long + `":1}`},
		"a field of a call":  {"/v1/agents/desk/decide", rt, `{"kind":"tool","tool":"trade","` + long + `":1}`},
		"a kind":             {"/v1/agents/desk/decide", rt, `{"kind":"` + long + `"}`},
		"a kind without end": {"/v1/agents/desk/requests", rt, `{"call":{"kind":"` + long + `"}}`},
		"a tool":             {"/v1/agents/desk/decide", rt, `{"kind":"tool","tool":"` + long + `"}`},
		"a tool to ask for":  {"/v1/agents/desk/requests", rt, `{"call":{"kind":"tool","tool":"` + long + `"}}`},
		"a key twice": {"/v1/agents/desk/decide", rt, `{"kind":"tool","tool":"quote","args":{"` + long + `":1,"` +
			long + `":2}}`},
		"a hint": {"/v1/agents/desk/decide", rt, `{"kind":"tool","tool":"quote","annotations":{"` + long +
			`":1,"` + long + `":2}}`},
		"an asker": {"/v1/agents/desk/questions", rt, `{"call":{"kind":"tool","tool":"quote"},"question":{"` +
			long + `":1}}`},
		"a scope":    {"/v1/tokens", admin, `{"name":"x","scopes":["` + long + `"]}`},
		"a duration": {"/v1/tokens", admin, `{"name":"x","scopes":["read"],"expires_in":"` + long + `"}`},
		"a query":    {"/v1/requests?" + strings.Repeat("x", 20_000) + "=1", admin, ""},
		"a state":    {"/v1/requests?state=" + strings.Repeat("x", 20_000), admin, ""},
		"an id":      {"/v1/requests/" + strings.Repeat("x", 20_000), admin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			method := "POST"
			if c.body == "" {
				method = "GET"
			}
			a := h.do(method, c.path, c.token, c.body, "Idempotency-Key", "k")
			if a.status < 200 || a.status >= 500 || len(a.text) > 4<<10 {
				t.Errorf("status %d, %d bytes: %.300s", a.status, len(a.text), a.text)
			}
		})
	}
}

// TestWhatMayBeMadeCanBeRead checks that ids of RAP calls fit into a URL, in which each
// byte takes three.
func TestWhatMayBeMadeCanBeRead(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	id := url.QueryEscape(strings.Repeat("\u00e9", 4096))
	a := h.do("GET", "/v1/agents/desk/rap/calls?thread="+id+"&id="+id, rt, "")
	if a.status != http.StatusNotFound || a.str("code") != "not_found" {
		t.Errorf("status %d: %.300s", a.status, a.text)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/healthz", nil)
	must(t, err)
	req.Header.Set("X-Long", strings.Repeat("x", 200_000))
	resp, err := http.DefaultClient.Do(req)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if resp != nil {
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}
