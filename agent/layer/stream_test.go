package layer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/layer"
	"github.com/assent-dev/assent/internal/must"
	"pgregory.net/rapid"
)

func run(c agent.ChatClient, messages []*content.Message, opt *agent.Options, streaming bool) (*agent.Response, error) {
	if streaming {
		return agent.Collect(c.Stream(context.Background(), messages, opt))
	}
	return c.Respond(context.Background(), messages, opt)
}

// rejoin converts a response to the form that joining its updates gives.
func rejoin(r *agent.Response) []*content.Message { return agent.Join(updatesOf(r)).Messages }

// clients returns all layers by name.
func clients(p profile, oneAtATime bool) map[string]func(agent.ChatClient) agent.ChatClient {
	look := layer.Predicate{
		Name: "looking is free",
		Approve: func(_ context.Context, a layer.Asked) bool {
			return a.Call.Name == "peek"
		},
	}
	standing := layer.StandingConfig{Predicates: []layer.Predicate{look}, OneAtATime: oneAtATime,
		AllowToolScope: true, MaxRounds: 2, Log: quiet()}
	bypass := layer.BypassConfig{Log: quiet()}
	return map[string]func(agent.ChatClient) agent.ChatClient{
		"binding": func(c agent.ChatClient) agent.ChatClient {
			return p.binding(c, layer.BindingConfig{Log: quiet()})
		},
		"bypass":    func(c agent.ChatClient) agent.ChatClient { return p.bypass(c, bypass) },
		"invocable": func(c agent.ChatClient) agent.ChatClient { return p.invocableBypass(c, bypass) },
		"standing":  func(c agent.ChatClient) agent.ChatClient { return p.standing(c, standing) },
		"all":       func(c agent.ChatClient) agent.ChatClient { return p.stack(c, standing) },
	}
}

var someTools = []agent.Tool{function("peek"), agent.RequireApproval(function("pay")), function("look"), declared("ui")}

// drawTurn generates a response of an inner client. Its calls and requests have unique ids.
func drawTurn(t *rapid.T, n *int, ids bool) []*content.Message {
	var out []*content.Message
	for i := range rapid.IntRange(1, 2).Draw(t, "messages") {
		m := assistant()
		if ids {
			m.ID = fmt.Sprintf("m%d-%d", *n, i)
		}
		for range rapid.IntRange(1, 3).Draw(t, "contents") {
			m.Contents = append(m.Contents, drawContent(t, n))
		}
		out = append(out, m)
	}

	return out
}

func drawContent(t *rapid.T, n *int) content.Content {
	*n++
	id := fmt.Sprint(*n)
	c := call("c"+id, rapid.SampledFrom([]string{"peek", "pay", "look", "ui", "what"}).Draw(t, "tool"),
		rapid.SampledFrom([]string{"", `{"a":1}`, `{"a":2}`}).Draw(t, "args"))
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return text("t" + id)
	case 1:
		return c
	case 2:
		return &content.FunctionResult{CallID: fmt.Sprint("c", *n-1), Result: []byte("1")}
	case 3:
		return &content.TextApprovalRequest{RequestID: "q" + id, Text: "fine?"}
	case 4:
		return harmless("q"+id, c)
	}

	return ask("q"+id, c)
}

// TestStreamIsRespond runs the same script with and without streaming. The joined stream must
// be the same as the response, for the caller and for the inner client.
func TestStreamIsRespond(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		for _, one := range []bool{false, true} {
			for name, build := range clients(p, one) {
				t.Run(fmt.Sprint(name, p, one), func(t *testing.T) {
					t.Parallel()
					rapid.Check(t, func(t *rapid.T) { checkStreamIsRespond(t, p, build) })
				})
			}
		}
	}
}

func checkStreamIsRespond(t *rapid.T, p profile, build func(agent.ChatClient) agent.ChatClient) {
	n, ids := 0, rapid.Bool().Draw(t, "messages have ids")
	var turns [][]*content.Message
	for range 12 {
		turns = append(turns, drawTurn(t, &n, ids))
	}
	models := []*model{says(turns...), says(turns...)}
	opts := []*agent.Options{
		{Thread: agent.NewThread("t"), Tools: someTools},
		{Thread: agent.NewThread("t"), Tools: someTools},
	}
	shown := list(user(text("go")))
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		before := tell(shown)
		a, errA := run(build(models[0]), shown, opts[0], false)
		b, errB := run(build(models[1]), shown, opts[1], true)
		if fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("Respond fails with %v, Stream with %v", errA, errB)
		}
		if errA != nil {
			return
		}
		alone := p == compatible && len(models[0].seen) > 1 // .NET drops the first rounds if it doesn't stream
		if x, y := tell(rejoin(a)), tell(b.Messages); x != y && !alone {
			t.Fatalf("Respond gives\n %s\nStream gives\n %s", x, y)
		}
		if fmt.Sprint(a.Refused) != fmt.Sprint(b.Refused) {
			t.Fatalf("Respond refuses %v, Stream %v", a.Refused, b.Refused)
		}
		if p == safe {
			sameSeen(t, models)
		}
		if tell(shown) != before {
			t.Fatal("the caller's messages were changed")
		}
		shown = drawAnswers(t, a)
	}
}

