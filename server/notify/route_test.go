package notify_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/notify"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func request() *approval.Request {
	return &approval.Request{
		ID:        "req_00001",
		Tenant:    "acme",
		Version:   3,
		State:     approval.Pending,
		Created:   noon.Add(-time.Minute),
		Deadline:  noon.Add(time.Hour),
		Requester: approval.Requester{Runtime: "ci", Principal: "mallory@acme.example"},
		Agent:     approval.Agent{ID: "acme.finance.trader"},
		Stages:    []policy.Stage{{Group: "risk", People: 2}, {Group: "desk", People: 1}},
		Called:    []string{"risk-leads", "desk"},
		Reason:    "the reason's words",
		Answer:    "the answer's words",
		Revisions: []approval.Revision{{
			Binding: "sha256:" + strings.Repeat("ab", 32),
			Call: resolve.Call{
				Kind:           resolve.MCPTool,
				Server:         "broker",
				Tool:           "sell",
				Args:           resolve.Raw(`{"secret":"hunter2"}`),
				ParentInput:    resolve.Raw(`{"p":"hunter2"}`),
				ToolDefinition: "hunter2",
				Session:        "hunter2",
			},
			Decision: resolve.Decision{Message: "Sell with hunter2?", Outcome: resolve.Ask},
			Note:     "hunter2",
		}},
	}
}

func router(t *testing.T, routes ...notify.Route) *notify.Router {
	t.Helper()
	r, err := notify.NewRouter(
		routes,
		[]string{"slack", "webhook:ops"},
		"https://assent.example/base?x=1",
		func() time.Time {
			return noon
		},
	)
	must.Do(t, err)
	return r
}

func TestRoutes(t *testing.T) {
	for name, test := range map[string]struct {
		route notify.Route
		event string
		want  bool
	}{
		"default":         {notify.Route{}, approval.EventOpened, true},
		"default, silent": {notify.Route{}, approval.EventVoteRefused, false},
		"named": {
			notify.Route{Events: []string{approval.EventVoteRefused}},
			approval.EventVoteRefused,
			true,
		},
		"other":             {notify.Route{Events: []string{approval.EventVoteRefused}}, approval.EventOpened, false},
		"glob":              {notify.Route{Events: []string{"request_*"}}, approval.EventEscalated, true},
		"tenant":            {notify.Route{Tenants: []string{"acme"}}, approval.EventOpened, true},
		"other tenant":      {notify.Route{Tenants: []string{"globex"}}, approval.EventOpened, false},
		"agent":             {notify.Route{Agents: []string{"acme.finance.*"}}, approval.EventOpened, true},
		"other agent":       {notify.Route{Agents: []string{"acme.hr.*"}}, approval.EventOpened, false},
		"group of a stage":  {notify.Route{Groups: []string{"desk"}}, approval.EventOpened, true},
		"group called in":   {notify.Route{Groups: []string{"risk-leads"}}, approval.EventOpened, true},
		"group without say": {notify.Route{Groups: []string{"hr"}}, approval.EventOpened, false},
	} {
		test.route.Target = "slack"
		if got := router(t, test.route).Deliveries(test.event, request()); (len(got) == 1) != test.want {
			t.Errorf("%s: got %d deliveries", name, len(got))
		}
	}
}

func TestOneDeliveryForEachTarget(t *testing.T) {
	r := router(
		t,
		notify.Route{Target: "slack"},
		notify.Route{Target: "webhook:ops"},
		notify.Route{Target: "slack", Events: []string{"*"}},
	)
	var targets []string
	for _, d := range r.Deliveries(approval.EventOpened, request()) {
		targets = append(targets, d.Target)
		if d.Subject != "req_00001" || d.Event != approval.EventOpened {
			t.Errorf("got %+v", d)
		}
	}

	if !slices.Equal(targets, []string{"slack", "webhook:ops"}) {
		t.Errorf("got %v", targets)
	}
	if got := r.Deliveries(approval.EventFrozen, nil); got != nil {
		t.Errorf("an event without a request gives %v", got)
	}
}

func TestPayloadCarriesNoArguments(t *testing.T) {
	got := router(t, notify.Route{Target: "webhook:ops"}).Deliveries(approval.EventOpened, request())[0].Payload
	for _, secret := range []string{"hunter2", "reason's words", "answer's words", "x=1"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s shows %q", got, secret)
		}
	}
	var p notify.Payload
	must.Do(t, json.Unmarshal([]byte(got), &p))
	pretty, err := json.MarshalIndent(p, "", "  ")
	must.Do(t, err)
	golden.Equal(t, "payload.json", string(pretty)+"\n")
}

func TestSentenceTellsTheState(t *testing.T) {
	for state, want := range map[approval.State]string{
		approval.Pending:   "waits for people",
		approval.Approved:  "not run yet",
		approval.Consumed:  "approved and run",
		approval.Denied:    ": denied",
		approval.Expired:   ": expired",
		approval.Cancelled: ": cancelled",
	} {
		q := request()
		q.State = state
		got := router(
			t,
			notify.Route{Target: "slack", Events: []string{"*"}},
		).Deliveries(approval.EventOpened, q)[0].Payload
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s lacks %q", state, got, want)
		}
	}
}

