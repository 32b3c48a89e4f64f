package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/resolve"
)

// decide rules on what has to happen before a call may run: people are asked, the call waits until
// a caller wants its result, or it runs. The engine calls it when the call arrives, when people
// approved it, when the call is made again, and right before it runs.
func (k *keeper) decide(ctx context.Context, c *record) (durable.Ruling, error) {
	owner, err := k.callerOf(ctx, c.Part.Caller)
	if errors.Is(err, ErrNoCaller) || err == nil && owner.asker != c.Asker {
		return refused(textGone), nil
	}
	if err != nil {
		return durable.Ruling{}, fmt.Errorf("look up the caller: %w", err)
	}
	t, call, why := k.present(ctx, c, owner)
	if why != "" {
		return refused(why), nil
	}
	plan, err := k.rules(ctx)
	if err != nil {
		return durable.Ruling{}, err
	}
	d := k.decisionOn(t, plan, call)
	if d.Outcome == resolve.Deny {
		return refused(d.Message), nil
	}
	if d.Binding, err = plan.Bind(call); err != nil {
		return refused("the arguments can't be bound to a decision"), nil
	}
	return k.rule(c, hold.Verdict{
		Decision: d,
		Call:     call,
		Context:  t.about(),
		Ask:      t.asks,
	}), nil
}

// errRules means that the rules can't be read now.
var errRules = errors.New("the rules could not be read")

// withoutRules returns the message for calls that don't run because the rules can't be read.
func withoutRules(err error) string {
	if errors.Is(err, approval.ErrFrozen) {
		return "The agent is frozen by its operators"
	}
	return "The rules could not be read"
}

// rule turns a decision that is no denial into a ruling.
func (k *keeper) rule(c *record, v hold.Verdict) durable.Ruling {
	edited := c.Approval != nil && c.Approval.Edited
	granted := c.Approval != nil || c.Part.User != ""
	switch {
	case !edited && v.Binding != c.Part.Binding, granted && v.Outcome != resolve.Ask:
		return refused(textChanged)
	case k.wantsUser(c, v):
		return k.askUser(c, v)
	case !granted && v.Outcome == resolve.Ask:
		return durable.Ruling{Do: durable.Approve, Verdict: v, Within: k.within(v)}
	case c.Part.Task == nil && !c.Part.Wanted.After(k.now()):
		c.Deadline = k.now().Add(k.cfg.Approved)
		return durable.Ruling{Do: durable.Wait}
	}

	c.Part.Runs = v.Binding
	c.Deadline = time.Time{} // a run takes as long as it takes
	return durable.Ruling{Do: durable.Proceed, Verdict: v}
}

// within returns the configured time for people to answer, or 0 if the rules set one.
func (k *keeper) within(v hold.Verdict) time.Duration {
	if v.Within() > 0 {
		return 0
	}
	return k.cfg.Within
}

// textGone is the reason of a call whose caller is no longer allowed to call.
const textGone = "The caller may not call here any more"

// refused ends a call before it ran, with a reason.
func refused(why string) durable.Ruling {
	return durable.Ruling{Ending: durable.Ending{Why: durable.Refused, Reason: why}}
}

// present returns a stored call as the current rules see it. If there is no such tool or caller any
// more, why gives the reason.
func (k *keeper) present(ctx context.Context, c *record, owner *caller) (t *tool, call *resolve.Call, why string) {
	if isGranted(c) {
		k.lister.recheck(ctx, c.Part.Server)
	}
	t, err := k.lister.toolOf(ctx, c.Part.Server, c.Part.Tool)
	switch {
	case err != nil:
		return nil, nil, "The server " + c.Part.Server + " can't be reached"
	case t == nil:
		return nil, nil, "The tool is not offered any more"
	case t.withheld != "":
		return nil, nil, t.withheld
	}

	call = t.call(owner, c.Args())
	if call.ToolDefinition != c.Part.Definition {
		return nil, nil, textChanged
	}
	return t, call, ""
}

// call builds the call of the tool that the rules decide on.
func (t *tool) call(by *caller, args []byte) *resolve.Call {
	return &resolve.Call{
		Kind:           resolve.MCPTool,
		Server:         t.server,
		Tool:           t.name,
		Args:           args,
		Annotations:    t.annotations,
		Declared:       t.declared,
		Principal:      by.Principal,
		Session:        by.Session,
		ToolDefinition: t.definition,
	}
}

// asked stores the reference of the request and the time by which people have to answer.
func (k *keeper) asked(_ context.Context, c *record, held hold.Held) {
	c.Part.Ref = held.Ref
	c.Part.Grant = held.Grant
	c.Part.Until = held.Expires
}