func sameSeen(t *rapid.T, models []*model) {
	for i := range models[0].seen {
		if x, y := tell(rejoin(&agent.Response{
			Messages: models[0].seen[i],
		})), tell(rejoin(&agent.Response{Messages: models[1].seen[i]})); x != y {
			t.Fatalf("the inner client of Respond sees\n %s\nthat of Stream\n %s", x, y)
		}
	}
}

// drawAnswers answers some of the requests of a response.
func drawAnswers(t *rapid.T, r *agent.Response) []*content.Message {
	m := user()
	for _, q := range r.UserInputRequests() {
		switch q := q.(type) {
		case *content.ToolApprovalRequest:
			a := q.CreateApproval("")
			a.Approved = rapid.Bool().Draw(t, "approved")
			a.Always = rapid.SampledFrom([]content.AlwaysScope{
				content.AlwaysNot,
				content.AlwaysTool,
				content.AlwaysArguments,
			}).Draw(t, "always")
			m.Contents = append(m.Contents, a)
		case *content.TextApprovalRequest:
			m.Contents = append(m.Contents, q.CreateApproval(""))
		}

		if rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
			break
		}
	}

	if len(m.Contents) == 0 || rapid.Bool().Draw(t, "and text") {
		m.Contents = append(m.Contents, text("so"))
	}
	return list(m)
}

// TestRequestsThatCantBeRecorded checks that the run fails for requests that can't be recorded,
// since they could not be answered.
func TestRequestsThatCantBeRecorded(t *testing.T) {
	blank := []content.Content{
		ask("q0", call("c0", "pay", "")),
		ask(" ", call("c1", "look", "")),
		harmless("", call("c2", "look", "")),
	}
	for _, p := range []profile{safe, compatible} {
		for name, build := range clients(p, true) {
			for _, streaming := range []bool{false, true} {
				if name == "invocable" {
					continue // it records no requests
				}
				opt := on(someTools...)
				if _, err := run(build(says(list(assistant(blank...)))), nil, opt, streaming); err == nil {
					t.Errorf("%s, profile %t: a request without id was recorded", name, p)
				}
			}
		}

		c := p.standing(says(list(assistant(blank...))),
			layer.StandingConfig{Predicates: []layer.Predicate{all}, Log: quiet()})
		if _, err := run(c, nil, on(), false); err == nil {
			t.Errorf("profile %t: a request without id was approved", p)
		}
	}
}

// TestInnerErrorsPass checks the state that a failing inner client leaves.
func TestInnerErrorsPass(t *testing.T) {
	for _, p := range []profile{safe, compatible} {
		for name, build := range clients(p, false) {
			for _, streaming := range []bool{false, true} {
				if _, err := run(build(says()), list(user(text("go"))), on(), streaming); !errors.Is(err, errNoTurn) {
					t.Errorf("%s: the error became %v", name, err)
				}
			}
		}
	}
}

// TestReaderLeaves stops reading at each update in turn. No update is sent afterwards, and the
// requests that were shown can be answered.
func TestReaderLeaves(t *testing.T) {
	turn := list(
		assistant(text("a"), ask("q1", call("c1", "pay", "")), text("b"), ask("q2", call("c2", "peek", "")),
			call("c3", "look", ""), call("c4", "ui", "")),
	)
	for _, p := range []profile{safe, compatible} {
		for name, build := range clients(p, false) {
			for stop := 1; stop < 8; stop++ {
				opt := on(someTools...)
				n, shown := 0, false
				for u, err := range build(says(turn, done)).Stream(context.Background(),
					list(user(yes("q9", call("c9", "pay", "")))), opt) {
					must.Do(t, err)
					r := agent.Response{Messages: list(assistant(u.Contents...))}
					for _, q := range r.UserInputRequests() {
						shown = shown || q.InputRequestID() == "q1"
					}
					if n++; n == stop {
						break
					}
				}

				if shown && len(open(t, opt.Thread)) == 0 && (name == "binding" || name == "all") {
					t.Errorf("%s, profile %t: after %d updates nothing is on record", name, p, stop)
				}
			}
		}
	}
}
