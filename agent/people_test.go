package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// script is a chat model with scripted contents that records the messages that it was given.
type script struct {
	says  []content.Content
	twice bool // the first call is made twice in one turn
	seen  [][]*content.Message
}

func (s *script) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	s.seen = append(s.seen, slices.Clone(messages))
	if len(s.says) == 0 {
		return nil, errors.New("the script is over")
	}
	next := s.says[0]
	s.says = s.says[1:]
	m := content.NewMessage(content.Assistant, next)
	if call, ok := next.(*content.FunctionCall); ok && s.twice {
		other := *call
		other.CallID = "call_2"
		m.Contents = append(m.Contents, &other)
	}
	return &agent.Response{Messages: []*content.Message{m}, FinishReason: "stop"}, nil
}

func (s *script) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		r, err := s.Respond(ctx, messages, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(&agent.Update{
			Role:         content.Assistant,
			Contents:     r.Messages[0].Contents,
			FinishReason: r.FinishReason,
		}, nil)
	}
}

// office is an agent that sells on behalf of a person. Each run is a new process: only the
// thread's file is kept.
type office struct {
	t     *testing.T
	h     *assenttest.Assent
	of    func(token, agentID string) hold.Holder
	file  string
	model *script
	ran   []string // arguments of the calls that ran
}

func newOffice(t *testing.T, h *assenttest.Assent, of func(token, agentID string) hold.Holder, args string) *office {
	o := &office{t: t, h: h, of: of, file: filepath.Join(t.TempDir(), "thread.json")}
	o.model = &script{says: []content.Content{
		&content.FunctionCall{
			CallID:    "call_1",
			Name:      "trade",
			Arguments: json.RawMessage(args),
		}, &content.Text{Text: "That is all."},
	}}
	o.save(agent.NewThread("thread-" + t.Name()))
	return o
}

func (o *office) save(thread *agent.Thread) {
	o.t.Helper()
	text := must.Get(json.Marshal(thread))(o.t)
	must.Do(o.t, os.WriteFile(o.file, text, 0o600))
}

func (o *office) load() *agent.Thread {
	o.t.Helper()
	text := must.Get(os.ReadFile(o.file))(o.t)
	thread := &agent.Thread{}
	must.Do(o.t, json.Unmarshal(text, thread))
	return thread
}

// run makes one run in a separate process.
func (o *office) run(messages ...*content.Message) *agent.Response {
	o.t.Helper()
	return must.Get(o.try(messages...))(o.t)
}

func (o *office) try(messages ...*content.Message) (*agent.Response, error) {
	o.t.Helper()
	compiled := must.Get(o.h.Plans.Plan(o.t.Context(), "acme", "desk"))(o.t)
	trade := agent.NewFunction("trade", "Sells.", json.RawMessage(`{"type":"object"}`),
		func(_ context.Context, args json.RawMessage) (any, error) {
			o.ran = append(o.ran, string(args))
			return "sold", nil
		})
	seller := agent.NewChatAgent(agent.NewFunctionInvoking(o.model, agent.LoopConfig{
		Decider: agent.ByPlan(compiled.Plan, agent.PlanOptions{Principal: "client-7", Session: "s-1"}),
		Holder:  o.of("rt", "desk"),
		Now:     o.h.Clock.Now,
	}), agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{trade}})
	thread := o.load()
	r, err := seller.Run(o.t.Context(), thread, messages...)
	o.save(thread)
	return r, err
}

// begin runs the agent until approval is needed and returns the request that the caller sees.
func (o *office) begin() *content.ToolApprovalRequest {
	o.t.Helper()
	r := o.run(content.UserText("Sell what we have."))
	asked := r.UserInputRequests()
	if len(asked) != 1 || len(o.ran) != 0 {
		o.t.Fatalf("asked %d things, ran %q", len(asked), o.ran)
	}
	q, ok := asked[0].(*content.ToolApprovalRequest)
	pending := o.load().Pending()
	if !ok || len(pending) != 1 || pending[0].Ref == "" || q.Note.Where != o.h.URL+"/requests/"+pending[0].Ref {
		o.t.Fatalf("asked %+v, pending %+v", asked[0], pending)
	}
	return q
}

// people returns an API client with a person's token.
func (o *office) people(person string) *client.Client {
	return o.h.Client(store.Token{Name: "cli-" + person, Person: person, Scopes: []string{"read", "vote"}})
}

