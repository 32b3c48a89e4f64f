package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// motd is a question for mara.
const motd = `{"call":{"kind":"tool","tool":"quote","args":{"path":"/etc/motd"},"principal":"mara@example.com"},` +
	`"question":{"asker":"files","prompt":"Write <b>/etc/motd</b>?","choices":["Yes","","No"],"default":2}}`

func (h *harness) put(token, key, body string) *answer {
	h.t.Helper()
	return h.do("POST", "/v1/agents/desk/questions", token, body, "Idempotency-Key", key)
}

func (h *harness) pick(token string, r *approval.Request, more string) *answer {
	h.t.Helper()
	return h.do(
		"POST",
		"/v1/requests/"+r.ID+"/votes",
		token,
		`{"binding":"`+r.Binding()+`",`+more+`}`,
		"If-Match",
		version(r),
	)
}

func TestTheWayOfAQuestion(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	opened := h.put(rt, "k", motd).must(201)
	r := opened.request("request")
	if opened.header.Get("Location") != "/v1/requests/"+r.ID || opened.header.Get("ETag") != `"1"` ||
		r.Question.Prompt != "Write <b>/etc/motd</b>?" ||
		r.Question.Choices[1] != "" {
		t.Errorf("got %s", opened.text)
	}
	if again := h.put(rt, "k", motd).must(200); again.request("request").ID != r.ID || again.get("shared") != true {
		t.Errorf("got %s", again.text)
	}
	h.put(rt, "k", strings.Replace(motd, `"default":2`, `"default":0`, 1)).must(422)
	page := h.do("GET", "/v1/requests?state=open", mara, "").must(200)
	if !strings.Contains(page.text, `"question":true`) || strings.Contains(page.text, "Write") {
		t.Errorf("the list is %s", page.text)
	}
	h.pick(h.voter("ben"), r, `"verdict":"choose","choice":0,"shown_fully":true`).must(200)
	voted := h.pick(mara, r, `"verdict":"choose","choice":0,"shown_fully":true`).must(200)
	if voted.str("outcome") != "answered" || voted.get("request", "chosen") != 0.0 {
		t.Errorf("got %s", voted.text)
	}
	if got := h.look(rt, r).must(200).request(); *got.Chosen != 0 || *got.Votes[0].Chosen != 0 ||
		got.Cause != approval.ByChoice {
		t.Errorf("got %+v", got)
	}
	if page := h.do("GET", "/v1/requests?state=answered", mara, "").must(200); page.get("total") != 1.0 {
		t.Errorf("got %s", page.text)
	}
	for _, late := range []string{`"verdict":"dismiss"`, `"verdict":"choose","choice":1,"shown_fully":true`} {
		if a := h.pick(mara, r, late).must(200); a.str("outcome") != "late" || a.get("request", "chosen") != 0.0 {
			t.Errorf("%s: got %s", late, a.text)
		}
	}
}

