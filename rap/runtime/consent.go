package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/resolve"
)

// What people are asked about a tool that calls itself destructive (D7). "Do not run" comes last and is what a dismissal picks.
const (
	destroysPrompt = "The tool calls itself destructive: what it does may not be undone. Run it?"
	destroysRun    = "Run it once"
	destroysDont   = "Do not run"
)

// planCall is the call as the agent's file understands it, with the exact bytes that will be sent. Of what a tool says about itself only a word
// that tightens counts (D8).
func (r *Runtime) planCall(c *outCall) *resolve.Call {
	out := &resolve.Call{
		Kind: resolve.Tool, Tool: c.Operation, Args: c.args(), Principal: c.User, Session: c.Thread, ToolDefinition: c.Definition,
	}
	if s := r.servers[c.Server]; s != nil && s.MCPServer != "" {
		out.Kind, out.Server = resolve.MCPTool, s.MCPServer
	}
	if c.Destroys {
		out.Annotations = map[string]bool{"destructiveHint": true}
	}
	return out
}

func (r *Runtime) decide(ctx context.Context, c *outCall) (hold.Verdict, error) {
	plan, err := r.cfg.Plan(ctx)
	if err != nil {
		return hold.Verdict{}, fmt.Errorf("read the agent's rules: %w", err)
	}
	if plan == nil {
		return hold.Verdict{}, errors.New("read the agent's rules: there are none")
	}
	call := r.planCall(c)
	return hold.Verdict{Decision: plan.Decide(call), Call: call}, nil
}

// consentFor is what people have to be asked before the call leaves (D9): nil when nobody has to.
func (r *Runtime) consentFor(c *outCall, v hold.Verdict) *consent {
	granted := c.Consent != nil && c.Consent.Granted
	s := r.servers[c.Server]
	var own bool
	switch {
	case v.Outcome == resolve.Ask && !(granted && !c.Consent.Own && c.Consent.Binding == v.Binding):
	case v.Outcome == resolve.Allow && c.Destroys && !(s != nil && s.TrustDestructive) && !granted:
		own = true
	default:
		return nil
	}
	return &consent{Own: own, Key: askKey(c.Token, "consent", c.Consents+1), Next: r.now()}
}

// askKey names what is asked. It can't be guessed, and no two questions share one, whatever ids agents give their calls.
func askKey(token, what string, number int) string {
	return "rap-" + kept.Hash(fmt.Sprintf("%s/%s/%d", token, what, number))
}

// ask has people asked before the call leaves.
func (c *outCall) ask(what *consent) {
	c.State, c.Consent = CallAsking, what
	c.Consents++
}

// seekConsent asks people, or looks what they said.
func (r *Runtime) seekConsent(ctx context.Context, c *outCall) error {
	v, err := r.decide(ctx, c)
	switch {
	case err != nil:
		return r.putOff(ctx, c, err)
	case v.Outcome != resolve.Allow && v.Outcome != resolve.Ask:
		return r.refused(ctx, c, deniedText(v))
	case r.cfg.People == nil:
		return r.refused(ctx, c, "people would have to approve it, and nobody can be asked")
	case c.Consent.Own:
		return r.seekOwn(ctx, c, v)
	}
	return r.seekApproval(ctx, c, v)
}

func deniedText(v hold.Verdict) string {
	if v.Message == "" {
		return "the rules deny the call"
	}
	return v.Message
}

// refused ends a call that does not leave.
func (r *Runtime) refused(ctx context.Context, c *outCall, why string) error {
	return r.end(ctx, c, ending{WhyDenied, "not run: " + why, c.left()}, sameConsent(c))
}

// sameConsent guards a change that rests on what people said, or on the rules, for a call that has not left since.
func sameConsent(seen *outCall) func(*outCall) error {
	return func(c *outCall) error {
		if c.State != seen.State || c.Consents != seen.Consents || c.Send.Attempts != seen.Send.Attempts {
			return errMoved
		}
		return nil
	}
}

