package compat

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

func fn(name string, run func(ctx context.Context, arguments json.RawMessage) (any, error)) agent.Function {
	return agent.NewFunction(name, "", nil, run)
}

func fixed(name string, result any, err error) agent.Function {
	return fn(name, func(context.Context, json.RawMessage) (any, error) { return result, err })
}

func runWith(ctx context.Context, cfg Config) *run {
	return (&loop{cfg: cfg}).begin(ctx, nil, nil)
}

func jobsOf(tools ...agent.Function) []job {
	var out []job
	for _, f := range tools {
		name := f.Definition().Name
		out = append(out, job{Job: agent.Job{Call: &content.FunctionCall{CallID: name, Name: name}, Tool: f}})
	}
	return out
}

func TestConcurrentCallsOverlap(t *testing.T) {
	meet := make(chan string)
	give := fn("give", func(context.Context, json.RawMessage) (any, error) {
		meet <- "here"
		return nil, nil
	})
	take := fn("take", func(context.Context, json.RawMessage) (any, error) { return <-meet, nil })
	r := runWith(t.Context(), Config{Concurrent: true})
	outs, err := r.runAll(jobsOf(take, give), 0)
	if err != nil || string(outs[0].Result) != `"here"` {
		t.Error(outs, err)
	}
}

func TestConcurrentCallsMayShareOne(t *testing.T) {
	j := jobsOf(fixed("f", 1, nil))[0]
	r := runWith(t.Context(), Config{Concurrent: true})
	if outs, err := r.runAll([]job{j, j, j}, 0); err != nil || len(outs) != 3 || !j.Call.InformationalOnly {
		t.Error(outs, err)
	}
}

func TestCancelledRunsEnd(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		f := fn("f", func(ctx context.Context, _ json.RawMessage) (any, error) {
			cancel()
			return nil, ctx.Err()
		})
		r := runWith(ctx, Config{Concurrent: concurrent})
		if _, err := r.runAll(jobsOf(f, f), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("concurrent %v: %v", concurrent, err)
		}
	}
}

func TestSerialFailureLeavesTheRestAtTheLimit(t *testing.T) {
	ran := false
	r := runWith(t.Context(), Config{MaxErrors: -1})
	after := fn("b", func(context.Context, json.RawMessage) (any, error) {
		ran = true
		return nil, nil
	})
	if _, err := r.runAll(jobsOf(fixed("a", nil, errors.New("one")), after), 0); err == nil || ran {
		t.Error(err, ran)
	}
}
