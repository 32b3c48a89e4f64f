package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/resolve"
)

// The question about a tool that is marked as destructive. "Do not run" is the last choice and
// the default.
const (
	destroysPrompt = "The tool calls itself destructive: what it does may not be undone. Run it?"
	destroysRun    = "Run it once"
	destroysDont   = "Do not run"
)

// decider decides on calls by the rules, and asks people about the choices of tools.
type decider struct {
	*base
	decided  bool // by the caller: the rules are not evaluated
	toolsets toolsets
}

// planCall returns the call as the agent's file sees it, with the exact bytes that will be
// sent. A tool's own hints are used only if they make the decision stricter.
func (d *decider) planCall(c *call) *resolve.Call {
	p := &c.Part
	out := &resolve.Call{
		Kind:           resolve.Tool,
		Tool:           p.Operation,
		Args:           c.Args(),
		Principal:      p.User,
		Session:        p.Thread,
		ToolDefinition: p.Definition,
		Declared:       p.Declared,
	}
	if s := d.servers[p.Server]; s != nil && s.MCPServer != "" {
		out.Kind = resolve.MCPTool
		out.Server = s.MCPServer
	}
	if p.Destroys {
		out.Annotations = map[string]bool{"destructiveHint": true}
	}

	return out
}

func (d *decider) verdict(ctx context.Context, c *call) (hold.Verdict, error) {
	plan, err := d.cfg.Plan(ctx)
	if err != nil {
		return hold.Verdict{}, fmt.Errorf("read the agent's rules: %w", err)
	}
	if plan == nil {
		return hold.Verdict{}, errors.New("read the agent's rules: there are none")
	}

	call := d.planCall(c)
	decision := plan.DecideAt(call, d.now())
	if d.cfg.People != nil { // the service knows the past calls
		decision = hold.Decide(plan, call, d.now())
	}
	return hold.Verdict{Decision: decision, Call: call, Context: c.Part.Context}, nil
}

// decide returns what has to happen before a call may be sent. It is called when the call
// arrives, after people approved it, and before each attempt to send it.
func (d *decider) decide(ctx context.Context, c *call) (durable.Ruling, error) {
	if d.decided {
		return durable.Ruling{Do: durable.Proceed}, nil
	}
	if newlyApproved(c) && c.Approval.Edited {
		if err := d.checkArguments(ctx, c); err != nil {
			reason := "not run: the arguments as they were approved are not valid: " + plainError(err)
			return refusing(whyInvalid, reason), nil
		}
	}

	v, err := d.verdict(ctx, c)
	if err != nil {
		return durable.Ruling{}, err
	}

	return d.rule(c, v), nil
}

// newlyApproved reports whether people approved the call and that approval was not used yet.
func newlyApproved(c *call) bool { return c.Approval != nil && !c.Approval.Taken }

// rule returns the ruling for a verdict of the agent's file. An approval is valid as long as
// the rules require the same for the same call.
func (d *decider) rule(c *call, v hold.Verdict) durable.Ruling {
	s := d.servers[c.Part.Server]
	approved := newlyApproved(c) || c.Approval != nil && c.Approval.Binding == v.Binding
	// The service also lets calls run that only it may decide, which nobody has agreed to.
	agreed := c.Part.Agreed || c.Approval != nil && c.Approval.By != ""

	switch {
	case v.Outcome != resolve.Allow && v.Outcome != resolve.Ask:
		return refusing(durable.Refused, deniedText(v))
	case s == nil:
		return refusing(whyNotReached, "the tool server is not registered any more")
	case v.Outcome == resolve.Ask && !approved:
		return d.asking(durable.Ruling{Do: durable.Approve, Verdict: v})
	case c.Part.Destroys && !s.TrustDestructive && !agreed:
		c.Deadline = later(c.Deadline, d.now().Add(d.cfg.ChoiceWithin+time.Minute))
		return d.asking(durable.Ruling{Do: durable.Question, Within: d.cfg.ChoiceWithin})
	}

	if newlyApproved(c) {
		c.Approval.Binding = v.Binding
		c.Deadline = d.now().Add(d.cfg.CallWithin)
	}
	return durable.Ruling{Do: durable.Proceed, Verdict: v}
}

