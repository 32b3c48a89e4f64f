package layer_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/internal/must"
	"pgregory.net/rapid"
)

// world is an inner client that makes random requests, including two with the same id. It
// compares every approval that it gets with the requests that the caller saw.
type world struct {
	t *rapid.T
	// The layer holds answers back, so that an id can be answered twice before they reach the
	// client.
	keeps bool
	bind  bool                               // the layer leaves the request for a rule on answers
	open  map[string][]*content.FunctionCall // unanswered calls that the caller saw, by request id
	asked map[string]*content.FunctionCall   // the last call that this client requested, by request id
	past  []content.Content                  // answers that were sent before
	acts  map[string]int                     // approvals that reached the client
}

func (w *world) Respond(_ context.Context, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
	for a := range content.All[*content.ToolApprovalResponse](messages) {
		w.take(a)
	}
	m := assistant()
	for range rapid.IntRange(0, 2).Draw(w.t, "asks") {
		id, call := w.drawID(), w.drawCall()
		w.asked[id] = call
		m.Contents = append(m.Contents, ask(id, call))
	}
	return &agent.Response{Messages: list(m)}, nil
}

func (w *world) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		r, _ := w.Respond(ctx, messages, opt)
		for _, u := range updatesOf(r) {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// take compares an answer with the requests that were shown. Automatic approvals must be for
// calls that were requested.
func (w *world) take(a *content.ToolApprovalResponse) {
	if a.Always != content.AlwaysNot && !w.bind {
		w.t.Fatalf("the wish for a rule came through with %s", tellOne(a))
	}
	if strings.HasPrefix(a.Reason, "Approved by standing") {
		w.acts["by a rule"]++
		if !content.SameCall(w.asked[a.RequestID], a.Call) {
			w.t.Fatalf("%s was approved automatically, asked was %v", tellOne(a), w.asked[a.RequestID])
		}
		return
	}

	i := slices.IndexFunc(w.open[a.RequestID], func(c *content.FunctionCall) bool {
		return content.SameCall(c, a.Call)
	})
	if i < 0 {
		w.t.Fatalf("%s came through; shown and unanswered are %v", tellOne(a), w.open[a.RequestID])
	}
	w.open[a.RequestID] = slices.Delete(w.open[a.RequestID], i, i+1)
	w.acts["by a person"]++
	if a.Edited != nil && (!a.Approved || a.Edited.Name != a.Call.ToolName() || a.Edited.CallID != a.Call.ID()) {
		w.t.Fatalf("the edit %s came through", tellOne(a))
	}
}

func (w *world) drawID() string { return rapid.SampledFrom([]string{"q1", "q2", "q3"}).Draw(w.t, "id") }

func (w *world) drawCall() *content.FunctionCall {
	return call(rapid.SampledFrom([]string{"c1", "c2"}).Draw(w.t, "call id"),
		rapid.SampledFrom([]string{"pay", "look"}).Draw(w.t, "tool"),
		rapid.SampledFrom([]string{"", `{"n":1}`, `{"n":1.0000000000000000001}`, `{"n":`}).Draw(w.t, "args"))
}

// drawInput generates the input of a malicious caller: valid, modified, forged, repeated and
// old answers, and modified requests.
func (w *world) drawInput() []*content.Message {
	var out []*content.Message
	for range rapid.IntRange(0, 4).Draw(w.t, "contents") {
		c := w.drawAnswer()
		if q, ok := c.(*content.ToolApprovalRequest); ok {
			out = append([]*content.Message{assistant(q)}, out...)
			continue
		}
		w.past = append(w.past, c)
		out = append(out, user(c))
	}

	return append(out, user(text("so")))
}

func (w *world) drawAnswer() content.Content {
	id := w.drawID()
	a := yes(id, w.drawCall())
	a.Approved = rapid.IntRange(0, 3).Draw(w.t, "approved") > 0
	a.Always = rapid.SampledFrom([]content.AlwaysScope{content.AlwaysNot, content.AlwaysArguments, content.AlwaysTool}).
		Draw(w.t, "always")
	switch rapid.IntRange(0, 7).Draw(w.t, "deed") {
	case 0: // as drawn, mostly of another call
	case 1:
		a.Edited = w.drawCall()
		a.Call = w.shown(id)
	case 2:
		return ask(id, w.drawCall())
	case 3:
		if len(w.past) > 0 {
			return rapid.SampledFrom(w.past).Draw(w.t, "again")
		}
	default:
		a.Call = w.shown(id)
	}

	return a
}

// shown returns the call that an honest answer to an id contains. Sometimes it returns nil,
// like wire formats without the call.
func (w *world) shown(id string) content.ToolCall {
	if c := w.open[id]; len(c) > 0 {
		return c[len(c)-1]
	}
	return nil
}

// see records what the caller saw. A different call under the same id replaces the previous
// one.
func (w *world) see(r *agent.Response) {
	for _, q := range r.UserInputRequests() {
		id, c := q.InputRequestID(), rounds.FunctionCall(q)
		known := slices.ContainsFunc(w.open[id],
			func(o *content.FunctionCall) bool { return content.SameCall(o, c) })
		switch {
		case !w.keeps:
			w.open[id] = []*content.FunctionCall{c}
		case !known:
			w.open[id] = append(w.open[id], c)
		}
	}
}

// TestNothingForgedComesThrough lets a malicious caller use the layers. Every approval that
// reaches the inner client must be for exactly the call that was shown under its id, and be
// given once, or be covered by a rule.
func TestNothingForgedComesThrough(t *testing.T) {
	acts := map[string]int{}
	for name, build := range map[string]func(agent.ChatClient) agent.ChatClient{
		"binding": func(c agent.ChatClient) agent.ChatClient {
			return layer.NewBinding(c, layer.BindingConfig{Log: quiet()})
		},
		"standing": func(c agent.ChatClient) agent.ChatClient {
			return layer.NewStanding(c, layer.StandingConfig{Log: quiet()})
		},
		"standing, tool scope": func(c agent.ChatClient) agent.ChatClient {
			return layer.NewStanding(c, layer.StandingConfig{AllowToolScope: true, Log: quiet()})
		},
		"standing, one at a time": func(c agent.ChatClient) agent.ChatClient {
			return layer.NewStanding(c, layer.StandingConfig{OneAtATime: true, MaxUses: 2, Log: quiet()})
		},
		"both": func(c agent.ChatClient) agent.ChatClient {
			return layer.NewStanding(layer.NewBinding(c, layer.BindingConfig{Log: quiet()}),
				layer.StandingConfig{Log: quiet()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := &world{t: t, keeps: strings.Contains(name, "one at a time"), bind: name == "binding", acts: acts}
				w.open, w.asked = map[string][]*content.FunctionCall{}, map[string]*content.FunctionCall{}
				w.talk(build(w))
			})
		})
	}

	if acts["by a person"] == 0 || acts["by a rule"] == 0 {
		t.Errorf("hardly anything came through: %v", acts)
	}
}

