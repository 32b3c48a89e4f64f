package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/value"
)

// NotRunError is returned if a call did not run. It is an answer, not a failure: pass its text
// to the agent, and don't retry the call.
type NotRunError struct {
	Opened  *approval.Opened
	Request *approval.Request // nil if people were not asked
}

// Error returns a text for the agent: what happened, and what to do now.
func (e *NotRunError) Error() string {
	if e.Request == nil {
		return deniedText(e.Opened)
	}
	r := e.Request
	switch r.State {
	case approval.Denied:
		if r.Answer != "" {
			return "Not run. A person answered instead: " + r.Answer
		}
		return withReason("Not run. "+orSomebody(r.By)+" denied this call", r.Reason) + " Do not try it again."
	case approval.Expired:
		return expiredText(r)
	case approval.Cancelled:
		return withReason("Not run. The request was taken back", r.Reason)
	case approval.Consumed:
		return "Not run again. The approval has been used already."
	}

	return fmt.Sprintf("Not run. The request is %s.", r.State)
}

// expiredText returns the text for an approval or a question that lapsed.
func expiredText(r *approval.Request) string {
	switch r.Cause {
	case approval.ByDeadline:
		return fmt.Sprintf(
			"Not run. Nobody decided about this call in time (until %s). That is no denial.",
			r.Deadline.UTC().Format("2006-01-02 15:04 MST"),
		)
	case approval.ByLateDeny:
		return withReason(
			"Not run. It was approved, and "+orSomebody(r.By)+" denied it before it ran",
			r.Reason,
		) + " Do not try it again."
	case approval.ByPermitAge:
		return "Not run. It was approved, and the approval was not used in time. That is no denial."
	case approval.ByPlanChange:
		return "Not run. It was approved, and the rules changed before it ran. It may be asked again."
	case approval.ByHistory:
		return "Not run. It was approved, and calls that ran since then used up a limit. It may be asked again."
	case approval.BySupersede:
		return "Not run. A newer request stands in its place."
	case approval.ByRequester:
		return withReason("Not run. The request was taken back", r.Reason)
	}

	return fmt.Sprintf("Not run. The request expired (%s).", r.Cause)
}

func deniedText(o *approval.Opened) string {
	switch o.Denied {
	case "frozen":
		return "Not run. The agent is frozen by its operators. Do not try it again."
	case "cooling_down":
		return withReason(
			"Not run. A person has just denied this same call",
			o.Decision.Message,
		) + " Do not try it again."
	}

	return withReason("Not run. Policy denies this call", o.Decision.Message) + " Do not try it again."
}

func orSomebody(person string) string {
	if person == "" {
		return "Somebody"
	}
	return person
}

func withReason(text, reason string) string {
	if reason == "" {
		return text + "."
	}
	return text + ": " + strings.TrimRight(reason, ".") + "."
}

// Do executes the whole workflow of a call: it presents the call, waits for people if they have
// to approve it, claims its one run, and calls run with exactly the approved arguments, which
// an approver may have edited. run is called at most once. If the call may not run, the error
// is a *NotRunError. Any other error, for example if the server is unreachable or ctx ends,
// means that nothing ran, unless it is run's own error. A request that is pending when ctx ends
// stays open: cancel it, or let it expire.
func (c *Client) Do(ctx context.Context, agent string, callText []byte, run func(args string) error) error {
	args, err := argumentsOf(callText)
	if err != nil {
		return err
	}
	const rounds = 2 // if the rules change between the answer and the run, people are asked once more, but only once
	for round := 1; ; round++ {
		opened, err := c.Open(ctx, agent, callText, OpenOptions{})
		if err != nil {
			return err
		}
		switch opened.Outcome {
		case resolve.Allow:
			return run(args)
		case resolve.Ask:
		default:
			return &NotRunError{Opened: opened}
		}

		final, err := c.permitted(ctx, opened, callText)
		var p *Problem
		if errors.As(err, &p) && p.Problem.Code == openapi.CodeStale && round < rounds {
			continue
		}
		if err != nil {
			return err
		}
		return run(final)
	}
}

// permitted waits for people, claims the run, and returns the arguments to use.
func (c *Client) permitted(ctx context.Context, opened *approval.Opened, callText []byte) (string, error) {
	if opened.Request == nil {
		return "", errors.New("the server says pending, and names no request")
	}
	decided, err := c.WaitDecided(ctx, opened.Request.ID)
	if err != nil {
		return "", err
	}
	if decided.State != approval.Approved {
		return "", &NotRunError{Opened: opened, Request: decided}
	}
	consumed, err := c.Take(ctx, decided, callText)
	if err != nil {
		return "", err
	}
	if consumed.State != approval.Consumed {
		return "", fmt.Errorf("the server let a request be consumed that is %s", consumed.State)
	}
	return string(consumed.Current().Call.Args), nil
}

// Take consumes a request: with the call if it was approved as asked, or with the binding of
// the edit if an approver edited it.
func (c *Client) Take(
	ctx context.Context,
	decided *approval.Request,
	callText []byte,
) (*approval.Request, error) {
	if len(decided.Revisions) > 1 {
		return c.ConsumeBinding(ctx, decided.ID, decided.Binding(), "")
	}
	return c.Consume(ctx, decided.ID, callText, "")
}

// argumentsOf returns the exact text of a call's arguments.
func argumentsOf(callText []byte) (string, error) {
	parsed, err := resolve.ParseCall(callText, value.Limits{})
	if err != nil {
		return "", fmt.Errorf("the call: %w", err)
	}
	if parsed.Args == nil {
		return "{}", nil
	}
	return string(parsed.Args), nil
}
