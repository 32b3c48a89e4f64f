package slack_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestOnlySignedInteractionsCount(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	p, b := w.button(approve)
	fresh := func() string {
		return encode(t, w.payload(p, approve, b.Value, "U0ALICE"))
	}
	setBody := func(r *http.Request, body string) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"no signature": {func(r *http.Request) { r.Header.Del("X-Slack-Signature") }, 401},
		"no timestamp": {func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") }, 401},
		"two signatures": {func(r *http.Request) {
			r.Header.Add("X-Slack-Signature", r.Header.Get("X-Slack-Signature"))
		}, 401},
		"empty signature": {func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0=") }, 401},
		"cut signature": {func(r *http.Request) {
			r.Header.Set("X-Slack-Signature", r.Header.Get("X-Slack-Signature")[:20])
		}, 401},
		"another version": {func(r *http.Request) {
			r.Header.Set("X-Slack-Signature", "v1"+r.Header.Get("X-Slack-Signature")[2:])
		}, 401},
		"timestamp moved": {func(r *http.Request) {
			r.Header.Set("X-Slack-Request-Timestamp", "1772366401")
		}, 401},
		"timestamp in words": {func(r *http.Request) { r.Header.Set("X-Slack-Request-Timestamp", "now") }, 401},
		"timestamp enormous": {func(r *http.Request) {
			r.Header.Set("X-Slack-Request-Timestamp", "9223372036854775807")
		}, 401},
		"tampered body":        {func(r *http.Request) { setBody(r, fresh()) }, 401},
		"body in another form": {func(r *http.Request) { setBody(r, strings.ReplaceAll(fresh(), "+", "%20")) }, 401},
		"body too large":       {func(r *http.Request) { setBody(r, "payload="+strings.Repeat("x", 1<<20)) }, 413},
	} {
		request := w.signed(fresh())
		test.change(request)
		if status := w.post(request); status != test.status {
			t.Errorf("%s: answered %d, want %d", name, status, test.status)
		}
	}

	for name, request := range map[string]*http.Request{
		"another secret": sign(t, w.inbound.URL, fresh(), "other", w.clock()),
		"no secret":      sign(t, w.inbound.URL, fresh(), "", w.clock()),
		"too old":        sign(t, w.inbound.URL, fresh(), signing, w.clock().Add(-5*time.Minute-time.Second)),
		"too new":        sign(t, w.inbound.URL, fresh(), signing, w.clock().Add(5*time.Minute+time.Second)),
	} {
		if status := w.post(request); status != http.StatusUnauthorized {
			t.Errorf("%s: answered %d", name, status)
		}
	}

	w.app.Wait()
	w.unanswered(r.ID, "unsigned")
}

func TestReplayIsRefused(t *testing.T) {
	w, r := asked(t, "pair", `{}`)
	p, b := w.button(approve)
	body := encode(t, w.payload(p, approve, b.Value, "U0ALICE"))
	if status := w.post(w.signed(body)); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	again := w.signed(body)
	again.Header.Set("X-Slack-Signature", "v0="+strings.ToUpper(again.Header.Get("X-Slack-Signature")[3:]))
	for _, request := range []*http.Request{w.signed(body), again} {
		if status := w.post(request); status != http.StatusConflict {
			t.Errorf("the replay was answered %d", status)
		}
	}
	w.app.Wait()
	if got := w.request(r.ID); len(got.Votes) != 1 {
		t.Errorf("got %+v", got.Votes)
	}
	ahead := encode(t, w.payload(p, approve, b.Value, "U0BOB"))
	early := func() *http.Request {
		return sign(t, w.inbound.URL, ahead, signing, w.clock().Add(4*time.Minute))
	}
	first, later := early(), early()
	if status := w.post(first); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	w.app.Wait()
	w.pass(8 * time.Minute) // still within the window of that timestamp
	if status := w.post(later); status != http.StatusConflict {
		t.Errorf("the late replay was answered %d", status)
	}
}

func TestNothingButAPostDoesAnything(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	p, b := w.button(approve)
	body := encode(t, w.payload(p, approve, b.Value, "U0ALICE"))
	for _, method := range []string{
		http.MethodGet,
		http.MethodHead,
		http.MethodPut,
		http.MethodDelete,
		http.MethodOptions,
	} {
		request := sign(t, w.inbound.URL+"?"+body, body, signing, w.clock())
		request.Method = method
		if status := w.post(request); status != http.StatusMethodNotAllowed {
			t.Errorf("%s was answered %d", method, status)
		}
	}

	open, _ := p.button("assent_open")
	if !strings.HasPrefix(open.URL, "https://assent.example/requests/") || strings.Contains(open.URL, "?") {
		t.Errorf("the link carries more than the request: %s", open.URL)
	}
	w.send(w.payload(p, "assent_open", "", "U0ALICE"))
	w.unanswered(r.ID, "no POST")
}

func TestOtherInteractions(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	p, b := w.button(approve)
	good := func() map[string]any { return w.payload(p, approve, b.Value, "U0ALICE") }
	with := func(change func(map[string]any)) string {
		payload := good()
		change(payload)
		return encode(t, payload)
	}
	value := func(v string) string {
		return with(func(p map[string]any) { p["actions"].([]any)[0].(map[string]any)["value"] = v })
	}
	view := func(v map[string]any) string {
		return with(func(p map[string]any) { p["type"], p["view"] = "view_submission", v })
	}
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"shortcut": {with(func(p map[string]any) { p["type"] = "shortcut" }), 200},
		"another app's button": {with(func(p map[string]any) {
			p["actions"].([]any)[0].(map[string]any)["action_id"] = "other"
		}), 200},
		"another form":    {view(map[string]any{"callback_id": "other"}), 200},
		"no form":         {"hello", 400},
		"no payload":      {"other=1", 400},
		"two payloads":    {encode(t, good()) + "&payload=x", 400},
		"a further field": {encode(t, good()) + "&other=x", 400},
		"no JSON":         {url.Values{"payload": {"{"}}.Encode(), 400},
		"no type":         {url.Values{"payload": {"{}"}}.Encode(), 400},
		"no action":       {with(func(p map[string]any) { p["actions"] = []any{} }), 400},
		"two actions": {with(func(p map[string]any) {
			p["actions"] = append(p["actions"].([]any), p["actions"].([]any)[0])
		}), 400},
		"value of nothing":     {value(""), 400},
		"value with a path":    {value("../apr_x 0 0123456789abcdef"), 400},
		"value with two lines": {value(b.Value + "\n"), 400},
		"value with less":      {value(r.ID + " 0 0123456789ab"), 400},
		"value with sign":      {value(r.ID + " +0 0123456789abcdef"), 400},
		"nobody":               {with(func(p map[string]any) { p["user"] = map[string]any{} }), 400},
		"user with a colon": {with(func(p map[string]any) {
			p["user"] = map[string]any{"id": "U0:ALICE", "team_id": team}
		}), 400},
		"team with a colon": {with(func(p map[string]any) {
			p["user"] = map[string]any{"id": "U0ALICE", "team_id": "T0:HOME"}
		}), 400},
		"no team": {with(func(p map[string]any) {
			p["team"] = nil
			p["user"] = map[string]any{"id": "U0ALICE"}
		}), 400},
		"form without metadata": {view(map[string]any{"callback_id": "assent_deny"}), 400},
		"form with nonsense": {
			view(map[string]any{"callback_id": "assent_deny", "private_metadata": `{"ticket":"x"}`}),
			400,
		},
	} {
		if status := w.post(w.signed(test.body)); status != test.status {
			t.Errorf("%s: answered %d, want %d", name, status, test.status)
		}
	}

	w.app.Wait()
	w.unanswered(r.ID, "another interaction")
}

func TestButtonOfAnUnknownRequest(t *testing.T) {
	w, _ := asked(t, "trade", `{"amount":5}`)
	w.send(w.payload(w.only(), approve, "apr_0000 0 0123456789abcdef", "U0ALICE"))
	w.hears("Nothing was counted: not found")
}