func TestQuestionsThatTheServerRefuses(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	question := func(q string) string {
		return `{"call":{"kind":"tool","tool":"quote"},"question":` + q + `}`
	}
	for name, c := range map[string]struct{ body, field, code string }{
		"no body":     {``, "", "bad_request"},
		"no question": {`{"call":{"kind":"tool","tool":"quote"}}`, "question", "bad_request"},
		"a principal beside the call": {
			`{"call":{"kind":"tool","tool":"quote"},"principal":"mara","question":{"asker":"a","prompt":"","choices":["x"],"default":0}}`,
			"principal",
			"bad_request",
		},
		"a nested form": {
			question(`{"asker":"a","prompt":"","schema":{"type":"object","properties":{"a":{"type":"object"}}}}`),
			"question.schema",
			"invalid",
		},
		"a form and choices": {
			question(`{"asker":"a","prompt":"","schema":{"type":"string"},"choices":["x"],"default":0}`),
			"question.schema",
			"invalid",
		},
		"a schema as text": {question(`{"asker":"a","prompt":"","schema":"{}"}`), "question.schema", "invalid"},
		"a context that is no list": {
			`{"question":{"asker":"a","prompt":"","schema":{"type":"string"}},"context":"why"}`,
			"context",
			"bad_request",
		},
		"a context with a number": {
			`{"question":{"asker":"a","prompt":"","schema":{"type":"string"}},"context":[{"label":"x","text":7}]}`,
			"context.0.text",
			"bad_request",
		},
		"a link of another scheme": {
			`{"question":{"asker":"a","prompt":"","schema":{"type":"string"}},"context":[{"label":"x","link":"javascript:1"}]}`,
			"context.0.link",
			"invalid",
		},
		"no default": {question(`{"asker":"a","prompt":"","choices":["x"]}`), "question.default", "bad_request"},
		"a default as text": {
			question(`{"asker":"a","prompt":"","choices":["x"],"default":"0"}`),
			"question.default",
			"bad_request",
		},
		"a fraction": {
			question(`{"asker":"a","prompt":"","choices":["x","y"],"default":0.5}`),
			"question.default",
			"bad_request",
		},
		"below": {
			question(`{"asker":"a","prompt":"","choices":["x"],"default":-1}`),
			"question.default",
			"bad_request",
		},
		"beyond":     {question(`{"asker":"a","prompt":"","choices":["x"],"default":1}`), "question.default", "invalid"},
		"no choices": {question(`{"asker":"a","prompt":"","choices":[],"default":0}`), "question.choices", "invalid"},
		"odd choices": {
			question(`{"asker":"a","prompt":"","choices":["x",1],"default":0}`),
			"question.choices",
			"bad_request",
		},
		"a name misspelt": {
			question(`{"asker":"a","prompt":"","choices":["x"],"Default":0}`),
			"question.Default",
			"bad_request",
		},
		"nobody asks": {question(`{"asker":"","prompt":"","choices":["x"],"default":0}`), "question.asker", "invalid"},
		"an empty group": {
			question(`{"asker":"a","prompt":"","choices":["x"],"default":0,"groups":[""]}`),
			"question.groups",
			"bad_request",
		},
		"no time":       {strings.Replace(motd, `{"call"`, `{"within":"0s","call"`, 1), "within", "invalid"},
		"too much time": {strings.Replace(motd, `{"call"`, `{"within":"9000h","call"`, 1), "within", "invalid"},
	} {
		a := h.put(rt, "k", c.body)
		if a.str("code") != c.code || c.field != "" && a.str("field") != c.field || a.str("outcome") != "deny" {
			t.Errorf("%s: got %s", name, a.text)
		}
	}

	if a := h.do("POST", "/v1/agents/desk/questions", rt, motd); a.status != 400 ||
		a.str("field") != "Idempotency-Key" {
		t.Errorf("without a key: %s", a.text)
	}
	h.do("POST", "/v1/agents/desk/questions", h.voter("mara"), motd, "Idempotency-Key", "k").must(403)
	h.do("POST", "/v1/agents/nobody/questions", rt, motd, "Idempotency-Key", "k").must(404)
	if a := h.put(rt, "denied", strings.Replace(motd, "quote", "drop", 1)).must(200); a.str("denied") != "policy" ||
		a.get("request") != nil {
		t.Errorf("got %s", a.text)
	}

	if n := h.do("GET", "/v1/requests", h.voter("mara"), "").must(200).get("total"); n != 0.0 {
		t.Errorf("%v requests were made", n)
	}
}