func (w *world) talk(c agent.ChatClient) {
	thread := agent.NewThread("t")
	opt := &agent.Options{Thread: thread, Tools: []agent.Tool{function("pay"), function("look")}}
	for range rapid.IntRange(2, 10).Draw(w.t, "runs") {
		r := must.Get(run(c, w.drawInput(), opt, rapid.Bool().Draw(w.t, "streaming")))(w.t)
		w.see(r)
		// Another process continues.
		raw := must.Get(json.Marshal(thread.State))(w.t)
		opt.Thread = agent.NewThread("t")
		must.Do(w.t, json.Unmarshal(raw, &opt.Thread.State))
		thread = opt.Thread
	}
}

// FuzzState gives every layer an arbitrary state. It must be read or rejected, and only
// requests in the state may be approved by it.
func FuzzState(f *testing.F) {
	f.Add(
		[]byte(
			`{"open":[{"id":"q1","request":{"content":{"$type":"toolApprovalRequest","requestId":"q1",` +
				`"toolCall":{"$type":"functionCall","callId":"c1","name":"pay"}},"arguments":"{}"}}]}`,
		),
	)
	f.Add(
		[]byte(
			`{"requests":[{"content":{"$type":"toolApprovalRequest","requestId":"q1",` +
				`"toolCall":{"$type":"functionCall","callId":"c1","name":"pay"}}}],"thread":"t"}`,
		),
	)
	f.Add(
		[]byte(`{"shown":{},"queue":[null],"answers":[{}],"waiting":[{}],"rules":[{"id":"r","tool":"pay","left":1}]}`),
	)
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		for _, p := range []profile{safe, compatible} {
			for name, build := range clients(p, true) {
				opt := on(someTools...)
				for _, key := range []string{
					layer.BindingState,
					layer.BypassState,
					layer.InvocableState,
					layer.StandingState,
				} {
					opt.Thread.State[key] = raw
				}

				m := says(list(assistant(ask("q1", call("c1", "pay", "")))), done, done, done)
				if _, err := run(build(m), list(user(yes("q1", call("c1", "pay", "")))), opt, false); err == nil &&
					len(m.seen) == 0 &&
					!strings.Contains(string(raw), "q") {
					t.Errorf("%s: the inner client was not asked", name)
				}
			}
		}
	})
}
