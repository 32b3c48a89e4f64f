package raptools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/raptools"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// The gateway's plan requires approval of write, the runtime's plan of send.
const (
	gatewayFile = `schema_version: "1.0.0"
metadata: {id: keeper, name: Keeper, version: "1.0.0", description: Keeps tools., namespace: acme.tools}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Keep., model: any}}
action_space: {local_tools: [{alias: read}, {alias: write, approval: true}, {alias: send}, {alias: pay}]}
`
	clerkFile = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Writes., namespace: acme.tools}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Write., model: any}}
constraints:
  governance_policies:
    - {policy_ref: acme.money, required: true, description: Who approves payments.}
action_space: {local_tools: [{alias: read}, {alias: write}, {alias: send, approval: true}, {alias: pay}]}
`
	moneyPolicy = `schema_version: "1.0.0"
policy_ref: acme.money
description: Who approves payments.
rules:
  - {id: two, match: {targets: [pay]}, approval: true, require: {stages: [{group: treasury, people: 1}]}}
`
)

func plan(t *testing.T, file string, policies ...string) func(context.Context) (*resolve.Plan, error) {
	t.Helper()
	a, findings := schema.Parse("a.agf.yaml", []byte(file))
	if a == nil {
		t.Fatal(findings)
	}
	var all []*policy.Policy
	for _, text := range policies {
		p, findings := policy.Parse("p.policy.yaml", []byte(text))
		if p == nil {
			t.Fatal(findings)
		}
		all = append(all, p)
	}

	set, findings := policy.NewSet(all...)
	if set == nil {
		t.Fatal(findings)
	}
	compiled := must.Get(resolve.Compile(a, set, resolve.Options{}))(t)

	return func(context.Context) (*resolve.Plan, error) { return compiled, nil }
}

// office is a real gateway with four operations, and a runtime that calls it for the loop of an
// agent. Both keep their calls in SQLite.
type office struct {
	t       *testing.T
	records store.Records
	back    *httptest.Server // the gateway
	front   *httptest.Server // callbacks of the runtime
	handler http.Handler     // the current handler
	stop    func()
	user    *raptools.User
	threads *runtime.Threads
	people  hold.People // people of the runtime, if they are not the user
	server  runtime.Server
	mu      sync.Mutex
	ran     []string
	hang    bool // runs block until their context ends
}

func newOffice(t *testing.T, change ...func(*office)) *office {
	t.Helper()
	o := &office{t: t}
	db := must.Get(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "calls.db"), sqlite.Options{}))(t)
	t.Cleanup(func() { db.Close() })
	o.records = db
	o.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		handler := o.handler
		o.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(o.front.Close)
	o.serveGateway()
	o.server = runtime.Server{Name: "files", Peer: peer.Config{URL: o.back.URL}}
	for _, f := range change {
		f(o)
	}
	o.open()
	t.Cleanup(func() { o.stop() })

	return o
}

func (o *office) serveGateway() {
	mux := http.NewServeMux()
	o.back = httptest.NewServer(mux)
	o.t.Cleanup(o.back.Close)
	cfg := gateway.Config{Common: o.common("gateway", gatewayFile), Name: "files", PublicURL: o.back.URL,
		Ask:     gateway.AskUser,
		Callers: []gateway.Caller{{Name: "clerk", Callbacks: peer.Config{Allow: []string{o.front.URL}}}}}
	for _, name := range []string{"read", "write", "send", "pay"} {
		cfg.Operations = append(cfg.Operations, rap.Operation{
			Name:        name,
			Description: "It can " + name + ".",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
			Run:         o.run,
		})
	}

	g := must.Get(gateway.New(cfg))(o.t)
	mux.Handle("/", g)
	o.working(g.Run)
}

func (o *office) common(namespace, file string, policies ...string) rap.Common {
	return rap.Common{
		Records:   o.records,
		Namespace: namespace,
		Key:       bytes.Repeat([]byte{7}, 32),
		Poll:      20 * time.Millisecond,
		Plan:      plan(o.t, file, policies...),
		Record:    func(context.Context, string, string, string, map[string]any) error { return nil },
	}
}

// working runs a function until the end of the test or until stop is called.
func (o *office) working(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(ctx) // returns when ctx ends
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	o.t.Cleanup(stop)

	return stop
}

func (o *office) run(ctx context.Context, job rap.Job) (rap.Outcome, error) {
	o.mu.Lock()
	o.ran = append(o.ran, job.Operation+string(job.Arguments))
	hang := o.hang
	o.mu.Unlock()
	if hang {
		<-ctx.Done()
		o.mu.Lock()
		o.ran = append(o.ran, "stopped")
		o.mu.Unlock()
		return rap.Outcome{}, ctx.Err()
	}

	return rap.Outcome{Text: "did " + job.Operation}, nil
}

func (o *office) runs() string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return strings.Join(o.ran, " ")
}

// open makes the runtime. After a stop it acts as another process, which only has the records.
func (o *office) open() {
	o.t.Helper()
	o.user = must.Get(raptools.NewUser(raptools.UserConfig{
		Records:   o.records,
		Namespace: "user",
		Key:       bytes.Repeat([]byte{8}, 32),
	}))(o.t)
	cfg := runtime.Config{Common: o.common("runtime", clerkFile, moneyPolicy),
		Servers: []runtime.Server{o.server}, CallbackURL: o.front.URL}
	cfg.People = o.user
	if o.people != nil {
		cfg.People, o.user = o.people, nil
	}
	r := must.Get(runtime.New(cfg))(o.t)
	o.mu.Lock()
	o.handler = r
	o.mu.Unlock()
	o.threads = must.Get(r.As(approval.Asker{Token: "clerk", Person: "ann"}))(o.t)
	o.stop = o.working(r.Run)
}

// model calls one operation and then reports the result.
type model struct{ operation, arguments string }

func (m model) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	for r := range content.All[*content.FunctionResult](messages) {
		text := "it says " + string(r.Result)
		return &agent.Response{Messages: []*content.Message{content.AssistantText(text)}}, nil
	}
	call := &content.FunctionCall{CallID: "c1", Name: m.operation, Arguments: json.RawMessage(m.arguments)}

	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, call)}}, nil
}

func (m model) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(m.Respond(ctx, messages, opt))
}

// clerk returns the chat agent with the tools that are offered to the thread.
func (o *office) clerk(operation string) agent.Agent {
	o.t.Helper()
	tools := must.Get(raptools.Tools(o.t.Context(), raptools.Config{
		Threads: o.threads,
		Thread:  "desk",
		For:     "ann",
		User:    o.user,
		Inbox:   "https://inbox.example",
	}))(o.t)
	if len(tools) != 4 {
		o.t.Fatalf("%d tools", len(tools))
	}
	loop := agent.NewFunctionInvoking(model{operation, `{"path":"/a"}`},
		agent.LoopConfig{Decider: raptools.LeaveToRuntime(agent.ByPlan(nil, agent.PlanOptions{}))})

	return agent.NewChatAgent(loop, agent.ChatAgentConfig{Name: "clerk", Tools: tools})
}

func (o *office) turn(a agent.Agent, th *agent.Thread, m ...*content.Message) *agent.Response {
	o.t.Helper()
	return must.Get(a.Run(o.t.Context(), th, m...))(o.t)
}

// asks runs the clerk until it has one request.
func (o *office) asks(operation string) (agent.Agent, *agent.Thread, content.InputRequest) {
	o.t.Helper()
	a, th := o.clerk(operation), agent.NewThread("t")
	asked := o.turn(a, th, content.UserText("go")).UserInputRequests()
	if len(asked) != 1 {
		o.t.Fatalf("asked %d things", len(asked))
	}

	return a, th, asked[0]
}

func answers(c ...content.Content) *content.Message { return content.NewMessage(content.User, c...) }

// said compares the text of a run.
func said(t *testing.T, resp *agent.Response, want string) {
	t.Helper()
	if got := resp.Text(); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// pick answers a question with the choice whose label contains a word.
func pick(t *testing.T, q content.InputRequest, word string) content.InputResponse {
	t.Helper()
	form := q.(*content.StructuredInputRequest)
	var schema struct {
		Properties struct {
			Choice struct {
				OneOf []struct{ Const, Title string }
			}
		}
	}
	must.Do(t, json.Unmarshal(form.Schema, &schema))
	for _, o := range schema.Properties.Choice.OneOf {
		if strings.Contains(strings.ToLower(o.Title), word) {
			return must.Get(form.CreateResponse(fmt.Appendf(nil, `{"choice":%q}`, o.Const)))(t)
		}
	}
	t.Fatalf("no label speaks of %q: %s", word, form.Schema)

	return nil
}

func TestARunWithoutAQuestion(t *testing.T) {
	o := newOffice(t)
	said(t, o.turn(o.clerk("read"), agent.NewThread("t"), content.UserText("go")), `it says "did read"`)
}

func TestAToolsQuestionIsTheLoops(t *testing.T) {
	for word, want := range map[string]struct{ says, runs string }{
		"allow once": {`it says "did write"`, `write{"path":"/a"}`},
		"deny":       {`it says "Error: the user denied this call"`, ``},
		"dismiss":    {`it says "Error: the user denied this call"`, ``},
	} {
		t.Run(word, func(t *testing.T) {
			o := newOffice(t)
			a, th, q := o.asks("write")
			form := q.(*content.StructuredInputRequest)
			if !strings.HasPrefix(form.Text, `The tool server files asks about write {"path":"/a"}:`+"\n> ") {
				t.Errorf("asked %q", form.Text)
			}
			if o.runs() != "" {
				t.Error("it ran before the answer")
			}
			if again := o.turn(a, th).UserInputRequests(); len(again) != 1 ||
				again[0].InputRequestID() != q.InputRequestID() {
				t.Errorf("asked again %v", again)
			}
			said(t, o.turn(a, th, answers(pick(t, q, word))), want.says)
			if o.runs() != want.runs {
				t.Errorf("ran %q", o.runs())
			}
		})
	}
}

func TestNoAnswerIsNone(t *testing.T) {
	o := newOffice(t)
	a, th, q := o.asks("write")
	no := q.(*content.StructuredInputRequest).CreateRejection("not now")
	said(t, o.turn(a, th, answers(no)), `it says "Error: nobody answered its question: not now"`)
	if o.runs() != "" {
		t.Errorf("ran %q", o.runs())
	}
}

func TestTheRuntimesApprovalIsTheLoops(t *testing.T) {
	for _, yes := range []bool{true, false} {
		o := newOffice(t)
		a, th, q := o.asks("send")
		approve := q.(*content.ToolApprovalRequest)
		if approve.Call.ToolName() != "send" || string(approve.Call.Args()) != `{"path":"/a"}` ||
			approve.Note.Agent != "files" {
			t.Fatalf("asked about %+v", approve.Call)
		}
		answer, want := approve.CreateApproval(""), `it says "did send"`
		if !yes {
			answer = approve.CreateRejection("no")
			want = `it says "Error: not run: its approval was denied: no"`
		}
		said(t, o.turn(a, th, answers(answer)), want)
		if ran := o.runs() != ""; ran != yes {
			t.Errorf("approved: %t, ran: %t", yes, ran)
		}
	}
}

func TestAnEditIsRefused(t *testing.T) {
	o := newOffice(t)
	a, th, q := o.asks("send")
	edit := must.Get(q.(*content.ToolApprovalRequest).CreateEdit(json.RawMessage(`{"path":"/b"}`), ""))(t)
	resp := o.turn(a, th, answers(edit))
	if len(resp.Refused) != 1 || resp.Refused[0].Reason != agent.BadAnswer || len(resp.UserInputRequests()) != 1 {
		t.Errorf("refused %v", resp.Refused)
	}
	if o.runs() != "" {
		t.Errorf("ran %q", o.runs())
	}
}

// The user of the loop can't answer for the people that a policy names, or for the people that the
// tool server asks.
func TestOnlyOthersMayApprove(t *testing.T) {
	o := newOffice(t)
	resp := o.turn(o.clerk("pay"), agent.NewThread("t"), content.UserText("go"))
	if len(resp.UserInputRequests()) != 0 || !strings.Contains(resp.Text(), "other people than the user") {
		t.Errorf("said %q", resp.Text())
	}
	o = newOffice(t, func(o *office) { o.server.Groups = []string{"ops"} })
	resp = o.turn(o.clerk("write"), agent.NewThread("t"), content.UserText("go"))
	if len(resp.UserInputRequests()) != 0 || !strings.Contains(resp.Text(), "others than the user") {
		t.Errorf("said %q", resp.Text())
	}
	if o.runs() != "" {
		t.Errorf("ran %q", o.runs())
	}
}

// The next process only has the thread and the records.
func TestAnotherProcessGoesOn(t *testing.T) {
	o := newOffice(t)
	_, th, q := o.asks("write")
	kept := must.Get(th.Encode())(t)
	o.stop()
	o.open()
	next := &agent.Thread{}
	must.Do(t, json.Unmarshal(kept, next))
	said(t, o.turn(o.clerk("write"), next, answers(pick(t, q, "allow once"))), `it says "did write"`)
	if o.runs() != `write{"path":"/a"}` {
		t.Errorf("ran %q", o.runs())
	}
}

func TestACancelledRunInterruptsItsCall(t *testing.T) {
	o := newOffice(t)
	o.hang = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = o.clerk("read").Run(ctx, agent.NewThread("t"), content.UserText("go")) // the result doesn't matter
	}()
	testwait.Until(t, "the run", func() bool { return o.runs() != "" })
	cancel()
	<-ended
	testwait.Until(t, "the tool's end", func() bool { return strings.HasSuffix(o.runs(), " stopped") })
}

// elsewhere are people who answer when the test says so.
type elsewhere struct {
	*hold.Local
	answer chan hold.Answer
}

func newElsewhere() *elsewhere {
	e := &elsewhere{answer: make(chan hold.Answer, 1)}
	e.Local = hold.NewLocal(func(ctx context.Context, _ hold.Question) hold.Answer {
		select {
		case a := <-e.answer:
			return a
		case <-ctx.Done():
			return hold.Answer{}
		}
	}, nil)

	return e
}

func TestPeopleElsewhereAnswer(t *testing.T) {
	people := newElsewhere()
	o := newOffice(t, func(o *office) { o.people = people })
	a, th, q := o.asks("write")
	text := q.(*content.TextApprovalRequest)
	if text.Text != "People are asked about the call write of the tool server files." ||
		text.Note.Where != "https://inbox.example" {
		t.Errorf("shown %+v", text)
	}
	resp := o.turn(a, th, answers(text.CreateApproval("")))
	if len(resp.Refused) != 1 || resp.Refused[0].Reason != agent.HeldElsewhere || o.runs() != "" {
		t.Fatalf("refused %v, ran %q", resp.Refused, o.runs())
	}
	people.answer <- hold.Answer{State: hold.Chosen, Selected: 0, By: "mara"}
	testwait.Until(t, "the run", func() bool { return o.runs() != "" })
	testwait.Until(t, "the result", func() bool { return o.turn(a, th).Text() == `it says "did write"` })
}

// wantsSignIn returns a tool server whose only operation requires its user to sign in, and ends when
// end is called.
func wantsSignIn(t *testing.T, link string) (server *httptest.Server, end func()) {
	t.Helper()
	var mu sync.Mutex
	var in struct {
		Group string `json:"group_id"`
		ID    string `json:"id"`
		URL   string `json:"callback_url"`
	}
	asked := make(chan struct{}) // closed when the runtime has the link
	post := func(kind, member, text string) {
		mu.Lock()
		defer mu.Unlock()
		body := fmt.Sprintf(`{"type":%q,"group_id":%q,"id":%q,%q:%q}`, kind, in.Group, in.ID, member, text)
		resp, err := http.Post(in.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/rap-toolset", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const tool = `{"name":%q,"description":"x","inputSchema":{"type":"object"}}`
		var tools []string
		for _, name := range []string{"read", "write", "send", "pay"} {
			tools = append(tools, fmt.Sprintf(tool, name))
		}
		fmt.Fprintf(w, `{"name":"mail","endpoint":"http://%s/run","tools":[%s]}`, r.Host, strings.Join(tools, ","))
	})
	mux.HandleFunc("POST /run", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		must.Do(t, json.Unmarshal(body, &in))
		mu.Unlock()
		go func() {
			post("oauth", "auth_url", link)
			close(asked)
		}()
	})
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	server = httptest.NewServer(mux)
	t.Cleanup(server.Close)

	return server, func() {
		<-asked
		post("tool_result", "text", "signed in")
	}
}

func TestSignIn(t *testing.T) {
	server, end := wantsSignIn(t, "https://idp.example/authorize?state=8d#x")
	o := newOffice(t, func(o *office) {
		o.server.Peer = peer.Config{URL: server.URL, Allow: []string{"https://idp.example"}}
	})
	a, th, q := o.asks("read")
	text := q.(*content.TextApprovalRequest)
	if want := "wants you to sign in at idp.example. Agree once you have: https://idp.example/authorize?state=8d#x"; !strings.
		HasSuffix(text.Text, want) {
		t.Errorf("asked %q", text.Text)
	}
	end()
	said(t, o.turn(a, th, answers(text.CreateApproval(""))), `it says "signed in"`)
}

func TestNobodySignsIn(t *testing.T) {
	server, _ := wantsSignIn(t, "https://idp.example/authorize")
	o := newOffice(t, func(o *office) {
		o.server.Peer = peer.Config{URL: server.URL, Allow: []string{"https://idp.example"}}
	})
	a, th, q := o.asks("read")
	no := q.(*content.TextApprovalRequest).CreateRejection("")
	said(t, o.turn(a, th, answers(no)), `it says "Error: interrupted: the user did not sign in"`)
}

// A sign-in link to an origin that is not registered must not be shown.
func TestASignInAnywhereElseIsNotShown(t *testing.T) {
	server, end := wantsSignIn(t, "https://evil.example/authorize")
	o := newOffice(t, func(o *office) {
		o.server.Peer = peer.Config{URL: server.URL, Allow: []string{"https://idp.example"}}
	})
	ended := make(chan *agent.Response, 1)
	go func() {
		resp, err := o.clerk("read").Run(t.Context(), agent.NewThread("t"), content.UserText("go"))
		if err != nil {
			t.Error(err)
		}
		ended <- resp
	}()
	end()
	said(t, <-ended, `it says "signed in"`)
}
