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

// world is an inner client that asks about whatever it likes, also
// twice under one id, and holds every approval that it is given against
// what the caller was shown.
type world struct {
	t *rapid.T
	// the layer keeps answers back, so that an id can be answered twice
	// before they come through
	keeps bool
	bind  bool                               // the layer leaves the wish for a rule on answers
	open  map[string][]*content.FunctionCall // what the caller was shown under each id and has not answered
	asked map[string]*content.FunctionCall   // what this client asked last under each id
	past  []content.Content                  // answers that were sent before
	acts  map[string]int                     // what came through
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

// take holds an answer against what was shown. Automatic approvals are
// of calls that were asked about.
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

// drawInput makes what a caller sends who means no good: true answers,
// tampered, forged, repeated and old ones, and doctored requests.
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
	case 0: // as drawn: mostly of another call
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

// shown is the call that an honest answer to an id holds; nil at times,
// as on wires without one.
func (w *world) shown(id string) content.ToolCall {
	if c := w.open[id]; len(c) > 0 {
		return c[len(c)-1]
	}
	return nil
}

// see notes what the caller was shown. Another call under an id takes
// the place of the one before.
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

// TestNothingForgedComesThrough lets a caller who means no good talk
// through the layers: every approval that comes through is of a call
// that was shown under its id, exactly that call, and answered once; or
// of one that a rule covers.
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
				w := &world{t: t, keeps: strings.Contains(name, "one at a time"), bind: name == "binding",
					acts: acts}
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
		// Another process goes on.
		raw := must.Get(json.Marshal(thread.State))(w.t)
		opt.Thread = agent.NewThread("t")
		must.Do(w.t, json.Unmarshal(raw, &opt.Thread.State))
		thread = opt.Thread
	}
}

// FuzzState gives every layer a state that somebody wrote: it is read
// or refused, and nothing is approved by it that is not in it.
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
		[]byte(
			`{"shown":{},"queue":[null],"answers":[{}],"waiting":[{}],"rules":[{"id":"r","tool":"pay","left":1}]}`,
		),
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