// TestWrongAnswersToQuestions checks that answers to questions and to calls are not mixed
// up, and that a question approves nothing.
func TestWrongAnswersToQuestions(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r, call := h.put(rt, "k", motd).must(201).request("request"), h.ask(rt, `{"amount":1}`)
	for name, c := range map[string]struct {
		of         *approval.Request
		more, code string
	}{
		"approved":          {r, `"verdict":"approve","shown_fully":true`, "invalid"},
		"denied":            {r, `"verdict":"deny"`, "invalid"},
		"nothing chosen":    {r, `"verdict":"choose","shown_fully":true`, "invalid"},
		"beyond":            {r, `"verdict":"choose","choice":3,"shown_fully":true`, "invalid"},
		"below":             {r, `"verdict":"choose","choice":-1,"shown_fully":true`, "bad_request"},
		"half":              {r, `"verdict":"choose","choice":0.5,"shown_fully":true`, "bad_request"},
		"as text":           {r, `"verdict":"choose","choice":"0","shown_fully":true`, "bad_request"},
		"not shown":         {r, `"verdict":"choose","choice":0`, "not_shown"},
		"dismissed to one":  {r, `"verdict":"dismiss","choice":0`, "invalid"},
		"a call, chosen":    {call, `"verdict":"choose","choice":0,"shown_fully":true`, "invalid"},
		"a call, dismissed": {call, `"verdict":"dismiss"`, "invalid"},
		"a standing approval": {
			r,
			`"verdict":"choose","choice":0,"shown_fully":true,"grant":{"max_uses":1}`,
			"invalid",
		},
	} {
		if a := h.pick(mara, c.of, c.more); a.str("code") != c.code {
			t.Errorf("%s: got %s", name, a.text)
		}
	}

	for _, query := range []string{"", "?preview=true"} {
		edit := h.do(
			"POST",
			"/v1/requests/"+r.ID+"/edits"+query,
			mara,
			`{"arguments":"{}","binding":"`+r.Binding()+`"}`,
			"If-Match",
			version(r),
		)
		if edit.must(409).str("code") != "question" {
			t.Errorf("got %s", edit.text)
		}
	}

	if a := h.consume(rt, r, "run").must(409); a.str("code") != "question" || a.str("outcome") != "deny" {
		t.Errorf("got %s", a.text)
	}
	if got := h.look(rt, r).must(200).request(); got.State != approval.Pending || len(got.Votes) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestFrozenAnswersAreHeldBack checks that while the kill switch is on, a runtime can't get
// the answer by any operation, and people can still see it.
func TestFrozenAnswersAreHeldBack(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	mara := h.voter("mara")
	admin := h.admin()
	r := h.put(rt, "k", motd).must(201).request("request")
	h.do("POST", "/v1/freezes", mara, `{"agent":"desk"}`).must(200)
	if got := h.look(rt, r).must(200).request(); got.State != approval.Pending {
		t.Errorf("got %+v", got)
	}
	wait := make(chan *answer, 1)
	go func() {
		wait <- h.do("GET", "/v1/requests/"+r.ID+"?version=1&wait=30s", rt, "")
	}()
	h.pick(mara, r, `"verdict":"dismiss"`).must(200)
	h.size() // everything is sealed
	all := []*answer{
		<-wait, h.look(rt, r), h.do("GET", "/v1/requests/"+r.ID+"/history", rt, ""),
		h.do("GET", "/v1/requests/"+r.ID+"?version=1&wait=1s", rt, ""),
	}
	// a runtime that may read everything can't read its own answer either
	rt = h.token(store.Token{Name: "rt", Scopes: []string{"request", "read"}})
	all = append(all, h.look(rt, r))
	for i, a := range all {
		if a.status != http.StatusLocked || a.str("code") != "frozen" || a.str("request") != r.ID ||
			a.header.Get("ETag") != "" ||
			strings.Contains(a.text, "dismiss") {
			t.Errorf("%d: got %d %s", i, a.status, a.text)
		}
	}

	if a := h.put(rt, "k", motd).must(200); a.str("denied") != "frozen" || a.get("request") != nil {
		t.Errorf("asking again tells %s", a.text)
	}
	if a := h.do("POST", "/v1/requests/"+r.ID+"/cancel", rt, ""); a.must(409).str("code") != "closed" ||
		strings.Contains(a.text, "dismiss") {
		t.Errorf("taking it back tells %s", a.text)
	}
	if got := h.look(mara, r).must(200).request(); *got.Chosen != 2 {
		t.Errorf("people see %+v", got)
	}
	h.administer("/v1/freezes/lift", admin, `{"agent":"desk"}`).must(200)
	if got := h.look(rt, r).must(200).request(); *got.Chosen != 2 || got.Cause != approval.ByDismissal {
		t.Errorf("got %+v", got)
	}
	h.do("GET", "/v1/requests/"+r.ID+"/history", rt, "").must(200)
}

func TestClientAsks(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	rt := h.client(h.runtime())
	mara := h.client(h.voter("mara"))
	call := []byte(`{"kind":"tool","tool":"quote","args":{ "n": 1.0 },"principal":"mara"}`)
	q := approval.Question{Asker: "files", Prompt: "Write <&> é?", Choices: []string{"", "Yes", "Yes"}, Default: 1}
	opened, err := rt.Ask(ctx, "desk", call, q, client.AskOptions{Within: time.Minute})
	if err != nil || string(opened.Request.Current().Call.Args) != `{ "n": 1.0 }` ||
		opened.Request.Within != time.Minute ||
		fmt.Sprint(*opened.Request.Question) != fmt.Sprint(q) {
		t.Fatalf("got %+v, %v", opened, err)
	}
	r := opened.Request
	if got, err := rt.Answer(ctx, r.ID); !errors.Is(err, approval.ErrPending) || got.ID != r.ID {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, choice := range []int{0, 2} { // the first index of all is no missing one
		opened, err := rt.Ask(ctx, "desk", call, q, client.AskOptions{Key: fmt.Sprint("k", choice)})
		must(t, err)
		body := openapi.VoteBody{
			Verdict:    approval.Choose,
			Choice:     &choice,
			Binding:    opened.Request.Binding(),
			ShownFully: true,
		}
		if voted, err := mara.Vote(ctx, opened.Request.ID, 1, body); err != nil ||
			voted.Outcome != approval.VoteAnswered {
			t.Fatalf("got %+v, %v", voted, err)
		}
		if got, err := rt.Answer(ctx, opened.Request.ID); err != nil || *got.Chosen != choice {
			t.Errorf("got %+v, %v", got, err)
		}
	}

	if _, err := rt.Cancel(ctx, r.ID, "over"); err != nil {
		t.Fatal(err)
	}
	if got, err := rt.Answer(ctx, r.ID); !errors.Is(err, approval.ErrNotApproved) || got.State != approval.Cancelled {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := rt.Answer(ctx, "qst_0"); client.Code(err) != openapi.CodeNotFound {
		t.Errorf("got %v", err)
	}
	plain, err := rt.Open(
		ctx,
		"desk",
		[]byte(`{"kind":"tool","tool":"trade","args":{"amount":1}}`),
		client.OpenOptions{},
	)
	must(t, err)
	if _, err := rt.Answer(ctx, plain.Request.ID); !errors.Is(err, approval.ErrNotApproved) {
		t.Errorf("an approval is no question: got %v", err)
	}
}

// TestEventsOfQuestions checks that the stream of events shows that a question was asked
// and answered, but none of the tool's words.
func TestEventsOfQuestions(t *testing.T) {
	h := newHarness(t)
	r := h.put(h.runtime(), "k", motd).must(201).request("request")
	h.pick(h.voter("mara"), r, `"verdict":"choose","choice":1,"shown_fully":true`).must(200)
	h.size()
	a := h.do("GET", "/v1/requests/"+r.ID+"/history", h.voter("mara"), "").must(200)
	var all openapi.Entries
	if err := json.Unmarshal([]byte(a.text), &all); err != nil || len(all.Entries) != 3 {
		t.Fatalf("got %s, %v", a.text, err)
	}
	var leaves []string
	for _, e := range all.Entries {
		leaves = append(leaves, string(e.Leaf))
	}
	if text := strings.Join(leaves, "\n"); strings.Contains(text, "motd") || !strings.Contains(text, `"choices":3`) ||
		!strings.Contains(text, `"chosen":1`) ||
		!strings.Contains(text, "request_answered") {
		t.Errorf("got %s", text)
	}
}

// TestQuestionsOfOthersAreNotMine checks that only the person whom a question is for may
// answer it and finds it in their list, however many other questions are older.
func TestQuestionsOfOthersAreNotMine(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	mara := h.voter("mara")
	ben := h.voter("ben")
	own := h.put(rt, "own", strings.Replace(motd, "mara@example.com", "ben", 1)).must(201).request("request")
	for i := range 7 {
		h.put(rt, fmt.Sprint("k", i), motd).must(201)
	}
	anybody := h.put(rt, "any", strings.Replace(motd, `,"principal":"mara@example.com"`, "", 1)).
		must(201).
		request("request")
	list := func(token, query string) (out []string, total any) {
		a := h.do("GET", "/v1/requests?"+query, token, "").must(200)
		for _, r := range a.get("requests").([]any) {
			out = append(out, r.(map[string]any)["id"].(string))
		}
		return out, a.get("total")
	}
	for _, c := range []struct {
		token, query string
		want, total  int
	}{
		{ben, "mine=true", 2, 2},
		{ben, "mine=true&limit=2", 2, 2},
		{mara, "mine=true", 8, 8},
		{mara, "", 9, 9},
		{mara, "principal=mara@example.com", 7, 7},
		{mara, "group=nobody-has-it", 1, 1},
	} {
		got, total := list(c.token, c.query)
		if len(got) != c.want || total != float64(c.total) {
			t.Errorf("%q: %d, total %v, want %d", c.query, len(got), total, c.want)
		}
	}

	got, _ := list(ben, "mine=true&limit=1&order=due")
	if len(got) != 1 || got[0] != own.ID && got[0] != anybody.ID {
		t.Errorf("the first of ben's is %v", got)
	}
}
