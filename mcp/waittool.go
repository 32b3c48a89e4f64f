package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// waitTool is the gateway's own tool. It waits for people and runs nothing. It spares models from
// repeating large arguments only to learn that a call is still pending.
const waitTool = "assent__wait"

// waitView is the definition of the tool for clients.
const waitView = `{"name":"` + waitTool + `","title":"Wait for an approval","description":"Waits until people have ` +
	`decided about a call that is pending, and tells what they decided. It runs nothing: once the call is approved, ` +
	`make it again with exactly the same arguments.","inputSchema":{"type":"object","properties":{"approval":` +
	`{"type":"string","description":"The id that the answer to the pending call names."},"seconds":{"type":"integer",` +
	`"minimum":0,"description":"How long to wait at most."}},"required":["approval"],"additionalProperties":false},` +
	`"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`

// longestWait is the maximum number of seconds that a client may request.
const longestWait = 24 * 60 * 60

// waitFor answers a call of the wait tool.
func (w *waiting) waitFor(
	ctx context.Context, r *server.Request, c *wire.Call, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	by, bad := w.askedBy(ctx, r)
	if bad != nil {
		return nil, bad
	}
	f := jsonmsg.Read(c.Arguments, wire.Limits())
	ref := f.NonEmpty("approval")
	most := time.Duration(f.Int("seconds", 0, longestWait)) * time.Second
	switch {
	case f.Err() != nil:
		return nil, wire.Fail(wire.CodeInvalidParams, "params.arguments: %v", f.Err())
	case w.cfg.People == nil:
		return nil, wire.Fail(wire.CodeInvalidRequest, "there is nobody to wait for")
	case c.Task != nil && !r.Modern:
		return nil, wire.Fail(wire.CodeMethodNotFound, "this tool can't be called as a task")
	}

	if jsonmsg.Get(c.Arguments, "seconds") == nil {
		most = by.Hold
	}
	said, err := w.waitUntil(ctx, by, ref, min(most, w.holdOf(by, with)), with)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return w.say(r, &wire.Said{Text: "No call of this client waits under this id.", IsError: true})
	case err != nil:
		return w.say(
			r,
			&wire.Said{Text: "Nobody can say now what people decided. Wait again later.", IsError: true},
		)
	}

	return w.say(r, said)
}

// waitUntil polls a request until people have decided or the time has passed.
func (w *waiting) waitUntil(
	ctx context.Context, by *caller, ref string, most time.Duration, with *server.Exchange,
) (*wire.Said, error) {
	until := time.Now().Add(most)
	told := time.Now()
	for n := 1.0; ; {
		news, leave := w.keeper.engine.Changes()
		seen, err := w.lookAt(ctx, by.asker, ref)
		left := time.Until(until)
		if err != nil || seen.decided || left <= 0 {
			leave()
			return seen.text(ref), err
		}
		if time.Since(told) >= w.cfg.Heartbeat {
			text := "Not run yet: waits for people to decide" + inBrackets(ref) + "."
			_ = with.Progress(wire.Progress{Progress: n, Message: text}) // it may be gone
			told = time.Now()
			n++
		}

		err = wait.For(ctx, news, min(left, w.cfg.Poll, w.cfg.Heartbeat))
		leave()
		if ctx.Err() != nil {
			return nil, err
		}
	}
}

// outlook is the state of a request.
type outlook struct {
	decided bool
	end     *durable.Ending // nil: it was approved
	used    bool            // its run was taken
}

// lookAt returns the state of a request of this asker.
func (w *waiting) lookAt(ctx context.Context, who approval.Asker, ref string) (seen outlook, err error) {
	people := w.cfg.People.As(who)
	if approval.QuestionID(ref) {
		a, err := people.Answer(ctx, ref)
		if err != nil || a.State == hold.Pending {
			return seen, unknownRequest(err)
		}
		return outlook{decided: true, end: w.keeper.userAnswered(&record{}, a)}, nil
	}

	held, err := people.Look(ctx, ref)
	if err != nil || held.State == hold.Pending {
		return seen, unknownRequest(err)
	}
	return outlook{decided: true, end: endOf(held), used: held.Used}, nil
}

// unknownRequest returns the same error for an unknown request and for a request of another asker.
func unknownRequest(err error) error {
	if errors.Is(err, hold.ErrNoRequest) {
		return approval.ErrNotFound
	}
	return err
}

// endOf returns the ending of a call by the people's decision, or nil if they approved it.
func endOf(held hold.Held) *durable.Ending {
	end := &durable.Ending{Why: durable.Denied, Reason: held.Reason, By: held.By}
	switch held.State {
	case hold.Approved:
		return nil
	case hold.Expired:
		end.Why = durable.Expired
	case hold.Cancelled:
		end.Why = durable.Withdrawn
	case hold.Responded:
		end.Why = durable.Responded
	}

	return end
}

// text describes the people's decision. It must not suggest that the call has run.
func (o outlook) text(ref string) *wire.Said {
	switch {
	case !o.decided:
		return &wire.Said{
			Text: "Not run yet. This call waits for people to decide" + inBrackets(ref) + ". Wait again, or make the " +
				"same call again later with exactly the same arguments.",
			IsError: true,
		}
	case o.end != nil:
		return &wire.Said{Text: notRunText(&record{Ending: o.end}), IsError: true}
	case o.used:
		return &wire.Said{
			Text: "It was approved" + inBrackets(ref) + ", and its one run was taken already. The same call made again " +
				"gets the result of that run while it is kept; else it asks anew.",
		}
	}

	return &wire.Said{
		Text: "It was approved" + inBrackets(ref) + ", and nothing has run by this. Make the same call again with " +
			"exactly the same arguments: it runs once, unless it has run since.",
	}
}
