package server_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// seat is a form that the agent asks on its own.
const seat = `{"principal":"mara@example.com","session":"s1","question":{"asker":"booking","prompt":"Which seat?",` +
	`"schema":{"type":"object","properties":{"seat":{"type":"string","enum":["12a","14c"]}},"required":["seat"]}},` +
	`"context":[{"label":"Why","text":"<b>you</b> asked for a window"},{"label":"Plan","link":"https://x.example/plan"}]}`

func TestTheWayOfAForm(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	opened := h.put(rt, "k", seat).must(201)
	r := opened.request("request")
	if r.Requester.Principal != "mara@example.com" || len(r.Context) != 2 || r.Question.Form() == nil {
		t.Errorf("got %s", opened.text)
	}
	if again := h.put(rt, "k", seat).must(200); again.get("shared") != true {
		t.Errorf("got %s", again.text)
	}
	page := h.do("GET", "/v1/requests?state=open", mara, "").must(200)
	if strings.Contains(page.text, "window") || strings.Contains(page.text, "Which seat") {
		t.Errorf("the list is %s", page.text)
	}

	for _, wrong := range []string{
		`"verdict":"submit","shown_fully":true`,
		`"verdict":"submit","shown_fully":true,"data":null`,
		`"verdict":"submit","shown_fully":true,"data":{"seat":"1a"}`,
		`"verdict":"submit","shown_fully":true,"data":{"seat":"12a","x":"` + strings.Repeat("x", 300<<10) + `"}`,
		`"verdict":"choose","shown_fully":true,"choice":0`,
		`"verdict":"approve","shown_fully":true`,
	} {
		if got := h.pick(mara, r, wrong).must(422); got.str("code") != "invalid" {
			t.Errorf("%.80s: got %s", wrong, got.text)
		}
	}

	h.pick(mara, r, `"verdict":"submit","data":"`+strings.Repeat("x", 1<<20)+`"`).must(413)
	h.pick(mara, r, `"verdict":"submit","data":{"seat":"12a"}`).must(422) // not shown

	voted := h.pick(mara, r, `"verdict":"submit","shown_fully":true,"data":{ "seat":"12a" }`).must(200)
	if voted.str("outcome") != "answered" || voted.get("request", "data", "seat") != "12a" {
		t.Errorf("got %s", voted.text)
	}
	got := h.do("GET", "/v1/requests/"+r.ID, rt, "").must(200).request()
	if string(got.Data) != `{"seat":"12a"}` || got.Cause != approval.BySubmission {
		t.Errorf("got %+v", got)
	}
}

// TestPeopleFillInAForm checks that people can answer a form over HTTP.
func TestPeopleFillInAForm(t *testing.T) {
	h := newHarness(t)
	c, err := client.New(h.url, h.runtime(), client.Options{})
	must(t, err)
	asks := client.Holder(c, "desk")
	ref, err := asks.Ask(t.Context(), "k", hold.Question{
		Call:    &resolve.Call{Principal: "mara@example.com", Session: "s1"},
		Server:  "booking",
		Prompt:  "Which seat?",
		Schema:  json.RawMessage(`{"type":"string"}`),
		Context: []info.Item{{Label: "Why", Text: "a window"}},
	})
	must(t, err)
	if got, err := asks.Answer(t.Context(), ref); err != nil || got.State != hold.Pending {
		t.Errorf("got %+v, %v", got, err)
	}
	r := h.do("GET", "/v1/requests/"+ref, h.voter("mara"), "").must(200).request()
	mara, err := client.New(h.url, h.voter("mara"), client.Options{})
	must(t, err)
	_, err = mara.Vote(t.Context(), ref, r.Version, openapi.VoteBody{
		Verdict:    approval.Submit,
		Binding:    r.Binding(),
		ShownFully: true,
		Data:       json.RawMessage(`"by the <window>"`),
	})
	must(t, err)
	got, err := asks.Answer(t.Context(), ref)
	var text string
	if err != nil || got.State != hold.Submitted || json.Unmarshal([]byte(got.Data), &text) != nil ||
		text != "by the <window>" {
		t.Errorf("got %+v, %v", got, err)
	}

	ref, err = asks.Ask(t.Context(), "k2", hold.Question{
		Call:   &resolve.Call{Principal: "mara@example.com"},
		Server: "booking",
		Schema: json.RawMessage(`{"type":"object","properties":{"pin":{"type":"string"}}}`),
	})
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Field != "question.schema" {
		t.Errorf("got %q, %v", ref, err)
	}
}
