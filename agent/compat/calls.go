package compat

import (
	"context"
	"encoding/json"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// job is one call that is about to run. Its tool is looked up before any call runs, so a tool
// that another call adds is used only in the next turn.
type job struct {
	agent.Job
	asked *content.FunctionCall // the copy in the request, or nil
}

func (r *run) job(call, asked *content.FunctionCall, approval string) job {
	tool := agent.FindTool(call.Name, r.opt, r.cfg.Tools)
	return job{
		Job:   agent.Job{Call: call, Tool: tool, Approval: approval},
		asked: asked,
	}
}

// mark marks the call as handled, and also the copy in its request.
func (j job) mark() {
	j.Call.InformationalOnly = true
	if j.asked != nil {
		j.asked.InformationalOnly = true
	}
}

// results runs calls and returns one message with their results. It returns true if a function
// ended the run.
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

// runAll runs the calls of one turn, one after the other or concurrently if cfg.Concurrent is
// set. The outcomes belong to the first calls: if a call stops a serial turn, the remaining
// calls don't run. The error is the context's error or an *agent.FunctionErrors.
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

// fatal returns the error that ends a serial turn early: the context's error, or the error of a
// function if no further failing turn is allowed.
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
		j.mark() // mark all before any of them runs: two jobs may have the same call
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

// refusal decides a call right before it runs. It returns the result of a refused call, or nil
// if the call may run. Without a decider nothing is checked again, as in .NET.
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
