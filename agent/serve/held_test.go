package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// newHeldWorld serves an agent whose trades people approve in the inbox of a real server.
func newHeldWorld(t *testing.T) (*world, *assenttest.Assent) {
	t.Helper()
	desk := assenttest.New(t, assenttest.Config{})
	w := &world{t: t, store: must.Get(filestore.New(t.TempDir()))(t), tool: &tool{}}
	plan := must.Get(desk.Plans.Plan(t.Context(), "acme", "desk"))(t)
	holder := client.Holder(desk.Client(store.Token{
		Name:   "rt",
		Scopes: []string{"request"},
		Agents: []string{"desk"},
	}), "desk")
	model := &seller{content.FunctionCall{CallID: "call_1", Name: "trade", Arguments: json.RawMessage(`{"amount":5}`)}}
	loop := agent.NewFunctionInvoking(model, agent.LoopConfig{
		Decider: agent.ByPlan(plan.Plan, agent.PlanOptions{Principal: "client-7", Session: "s-1"}),
		Holder:  holder,
		Now:     desk.Clock.Now,
	})
	trade := agent.NewFunction("trade", "Sells.", json.RawMessage(`{"type":"object"}`), w.tool.run)
	w.agent = agent.NewChatAgent(loop, agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{trade}})
	cfg := config(w.agent, w.store)
	cfg.Withdraw = holder.Cancel
	w.serve(cfg)
	return w, desk
}

// requests returns the requests that people can see.
func requests(t *testing.T, desk *assenttest.Assent) []approval.Summary {
	t.Helper()
	reader := desk.Client(store.Token{Name: "reader", Scopes: []string{"read"}})
	return must.Get(reader.Requests(t.Context(), client.Query{}))(t).Requests
}

// approve lets people approve the only request through the server's API.
func approve(t *testing.T, desk *assenttest.Assent) {
	t.Helper()
	id := requests(t, desk)[0].ID
	for _, name := range []string{"mara", "ben"} {
		person := desk.Client(store.Token{Name: name, Person: name, Scopes: []string{"read", "vote"}})
		r := must.Get(person.Request(t.Context(), id))(t)
		voted := must.Get(person.Vote(t.Context(), id, r.Version,
			openapi.VoteBody{Verdict: "approve", Binding: r.Binding(), ShownFully: true}))(t)
		if voted.Outcome == approval.VoteApproved {
			return
		}
	}

	t.Fatal("nobody has approved")
}

// TestPeopleElsewhereAnswerARemoteAgent uses a remote agent whose approver has an inbox. The
// local agent must wait, its user can't approve, and it continues when the people have
// approved.
func TestPeopleElsewhereAnswerARemoteAgent(t *testing.T) {
	w, desk := newHeldWorld(t)
	local := w.planner(a2a.RemoteConfig{Wait: 1})
	thread := agent.NewThread("t1")
	q := asked(t, must.Get(local.Run(t.Context(), thread, content.UserText("Go.")))(t))
	if !strings.Contains(q.Text, "Wait on?") {
		t.Errorf("the user is asked %q", q.Text)
	}
	testwait.Until(t, "people are asked", func() bool { return len(requests(t, desk)) == 1 })
	resp := must.Get(local.Run(t.Context(), thread, content.NewMessage(content.User, q.CreateApproval(""))))(t)
	asked(t, resp) // a yes to waiting approves nothing
	if w.tool.runs() != 0 {
		t.Fatal("the local user has approved a remote trade")
	}
	approve(t, desk)
	resp = must.Get(w.planner(a2a.RemoteConfig{}).Run(t.Context(), thread))(t)
	if !strings.Contains(resp.Text(), "sold") || w.tool.runs() != 1 {
		t.Errorf("after %d runs: %s", w.tool.runs(), resp.Text())
	}
}

func TestACanceledTaskWithdrawsItsRequest(t *testing.T) {
	w, desk := newHeldWorld(t)
	c := w.client(hers)
	task := must.Get(c.Send(t.Context(), text("m1", "Sell.")))(t)
	testwait.Until(t, "people are asked", func() bool { return len(requests(t, desk)) == 1 })
	must.Get(c.Cancel(t.Context(), task.ID))(t)
	testwait.Until(t, "the request is withdrawn", func() bool {
		return requests(t, desk)[0].State == approval.Cancelled
	})
}

func TestAGUI_PeopleElsewhereAnswer(t *testing.T) {
	w, desk := newHeldWorld(t)
	events := w.runUI(hers, "t1", user("m1", "Sell."), "")
	if how, _ := end(t, events); how != "success" || !strings.Contains(told(events), "people who are asked elsewhere") {
		t.Fatalf("%s: %s", how, told(events))
	}
	held := must.Get(w.store.Load(t.Context(), threadID("agui", "ann", "t1")))(t).Pending()
	resume := resolved(held[0].Request.InputRequestID(), `{"approved":true}`)
	if how, _ := end(t, w.runUI(hers, "t1", "", resume)); how != "APPROVAL_RESUME_NOT_FOUND" || w.tool.runs() != 0 {
		t.Errorf("the client's answer: %s", how)
	}
	approve(t, desk)
	events = w.runUI(hers, "t1", user("m1", "Sell."), "")
	if how, _ := end(t, events); how != "success" || w.tool.runs() != 1 || !strings.Contains(told(events), "sold") {
		t.Errorf("%s after %d runs: %s", how, w.tool.runs(), told(events))
	}
	if code, _ := post(t, w.agui, "", "{}"); code != http.StatusUnauthorized {
		t.Errorf("status %d", code)
	}
}