func (r *Runtime) seekApproval(ctx context.Context, c *outCall, v hold.Verdict) error {
	held, err := r.approval(ctx, c, v)
	switch {
	case errors.Is(err, hold.ErrNoRequest):
		return r.refused(ctx, c, "nobody knows the request for its approval any more")
	case err == nil && held.Ref == "" && (held.State == hold.Pending || held.State == hold.Approved && v.Outcome == resolve.Ask):
		return r.putOff(ctx, c, errNoRef)
	case err != nil:
		return r.putOff(ctx, c, err)
	}
	switch held.State {
	case hold.Pending:
		return r.await(ctx, c, held.Ref, held.Expires)
	case hold.Approved:
		return r.approved(ctx, c, v, held)
	case hold.Responded:
		return r.refused(ctx, c, "a person answered instead: "+held.Reason)
	case hold.Expired:
		return r.refused(ctx, c, "nobody approved it in time")
	case hold.Cancelled:
		return r.refused(ctx, c, "the request for its approval was withdrawn")
	}
	return r.refused(ctx, c, withReason("its approval was denied", held.Reason))
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

func (r *Runtime) approval(ctx context.Context, c *outCall, v hold.Verdict) (hold.Held, error) {
	if c.Consent.Ref != "" {
		return r.desk(c).Look(ctx, c.Consent.Ref)
	}
	if v.Outcome == resolve.Allow { // by now nobody needs to be asked: the same way with nobody in it
		return hold.Held{State: hold.Approved}, nil
	}
	return r.desk(c).Open(ctx, c.Consent.Key, v)
}

// approved lets a call go, with the arguments that were approved and decided on once more, and takes the one run of its approval.
func (r *Runtime) approved(ctx context.Context, c *outCall, v hold.Verdict, held hold.Held) error {
	if held.Arguments != nil && string(held.Arguments) != string(c.args()) {
		next := *c
		next.Approved = held.Arguments
		if err := r.checkArguments(ctx, &next); err != nil {
			how := ending{WhyInvalid, "not run: the arguments as they were approved are not valid: " + plainError(err), false}
			return r.end(ctx, c, how, sameConsent(c))
		}
		var err error
		if v, err = r.decide(ctx, &next); err != nil {
			return r.putOff(ctx, c, err)
		}
		if v.Outcome != resolve.Allow && v.Outcome != resolve.Ask {
			return r.refused(ctx, c, deniedText(v))
		}
	}
	if held.Ref != "" {
		err := r.desk(c).Claim(ctx, held.Ref, c.Consent.Key, v)
		switch {
		case errors.Is(err, hold.ErrNotClaimed):
			return r.refused(ctx, c, plainError(err))
		case err != nil:
			return r.putOff(ctx, c, err)
		}
	}
	return r.release(ctx, c, v, held)
}

// release moves a call on that may leave, as it was decided on.
func (r *Runtime) release(ctx context.Context, c *outCall, v hold.Verdict, held hold.Held) error {
	guard := sameConsent(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		now := r.now()
		c.State, c.Tries, c.Deadline = CallSending, 0, now.Add(r.cfg.CallWithin)
		c.Consent.Ref, c.Consent.By, c.Consent.Binding = held.Ref, held.By, v.Binding
		c.Consent.Granted = held.Ref != "" // a plan that allows by now has nobody's word behind it
		c.Send.Next = now
		if held.Arguments != nil {
			c.Approved = held.Arguments
		}
		return nil
	})
	if err == nil {
		r.forget(ctx, held.Ref)
	}
	return err
}

// lookAgain is how long a call waits at most for the desk to say that something changed before it is looked at all the same.
const lookAgain = 5 * time.Minute

// await keeps where people are asked. The call waits as long as they may take.
func (r *Runtime) await(ctx context.Context, c *outCall, ref string, expires time.Time) error {
	if err := r.remember(ctx, ref, c.Key); err != nil {
		return err
	}
	guard := sameConsent(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		now := r.now()
		if expires.IsZero() {
			expires = now.Add(keepLive)
		}
		c.Tries, c.Consent.Next = 0, now.Add(lookAgain)
		if c.Consent.Ref == "" {
			c.Consent.Ref, c.Consent.Next = ref, now // news of it may have come before we knew whose it is
		}
		if after := expires.Add(time.Minute); after.After(c.Deadline) {
			c.Deadline = after
		}
		return nil
	})
	if errors.Is(err, errMoved) {
		r.cancelAtDesk(ctx, c, ref)
	}
	return err
}

// seekOwn asks whether a destructive tool may run, which the plan alone allows.
func (r *Runtime) seekOwn(ctx context.Context, c *outCall, v hold.Verdict) error {
	ref := c.Consent.Ref
	if ref == "" {
		var err error
		ref, err = r.desk(c).Ask(ctx, c.Consent.Key, hold.Question{
			Call: v.Call, Server: c.Server, Prompt: destroysPrompt, Choices: []string{destroysRun, destroysDont}, Default: 1,
			Groups: r.groups(c.Server), Within: r.cfg.ChoiceWithin,
		})
		if err == nil && ref == "" {
			err = errNoRef
		}
		if err != nil {
			return r.putOff(ctx, c, err)
		}
	}
	a, err := r.desk(c).Answer(ctx, ref)
	switch {
	case errors.Is(err, hold.ErrNoRequest):
		return r.refused(ctx, c, "nobody knows the question about it any more")
	case err != nil:
		return r.putOff(ctx, c, err)
	case a.State == hold.AnswerOpen:
		return r.await(ctx, c, ref, r.now().Add(r.cfg.ChoiceWithin))
	case a.State == hold.AnswerChosen && a.Selected == 0:
		return r.release(ctx, c, v, hold.Held{Ref: ref, By: a.By})
	case a.State == hold.AnswerChosen || a.State == hold.AnswerDismissed:
		return r.refused(ctx, c, "a person said not to run it")
	}
	return r.refused(ctx, c, withReason("nobody agreed to it", a.Reason))
}

func (r *Runtime) groups(server string) []string {
	if s := r.servers[server]; s != nil {
		return s.Groups
	}
	return nil
}

// putOff tries again later what the desk, the rules or the ledger could not do. An error allows nothing.
func (r *Runtime) putOff(ctx context.Context, c *outCall, cause error) error {
	r.log.Warn("a call waits: "+plainError(cause), "call", callName(c.Key), "state", string(c.State))
	guard := sameConsent(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.Tries++
		next := r.now().Add(pause(c.Tries - 1))
		if c.State == CallAsking {
			c.Consent.Next = next
		} else {
			c.Send.Next = next
		}
		return nil
	})
	return err
}

// checkArguments holds arguments that an approver changed to the schema of the tool, as the session knows it.
func (r *Runtime) checkArguments(ctx context.Context, c *outCall) error {
	tool, err := r.offered(ctx, r.session(c), c.Operation)
	if err != nil {
		return err
	}
	if tool.Server != c.Server || tool.Digest() != c.Definition {
		return errors.New("the tool has changed since")
	}
	return tool.CheckArguments(c.args())
}