// TestWebhooksSayWhatWhoeverIsCalledInMayDo checks that the payload says whether an added group
// may approve.
func TestWebhooksSayWhatWhoeverIsCalledInMayDo(t *testing.T) {
	q := request()
	q.State, q.Called = approval.Pending, []string{"leads", "auditors"}
	q.Stages = []policy.Stage{{
		Group:    "risk",
		People:   1,
		StandIns: []policy.StandIn{{Group: "leads"}},
	}}
	var p notify.Payload
	text := router(
		t,
		notify.Route{Target: "slack", Events: []string{"*"}},
	).Deliveries(approval.EventEscalated, q)[0].Payload
	must.Do(t, json.Unmarshal([]byte(text), &p))
	for _, want := range []string{
		"leads is called in and may approve in place of risk",
		"auditors is called in to look: they may deny it or answer, but not approve",
	} {
		if !strings.Contains(p.Data.Message, want) {
			t.Errorf("%q lacks %q", p.Data.Message, want)
		}
	}
}

// TestPayloadOfForms checks that the payload has the number of context items, but no text of
// them, of the form or of its answer.
func TestPayloadOfForms(t *testing.T) {
	q := request()
	q.Revisions[len(q.Revisions)-1].Call = resolve.Call{}
	q.Context = []info.Item{{Label: "hunter2", Text: "hunter2"}, {Label: "b", Link: "https://hunter2.example"}}
	q.Question = &approval.Question{
		Asker:  "hunter2",
		Prompt: "hunter2?",
		Schema: []byte(`{"type":"string","title":"hunter2"}`),
	}
	for state, want := range map[approval.State]string{
		approval.Pending:  "no call: the agent waits for somebody to answer",
		approval.Answered: "no call: the agent's question is answered",
	} {
		if q.State = state; state == approval.Answered {
			q.Data, q.Cause = []byte(`"hunter2"`), approval.BySubmission
		}
		for _, d := range router(t, notify.Route{Target: "slack"}).Deliveries(approval.EventAnswered, q) {
			var p notify.Payload
			if err := json.Unmarshal([]byte(d.Payload), &p); err != nil || p.Data.Context != 2 ||
				strings.Contains(d.Payload, "hunter") || !strings.HasSuffix(p.Data.Message, want) {
				t.Errorf("got %s, %v", d.Payload, err)
			}
		}
	}
}

// A question's payload contains neither the tool's text nor the chosen answer.
func TestPayloadOfQuestions(t *testing.T) {
	q, chosen := request(), 1
	q.Question = &approval.Question{
		Asker:   "hunter2",
		Prompt:  "hunter2?",
		Choices: []string{"hunter2", "hunter3"},
		Default: 0,
	}
	for state, want := range map[approval.State]string{
		approval.Pending:  "the tool waits for somebody to choose",
		approval.Answered: "the tool's question is answered",
		approval.Expired:  "the tool's question is expired",
	} {
		if q.State = state; state == approval.Answered {
			q.Chosen, q.Cause = &chosen, approval.ByChoice
		}
		for _, d := range router(t, notify.Route{Target: "slack"}).Deliveries(approval.EventAnswered, q) {
			var p notify.Payload
			if err := json.Unmarshal([]byte(d.Payload), &p); err != nil || !p.Data.Question ||
				strings.Contains(d.Payload, "hunter") || strings.Contains(d.Payload, "chosen") {
				t.Errorf("got %s, %v", d.Payload, err)
			}
			if !strings.HasSuffix(p.Data.Message, want) {
				t.Errorf("%s: got %q, want %q", state, p.Data.Message, want)
			}
		}
	}

	if got := router(t, notify.Route{Target: "slack"}).Deliveries(approval.EventAnswered, q); len(got) != 1 {
		t.Errorf("whoever was told of a question hears that it is answered: got %d deliveries", len(got))
	}
}

func TestRoutesAreChecked(t *testing.T) {
	for want, test := range map[string]struct {
		route notify.Route
		base  string
	}{
		`no target is named "mail"`: {notify.Route{Target: "mail"}, "https://a.example"},
		`no event about a request is named`: {
			notify.Route{Target: "slack", Events: []string{"request_opend"}},
			"https://a.example",
		},
		"expected the inbox's public address": {notify.Route{Target: "slack"}, "a.example"},
	} {
		_, err := notify.NewRouter([]notify.Route{test.route}, []string{"slack"}, test.base, time.Now)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestGroupsStandForEverybodyWhenNoneIsNamed(t *testing.T) {
	if got := notify.Groups(&approval.Request{}); !slices.Equal(got, []string{""}) {
		t.Errorf("got %q", got)
	}
}

// A question to the user of an agent belongs to no group, so routes for some groups don't match
// it.
func TestRoutesOfSomeGroupsLeaveOutOneUser(t *testing.T) {
	q := request()
	q.Question = &approval.Question{Choices: []string{"Yes"}}
	q.Stages = []policy.Stage{{People: 1}} // as the service sets it without groups
	q.Called = nil
	if !q.OnlyUser() {
		t.Fatal("it is not for one user")
	}
	for want, groups := range map[int][]string{1: nil, 0: {"risk"}} {
		route := notify.Route{Target: "slack", Groups: groups}
		if got := router(t, route).Deliveries(approval.EventOpened, q); len(got) != want {
			t.Errorf("groups %q: %d deliveries", groups, len(got))
		}
	}
}

func TestLinkStaysBelowTheBase(t *testing.T) {
	base, err := url.Parse("https://assent.example/a/?q#f")
	must.Do(t, err)
	if got := notify.Link(base, "req_1"); got != "https://assent.example/a/requests/req_1" {
		t.Errorf("got %s", got)
	}
}