func refusing(why durable.Why, reason string) durable.Ruling {
	return durable.Ruling{Do: durable.Refuse, Ending: durable.Ending{Why: why, Reason: reason}}
}

// asking refuses the call if no approval service is configured.
func (d *decider) asking(what durable.Ruling) durable.Ruling {
	if d.cfg.People == nil {
		return refusing(durable.Refused, "people would have to approve it, and nobody can be asked")
	}

	return what
}

func deniedText(v hold.Verdict) string {
	if v.Message == "" {
		return "the rules deny the call"
	}

	return v.Message
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}

	return a
}

// checkArguments checks arguments that an approver edited against the tool's schema, as
// discovered for the session.
func (d *decider) checkArguments(ctx context.Context, c *call) error {
	tool, err := d.offered(ctx, d.session(c), c.Part.Operation)
	if err != nil {
		return err
	}
	if tool.Server != c.Part.Server || tool.Digest() != c.Part.Definition {
		return errors.New("the tool has changed since")
	}

	return tool.CheckArguments(c.Args())
}

// question returns the question for people: whether a destructive tool may run if the call was
// not sent, and otherwise the question of the tool.
func (d *decider) question(c *call) hold.Question {
	q := hold.Question{Call: d.planCall(c), Server: c.Part.Server, Context: c.Part.Context}
	if s := d.servers[c.Part.Server]; s != nil {
		q.Groups = s.Groups
	}

	if c.State == durable.Asking {
		q.Prompt = destroysPrompt
		q.Choices = []string{destroysRun, destroysDont}
		q.Default = 1
		return q
	}

	q.Prompt = c.Part.Choice.Prompt
	q.Choices = c.Part.Choice.Labels
	q.Default = c.Part.Choice.Default
	return q
}

// answered applies the answer to that question.
func (d *decider) answered(c *call, a hold.Answer) *durable.Ending {
	if c.State == durable.Asking {
		return d.answeredOwn(c, a)
	}

	return d.answeredChoice(c, a)
}

func (d *decider) answeredOwn(c *call, a hold.Answer) *durable.Ending {
	switch {
	case a.State == hold.Chosen && a.Selected == 0:
		c.Part.Agreed = true
		c.Deadline = d.now().Add(d.cfg.CallWithin)
		return nil
	case a.State == hold.Chosen || a.State == hold.Dismissed:
		return &durable.Ending{Why: durable.Refused, Reason: "a person said not to run it"}
	}

	return &durable.Ending{Why: durable.Refused, Reason: withReason("nobody agreed to it", a.Reason)}
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}

	return text + ": " + reason
}

// choose finds the tool of a call. If the call is invalid, it returns the reason.
func (d *decider) choose(ctx context.Context, c *call) (invalid string, err error) {
	tool, err := d.offered(ctx, d.session(c), c.Part.Operation)
	if errors.Is(err, errUnknown) {
		return plainError(err), nil
	}
	if err != nil {
		return "", err
	}

	c.Part.Server = tool.Server
	c.Part.Endpoint = tool.endpoint
	c.Part.Definition = tool.Digest()
	c.Part.Declared = resolve.DeclaredIn(tool.InputSchema)
	c.Part.Destroys = hinted(tool.Annotations.Destructive)
	if err := tool.CheckArguments(c.Arguments); err != nil {
		return "the arguments are not valid: " + plainError(err), nil
	}

	return "", nil
}

// begin starts the time limit for a result at the first attempt.
func (d *decider) begin(_ context.Context, c *call) (*durable.Ending, error) {
	if !wasSent(c) {
		c.Deadline = d.now().Add(d.cfg.CallWithin)
	}

	return nil, nil
}
