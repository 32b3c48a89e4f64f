package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// turns is the number of turns with tool calls in one run. Then the model answers with a text.
const turns = 10

// scripted is a model that calls tools in each turn of a run and then returns a text. It makes
// new messages each time, as adapters do.
type scripted struct {
	calls int           // in a turn
	takes time.Duration // in each turn
	turn  int
	ids   []string
}

func newScripted(calls int, takes time.Duration) *scripted {
	m := &scripted{calls: calls, takes: takes}
	for i := range turns * calls {
		m.ids = append(m.ids, fmt.Sprintf("call_%06d", i))
	}
	return m
}

var arguments = json.RawMessage(
	`{"city":"Augsburg","days":3,"units":"metric","fields":["temperature","rain","wind"],"note":"for the \"garden\" ` +
		`party of the 5th"}`,
)

func (m *scripted) Respond(context.Context, []*content.Message, *agent.Options) (*agent.Response, error) {
	for end := time.Now().Add(m.takes); m.takes > 0 && time.Now().Before(end); {
		continue // a timer would add the scheduler to the measurement
	}
	said := content.NewMessage(content.Assistant)
	said.ID = "m"
	if m.turn == turns {
		m.turn = 0
		said.Contents = []content.Content{&content.Text{Text: "It will be fine."}}
		return &agent.Response{Messages: []*content.Message{said}, FinishReason: "stop"}, nil
	}
	for i := range m.calls {
		said.Contents = append(said.Contents, &content.FunctionCall{
			CallID:    m.ids[m.turn*m.calls+i],
			Name:      "forecast",
			Arguments: slices.Clone(arguments),
		})
	}

	m.turn++
	return &agent.Response{Messages: []*content.Message{said}, FinishReason: "tool_calls"}, nil
}

func (m *scripted) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		resp, err := m.Respond(ctx, messages, opt)
		yield(&agent.Update{Role: content.Assistant, MessageID: "m", Contents: resp.Messages[0].Contents}, err)
	}
}

type forecast struct {
	City string  `json:"city"`
	Days int     `json:"days"`
	High float64 `json:"high"`
	Text string  `json:"text"`
}

func tools() []agent.Tool {
	result := forecast{"Augsburg", 3, 23.5, "dry, with some clouds in the evening"}
	weather := agent.NewFunction(
		"forecast",
		"The weather of the next days.",
		json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
		func(context.Context, json.RawMessage) (any, error) { return result, nil },
	)
	other := agent.NewFunction(
		"search",
		"Finds pages.",
		nil,
		func(context.Context, json.RawMessage) (any, error) {
			return nil, nil
		},
	)
	return []agent.Tool{other, weather}
}

// bare is a loop as a program would write it by hand. It requests no approvals and checks
// nothing.
type bare struct {
	model agent.ChatClient
	opt   *agent.Options
	tools map[string]agent.Function
}

func newBare(model agent.ChatClient) *bare {
	b := &bare{model, &agent.Options{Tools: tools()}, map[string]agent.Function{}}
	for _, t := range b.opt.Tools {
		b.tools[t.Definition().Name] = t.(agent.Function)
	}
	return b
}

func (b *bare) run(ctx context.Context, messages []*content.Message) ([]*content.Message, error) {
	history := slices.Clone(messages)
	for {
		resp, err := b.model.Respond(ctx, history, b.opt)
		if err != nil {
			return nil, err
		}
		history = append(history, resp.Messages...)
		var results []content.Content
		for _, m := range resp.Messages {
			for _, c := range m.Contents {
				call, ok := c.(*content.FunctionCall)
				if !ok {
					continue
				}
				result, err := b.invoke(ctx, call)
				if err != nil {
					return nil, err
				}
				results = append(results, result)
			}
		}

		if len(results) == 0 {
			return history[len(messages):], nil
		}
		history = append(history, content.NewMessage(content.ToolRole, results...))
	}
}

func (b *bare) invoke(ctx context.Context, call *content.FunctionCall) (*content.FunctionResult, error) {
	f, ok := b.tools[call.Name]
	if !ok {
		return nil, fmt.Errorf("no tool %q", call.Name)
	}
	v, err := f.Invoke(ctx, call)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	return &content.FunctionResult{CallID: call.CallID, Result: raw}, err
}

// subject is one way to run the model with its tools.
type subject struct {
	name string
	run  func(ctx context.Context, messages []*content.Message) ([]*content.Message, error)
}

func subjects(t testing.TB, calls int, takes time.Duration) []subject {
	t.Helper()
	out := []subject{{"bare", newBare(newScripted(calls, takes)).run}}
	byPlan := agent.LoopConfig{Decider: agent.ByPlan(plan(t), agent.PlanOptions{Principal: "bob", Session: "s-1"})}
	for _, s := range []struct {
		name string
		loop agent.ChatClient
	}{
		{"Default", agent.NewFunctionInvoking(newScripted(calls, takes), agent.LoopConfig{})},
		{"Default ByPlan", agent.NewFunctionInvoking(newScripted(calls, takes), byPlan)},
		{"Compatible", compat.NewFunctionInvoking(newScripted(calls, takes), compat.Config{})},
	} {
		loop, opt := s.loop, &agent.Options{Tools: tools()}
		out = append(
			out,
			subject{s.name, func(ctx context.Context, messages []*content.Message) ([]*content.Message, error) {
				resp, err := loop.Respond(ctx, messages, opt)
				if err != nil {
					return nil, err
				}
				return resp.Messages, nil
			}},
		)
	}

	return out
}

const agentFile = `
schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Knows the weather.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools:
    - {alias: forecast}
    - {alias: search, approval: true}
`

const policyFile = `
schema_version: "1.0.0"
policy_ref: bench.far
description: Somebody looks at long forecasts.
applies: implicit
rules:
  - id: long
    match: {targets: [forecast]}
    approval: {condition: {args_match: {days: {gt: 10}}}}
`

func plan(t testing.TB) *resolve.Plan {
	t.Helper()
	file, findings := schema.Parse("clerk.agf.yaml", []byte(agentFile))
	if file == nil {
		t.Fatal(findings)
	}
	doc, findings := policy.Parse("far.policy.yaml", []byte(policyFile))
	if doc == nil {
		t.Fatal(findings)
	}
	registry, findings := policy.NewSet(doc)
	if registry.Err() != nil {
		t.Fatal(findings)
	}
	p, err := resolve.Compile(file, registry, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// before returns the history at the start of a run.
func before() []*content.Message {
	var out []*content.Message
	for range 6 {
		out = append(out, content.UserText("What will the weather be?"), content.AssistantText("It will be fine."))
	}

	return append(out, content.UserText("And in Augsburg?"))
}