// inList returns the only open request in the API's list.
func (o *office) inList() *approval.Request {
	o.t.Helper()
	mara := o.people("mara")
	page, err := mara.Requests(o.t.Context(), client.Query{State: "pending", Agent: "desk", Target: "tool trade"})
	must.Do(o.t, err)
	if len(page.Requests) != 1 || page.Requests[0].ID != o.load().Pending()[0].Ref {
		o.t.Fatalf("listed: %+v", page.Requests)
	}
	return must.Get(mara.Request(o.t.Context(), page.Requests[0].ID))(o.t)
}

// votes sends mara's vote through the API.
func (o *office) votes(verdict approval.Verdict, body openapi.VoteBody) {
	o.t.Helper()
	r := o.inList()
	body.Verdict = verdict
	body.Binding = r.Binding()
	body.ShownFully = true
	must.Get(o.people("mara").Vote(o.t.Context(), r.ID, r.Version, body))(o.t)
}

// ends runs the agent again and checks that it has finished: these calls have run so far, and
// the model reads this result.
func (o *office) ends(ran []string, reads string) {
	o.t.Helper()
	r := o.run()
	if !slices.Equal(o.ran, ran) {
		o.t.Errorf("ran %q, want %q", o.ran, ran)
	}
	if len(r.UserInputRequests()) != 0 || !strings.Contains(r.Text(), "That is all.") || len(o.load().Pending()) != 0 {
		o.t.Errorf("the run is not over: %q, %+v", r.Text(), r.UserInputRequests())
	}
	if result := o.result(); !strings.Contains(result, reads) {
		o.t.Errorf("the model reads %q, want %q", result, reads)
	}
}

// result returns the result that the model was given for the call. It must appear once.
func (o *office) result() string {
	o.t.Helper()
	all := o.results()
	if len(all) != 1 {
		o.t.Fatalf("the model was given %d results: %q", len(all), all)
	}
	return all[0]
}

func (o *office) results() []string {
	var all []string
	for r := range content.All[*content.FunctionResult](o.model.seen[len(o.model.seen)-1]) {
		all = append(all, string(r.Result))
	}
	return all
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp := must.Get(http.Get(url))(t)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, resp.Status)
	}
	return html.UnescapeString(string(text))
}

func inOffices(t *testing.T, args string, test func(t *testing.T, o *office)) {
	t.Helper()
	for name, of := range map[string]func(h *assenttest.Assent, token, agentID string) hold.Holder{
		"service": inProcess,
		"client":  atServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := assenttest.New(t, peopleConfig())
			test(t, newOffice(t, h, func(token, agentID string) hold.Holder { return of(h, token, agentID) }, args))
		})
	}
}

func peopleConfig() assenttest.Config {
	return assenttest.Config{Service: approval.Config{AcceptUnknown: func(string) bool { return true }}}
}

func inProcess(h *assenttest.Assent, token, agentID string) hold.Holder {
	at := hold.Place{Tenant: "acme", Agent: agentID, Inbox: h.URL + "/"}

	return hold.Service(h.Service, h.Store, at).As(approval.Asker{Token: token})
}

func atServer(h *assenttest.Assent, token, agentID string) hold.Holder {
	return client.Holder(h.Client(store.Token{Name: token, Scopes: []string{"request"}}), agentID)
}

// TestInboxAnswerResumesRun answers a request in the inbox, and the next run, in another
// process, continues.
func TestInboxAnswerResumesRun(t *testing.T) {
	inOffices(t, `{"amount":20000,"to":"ACME"}`, func(t *testing.T, o *office) {
		q := o.begin()
		page := fetch(t, q.Note.Where)
		for _, want := range []string{"trade", "20000", "ACME"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page does not hold %q", want)
			}
		}
		if r := o.inList(); string(r.Current().Call.Args) != `{"amount":20000,"to":"ACME"}` ||
			!strings.Contains(fetch(t, o.h.URL+"/"), r.ID) {
			t.Errorf("listed: %+v", r.Current().Call)
		}

		r := o.run(content.NewMessage(content.User, q.CreateApproval("let me through")))
		if len(r.Refused) != 1 || r.Refused[0].Reason != agent.HeldElsewhere || len(o.ran) != 0 ||
			len(r.UserInputRequests()) != 1 {
			t.Fatalf("an approval in the messages: refused %+v, ran %q", r.Refused, o.ran)
		}
		if again := o.run(content.NewMessage(content.User, q.CreateRejection(""))); len(again.Refused) != 1 ||
			len(o.ran) != 0 ||
			len(o.load().Pending()) != 1 {
			t.Fatalf("nobody has answered: %+v, ran %q", again, o.ran)
		}
		before := must.Get(os.ReadFile(o.file))(t)
		ref := o.inList().ID

		o.votes(approval.Approve, openapi.VoteBody{Reason: "fine"})
		o.ends([]string{`{"amount":20000,"to":"ACME"}`}, "sold")
		r2 := must.Get(o.h.Service.Request(t.Context(), "acme", ref))(t)
		if r2.State != approval.Consumed || r2.Permit.By != "rt" {
			t.Errorf("the request is %s", r2.State)
		}

		// Use a copy of the thread from before the run: the permit has been used, so no other
		// process can run the call.
		must.Do(t, os.WriteFile(o.file, before, 0o600))
		o.model.says = []content.Content{&content.Text{Text: "That is all."}}
		o.ends([]string{`{"amount":20000,"to":"ACME"}`}, "taken before")
	})
}

func TestInboxRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		happen func(o *office)
		reads  string
	}{
		"denied": {func(o *office) {
			o.votes(approval.Deny, openapi.VoteBody{Reason: "too much"})
		}, "too much"},
		"answered": {func(o *office) {
			o.votes(approval.Respond, openapi.VoteBody{Response: "ask again on Monday"})
		}, "ask again on Monday"},
		"expired": {func(o *office) { o.h.Later(25 * time.Hour) }, "nobody approved it in time"},
		"withdrawn": {func(o *office) {
			must.Get(o.h.Service.Cancel(o.t.Context(), "acme", o.inList().ID, "root", "closed for today"))(o.t)
		}, "withdrawn"},
		"frozen": {func(o *office) {
			o.votes(approval.Approve, openapi.VoteBody{})
			must.Do(o.t, o.h.Service.Freeze(o.t.Context(), "acme", "desk", "mara", "odd"))
		}, "frozen"},
		"used too late": {func(o *office) {
			o.votes(approval.Approve, openapi.VoteBody{})
			o.h.Later(16 * time.Minute)
		}, "nobody approved it in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inOffices(t, `{"amount":20000}`, func(t *testing.T, o *office) {
				o.begin()
				c.happen(o)
				o.ends(nil, c.reads)
			})
		})
	}
}

// TestStoreDownRunsNothing checks that the run fails and can be repeated if the approval
// service can't be reached.
func TestStoreDownRunsNothing(t *testing.T) {
	inOffices(t, `{"amount":20000}`, func(t *testing.T, o *office) {
		o.begin()
		o.votes(approval.Approve, openapi.VoteBody{})
		before := must.Get(os.ReadFile(o.file))(t)
		holder := o.of("rt", "desk")
		o.of = func(string, string) hold.Holder { return holder }
		must.Do(t, o.h.Store.Close())
		if r, err := o.try(); err == nil || len(o.ran) != 0 {
			t.Errorf("got %+v, ran %q", r, o.ran)
		}
		if after, err := os.ReadFile(o.file); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the thread changed: %v\n%s\n%s", err, before, after)
		}
	})
}

// TestIdenticalCallsShareTheRun makes the same call twice in one turn. People see one card and
// approve one run.
func TestIdenticalCallsShareTheRun(t *testing.T) {
	inOffices(t, `{"amount":7}`, func(t *testing.T, o *office) {
		o.model.twice = true
		if r := o.run(content.UserText("Sell twice.")); len(r.UserInputRequests()) != 2 {
			t.Fatalf("asked %+v", r.UserInputRequests())
		}
		if p := o.load().Pending(); len(p) != 2 || p[0].Ref != p[1].Ref {
			t.Fatalf("pending %+v", p)
		}
		o.votes(approval.Approve, openapi.VoteBody{})
		o.run()
		got := strings.Join(o.results(), " ")
		if len(o.ran) != 1 || strings.Count(got, "sold") != 1 || strings.Count(got, "taken before") != 1 {
			t.Errorf("ran %q, the model reads %s", o.ran, got)
		}
	})
}

func TestInboxEditBelowTheThreshold(t *testing.T) {
	for name, c := range map[string]struct{ asked, edited string }{
		"still asked about":         {`{"amount":20000}`, `{"amount": 15000}`},
		"needs nobody by the rules": {`{"amount":20000}`, `{"amount":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inOffices(t, c.asked, func(t *testing.T, o *office) {
				o.h.Rewrite("agents/desk.agf.yaml", `Sell {{tool_args.amount}}?"}`,
					`Sell {{tool_args.amount}}?", condition: {args_match: {amount: {gt: 10}}}}`)
				o.begin()
				r := o.inList()
				must.Get(o.people("mara").Edit(t.Context(), r.ID, r.Version,
					openapi.EditBody{Arguments: c.edited, Binding: r.Binding(), ShownFully: true}, false))(t)
				o.ends([]string{c.edited}, "sold")
			})
		})
	}
}
