package compat

import (
	"context"
	"encoding/json"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// job is one call that is about to run. The tool is looked up before
// anything runs: a tool that is added by a sibling is for the next
// turn.
type job struct {
	agent.Job
	asked *content.FunctionCall // the copy in the request; nil for none
}

func (r *run) job(call, asked *content.FunctionCall, approval string) job {
	tool := agent.FindTool(call.Name, r.opt, r.cfg.Tools)
	return job{
		Job:   agent.Job{Call: call, Tool: tool, Approval: approval},
		asked: asked,
	}
}

// mark flags the call as handled, on the copy in its request too.
func (j job) mark() {
	j.Call.InformationalOnly = true
	if j.asked != nil {
		j.asked.InformationalOnly = true
	}
}

// results runs calls and makes the one message of their results. It is
// done when a function ends the run.
func (r *run) results(jobs []job, turn int) (*content.Message, bool, error) {
	outs, err := r.runAll(jobs, turn)
	if err != nil {
		return nil, false, err
	}
	m := &content.Message{ID: r.toolID, Role: content.ToolRole}
	done := false
	for i, o := range outs {
		m.Contents = append(m.Contents, o.Content(jobs[i].Call, r.cfg.DetailedErrors))
		done = done || o.Stop
	}
	return m, done, nil
}

// runAll runs the calls of one turn: one after the other, or at once
// when cfg.Concurrent. The outcomes are those of the first calls: after
// a call that stops a serial turn the rest is left. The error is the
// context's, or *agent.FunctionErrors.
func (r *run) runAll(jobs []job, turn int) ([]agent.Outcome, error) {
	each := r.inTurn
	if r.cfg.Concurrent && len(jobs) > 1 {
		each = r.atOnce
	}
	outs, next, err := each(jobs, turn)
	if err == nil {
		err = r.failures.Turn(outs)
	}
	if err == nil {
		r.opt = next
	}
	return outs, err
}

func (r *run) inTurn(jobs []job, turn int) ([]agent.Outcome, *agent.Options, error) {
	var outs []agent.Outcome
	opt := r.opt
	for _, j := range jobs {
		j.mark()
		o := r.handle(j, opt, turn)
		if err := r.fatal(o); err != nil {
			return outs, opt, err
		}
		outs = append(outs, o)
		opt = o.Options
		if o.Stop {
			break
		}
	}

	return outs, opt, nil
}

// fatal is the error that ends a serial turn in the middle: the
// context's, or that of a function when no failing turn is left.
func (r *run) fatal(o agent.Outcome) error {
	switch {
	case o.Err == nil:
		return nil
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	}

	peek := *r.failures // the turn itself is counted at its end
	return peek.Turn([]agent.Outcome{o})
}

func (r *run) atOnce(jobs []job, turn int) ([]agent.Outcome, *agent.Options, error) {
	for _, j := range jobs {
		j.mark() // before any runs: two jobs may hold the same call
	}
	outs, next := agent.AtOnce(r.opt, len(jobs), func(i int) agent.Outcome {
		return r.handle(jobs[i], r.opt, turn)
	})
	for _, o := range outs {
		if o.Err != nil && r.ctx.Err() != nil {
			return outs, r.opt, r.ctx.Err()
		}
	}
	return outs, next, nil
}

// handle runs the call unless the decider refuses it.
func (r *run) handle(j job, opt *agent.Options, turn int) agent.Outcome {
	if refusal := r.refusal(r.ctx, j); refusal != nil {
		return agent.Outcome{Result: refusal, Options: opt}
	}
	return agent.Invoke(r.ctx, j.Job, opt, turn)
}

// refusal decides a call right before it runs; nil when it may. Without
// a decider nothing is looked at again, as in .NET.
func (r *run) refusal(ctx context.Context, j job) json.RawMessage {
	if r.cfg.Decider == nil {
		return nil
	}
	v, err := r.cfg.Decider.Decide(ctx, j.Tool, j.Call)
	switch {
	case err != nil:
		return agent.Rejection("It could not be decided whether the call may run.")
	case v.Outcome == resolve.Allow, v.Outcome == resolve.Ask && j.Approval != "":
		return nil
	}

	return agent.Rejection(v.Message)
}
