package hold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// requests implements Requests for one asker with a Side.
type requests struct {
	side  Side
	agent string // id
	inbox string // URL; may be empty
}

// Over returns the Requests of one asker for an agent, through a Side. inbox is the URL for
// Held.Where; it may be empty.
func Over(side Side, agentID, inbox string) Requests {
	return &requests{side: side, agent: agentID, inbox: inbox}
}

// Open creates a request for a call. The request stays open no longer than Verdict.Within. A call
// that the verdict denies is denied without asking people.
func (r *requests) Open(ctx context.Context, key string, v Verdict) (Held, error) {
	text, err := presentable(key, v)
	if err != nil {
		return Held{}, err
	}
	if v.Outcome == resolve.Deny {
		return Held{State: Denied, Reason: v.Message}, nil
	}
	opened, err := r.side.Open(ctx, plain(key), v)
	if err != nil {
		return Held{}, fmt.Errorf("ask for approval: %w", err)
	}

	return r.opened(opened, allowed{digest(text), plain(key)}.ref())
}

// opened converts the result of Side.Open. free is the reference for a call that needs no approval.
func (r *requests) opened(o *approval.Opened, free string) (Held, error) {
	switch {
	case o.Granted():
		return Held{
			Ref:     free,
			State:   Approved,
			By:      grantors(o.Grant),
			Grant:   o.Grant.ID,
			Expires: o.Grant.Expires,
		}, nil
	case o.Outcome == resolve.Allow:
		return Held{Ref: free, State: Approved}, nil
	case o.Outcome == resolve.Ask && o.Request != nil && len(o.Request.Revisions) > 0:
		return r.held(o.Request), nil
	case o.Outcome == resolve.Deny:
		return Held{State: Denied, Reason: deniedReason(o)}, nil
	}

	return Held{}, fmt.Errorf(
		"ask for approval: an answer that makes no sense: %q without what belongs to it",
		o.Word(),
	)
}

// Look returns the state of a request.
func (r *requests) Look(ctx context.Context, ref string) (Held, error) {
	if _, ok := parseAllowed(ref); ok {
		return Held{Ref: ref, State: Approved}, nil
	}
	found, err := r.request(ctx, ref)
	if err != nil {
		return Held{}, err
	}

	return r.held(found), nil
}

// request returns a request if it belongs to this agent.
func (r *requests) request(ctx context.Context, ref string) (*approval.Request, error) {
	if ref == "" {
		return nil, fmt.Errorf("look at a request without a reference: %w", unknown(approval.ErrNotFound))
	}
	found, err := r.side.Request(ctx, ref)
	if err == nil && found.Agent.ID != r.agent {
		err = approval.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("look at the request %s: %w", ref, unknown(err))
	}

	return found, nil
}

// unknown adds ErrNoRequest to an approval.ErrNotFound.
func unknown(err error) error {
	if errors.Is(err, approval.ErrNotFound) {
		return errors.Join(ErrNoRequest, err)
	}

	return err
}

// Claim takes the one run of a call. Refusals are *ClaimError.
func (r *requests) Claim(ctx context.Context, ref, key string, v Verdict) error {
	text, err := presentable(key, v)
	if err != nil {
		return err
	}
	if v.Outcome == resolve.Deny {
		return &ClaimError{State: Denied, Detail: cmp.Or(v.Message, "the plan denies the call")}
	}
	if a, ok := parseAllowed(ref); ok {
		return r.claimAllowed(ctx, a, text, v)
	}
	if ref == "" {
		return &ClaimError{Detail: "nobody was asked about this call", Err: approval.ErrNotFound}
	}
	consumed, err := r.side.Consume(ctx, ref, plain(key), v.Call)
	switch {
	case err != nil:
		return r.refused(ctx, ref, err)
	case consumed.State != approval.Consumed:
		return fmt.Errorf("claim the request %s: an answer that makes no sense: it is %s", ref, consumed.State)
	}

	return nil
}

// claimAllowed presents a call again that was allowed without asking people.
func (r *requests) claimAllowed(ctx context.Context, a allowed, text []byte, v Verdict) error {
	if digest(text) != a.digest {
		return &ClaimError{Detail: "another call was let through", Err: approval.ErrBinding}
	}
	o, err := r.side.Open(ctx, a.key, v)
	if err != nil {
		return fmt.Errorf("present the call again: %w", err)
	}
	switch o.Outcome {
	case resolve.Allow:
		return nil
	case resolve.Ask:
		return &ClaimError{
			State:  Pending,
			Detail: "the rules want people to be asked now",
			Err:    approval.ErrPending,
		}
	}

	if o.Denied == frozen {
		return &ClaimError{Detail: deniedReason(o), Err: approval.ErrFrozen}
	}

	return &ClaimError{State: Denied, Detail: deniedReason(o)}
}

// refused returns the error for a refused claim. The reason is read from the request if it has
// ended, so that a repeated claim gets the same answer.
func (r *requests) refused(ctx context.Context, ref string, err error) error {
	if why := refusal(err); why != nil {
		return why
	}
	if !errors.Is(err, approval.ErrNotApproved) && !errors.Is(err, approval.ErrStale) {
		return fmt.Errorf("claim the request %s: %w", ref, err)
	}
	ended, failed := r.request(ctx, ref)
	if failed != nil {
		return fmt.Errorf("claim the request %s: %w", ref, errors.Join(err, failed))
	}
	now := r.held(ended)

	return &ClaimError{State: now.State, Detail: ending(now), Err: err}
}

// Cancel withdraws a request for all runtimes that share it. It changes nothing if the request has
// already ended.
func (r *requests) Cancel(ctx context.Context, ref, reason string) error {
	_, free := parseAllowed(ref)
	_, denied := strings.CutPrefix(ref, deniedPrefix)
	if free || denied || ref == "" {
		return nil // people were not asked
	}
	// A question is not read first, because reading fails while a freeze withholds its answer.
	if !approval.QuestionID(ref) {
		if _, err := r.request(ctx, ref); err != nil {
			return err
		}
	}
	if err := r.side.Cancel(ctx, ref, reason); err != nil && !errors.Is(err, approval.ErrClosed) {
		return fmt.Errorf("cancel the request %s: %w", ref, unknown(err))
	}

	return nil
}

// presentable returns the text of the call, or an error if the call or the key is missing.
func presentable(key string, v Verdict) ([]byte, error) {
	switch {
	case v.Call == nil:
		return nil, ErrNoCall
	case key == "":
		return nil, ErrNoKey
	}

	return v.Call.JSON()
}
