package serve

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// seller is a model that calls one tool after each message of the user and then reports the
// result.
type seller struct{ call content.FunctionCall }

func (s *seller) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	last := messages[len(messages)-1]
	next := content.NewMessage(content.Assistant)
	if last.Role == content.User {
		call := s.call
		next.Contents = append(next.Contents, &call)
	} else {
		for _, c := range last.Contents {
			if r, ok := c.(*content.FunctionResult); ok {
				next.Contents = append(next.Contents, &content.Text{Text: "it gave " + string(r.Result)})
			}
		}
	}

	return &agent.Response{Messages: []*content.Message{next}}, nil
}

func (s *seller) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return agent.StreamOf(s.Respond(ctx, messages, opt))
}

// tool counts its runs, and blocks if wait is set.
type tool struct {
	mu   sync.Mutex
	ran  []string
	wait chan struct{}
}

func (l *tool) run(ctx context.Context, args json.RawMessage) (any, error) {
	l.mu.Lock()
	l.ran = append(l.ran, string(args))
	l.mu.Unlock()
	if l.wait == nil {
		return "sold", nil
	}
	select {
	case <-l.wait:
		return "sold", nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *tool) runs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ran)
}

// world is an agent behind both hosts.
type world struct {
	t     *testing.T
	store agent.ThreadStore
	tool  *tool
	agent agent.Agent
	a2a   *A2A
	url   string // URL of the A2A host
	agui  string
}

const (
	hers  = "token-of-ann"
	other = "token-of-bob"
)

func config(a agent.Agent, store agent.ThreadStore) Config {
	return Config{Agent: a, Store: store, Callers: Tokens(map[string]string{Hash(hers): "ann", Hash(other): "bob"})}
}

// newWorld serves an agent whose sales need the caller's approval if approve is set, and none
// otherwise.
func newWorld(t *testing.T, approve bool) *world {
	t.Helper()
	w := &world{t: t, store: must.Get(filestore.New(t.TempDir()))(t), tool: &tool{}}
	f := agent.NewFunction("sell", "Sells.", nil, w.tool.run)
	if approve {
		f = agent.RequireApproval(f)
	}
	model := &seller{content.FunctionCall{CallID: "call_1", Name: "sell", Arguments: json.RawMessage(`{"amount":5}`)}}
	w.agent = agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{}),
		agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{f}})
	w.serve(config(w.agent, w.store))
	return w
}

// serve starts the hosts, as another process with the same store would.
func (w *world) serve(cfg Config) {
	w.t.Helper()
	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String() + "/"
	w.a2a = must.Get(NewA2A(cfg, Card{URL: w.url, Description: "Sells."}))(w.t)
	server.Config.Handler = w.a2a
	server.Start()
	ui := must.Get(NewAGUI(cfg))(w.t)
	second := httptest.NewServer(ui)
	w.agui = second.URL
	w.t.Cleanup(func() {
		w.a2a.Close()
		ui.Close()
		server.Close()
		second.Close()
	})
}

func (w *world) client(token string) *a2a.Client {
	w.t.Helper()
	return must.Get(a2a.NewClient(a2a.ClientConfig{URL: w.url, Token: token, Loopback: true}))(w.t)
}

// planner returns an agent whose only tool is the remote agent.
func (w *world) planner(cfg a2a.RemoteConfig) agent.Agent {
	cfg.Name = "ask_seller"
	model := &seller{content.FunctionCall{CallID: "call_9", Name: "ask_seller",
		Arguments: json.RawMessage(`{"input":"Sell five."}`)}}
	return agent.NewChatAgent(agent.NewFunctionInvoking(model, agent.LoopConfig{DetailedErrors: true}),
		agent.ChatAgentConfig{Name: "planner", Tools: []agent.Tool{a2a.NewRemote(w.client(hers), cfg)}})
}

// text returns a message with one text.
func text(id, words string) *a2a.Message {
	return &a2a.Message{MessageID: id, Role: a2a.RoleUser, Parts: []a2a.Part{{Text: &words}}}
}

// reach waits until a task has a state.
func (w *world) reach(c *a2a.Client, id string, state a2a.State) *a2a.Task {
	w.t.Helper()
	return testwait.Value(w.t, "the task to be "+string(state), func() (*a2a.Task, bool) {
		task := must.Get(c.Task(w.t.Context(), id))(w.t)
		if task.Status.State != state && task.Status.State.Ended() {
			w.t.Fatalf("the task is %s: %s", task.Status.State, task.Text())
		}
		return task, task.Status.State == state
	})
}

// post sends a body and returns the status and the response body.
func post(t *testing.T, url, token, body string) (int, string) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", a2a.Version)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	var out strings.Builder
	must.Get(copyTo(&out, resp))(t)
	return resp.StatusCode, out.String()
}
