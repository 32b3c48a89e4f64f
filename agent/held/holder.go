package held

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
)

// holder is an hold.Holder over whoever asks.
type holder struct {
	asking asking
	agent  string // id
	inbox  string // URL; "" for none
}

// Open makes a request of a call, which stays open no longer than the verdict says. What the verdict itself denies is denied without asking anybody.
func (h *holder) Open(ctx context.Context, key string, v hold.Verdict) (hold.Held, error) {
	text, err := presentable(key, v)
	if err != nil {
		return hold.Held{}, err
	}
	if v.Outcome == resolve.Deny {
		return hold.Held{State: hold.Denied, Reason: v.Message}, nil
	}
	o, err := h.asking.open(ctx, plain(key), v)
	if err != nil {
		return hold.Held{}, fmt.Errorf("ask for approval: %w", err)
	}
	return h.opened(o, let{digest(text), plain(key)}.ref())
}

// opened tells what became of a call; free is the reference of one that nobody is asked about.
func (h *holder) opened(o *approval.Opened, free string) (hold.Held, error) {
	switch {
	case o.Outcome == approval.OpenAllow:
		return hold.Held{Ref: free, State: hold.Approved}, nil
	case o.Outcome == approval.OpenGranted && o.Grant != nil:
		return hold.Held{Ref: free, State: hold.Approved, By: grantors(o.Grant), Expires: o.Grant.Expires}, nil
	case o.Outcome == approval.OpenPending && o.Request != nil && len(o.Request.Revisions) > 0:
		return h.stand(o.Request), nil
	case o.Outcome == approval.OpenDeny:
		return hold.Held{State: hold.Denied, Reason: deniedReason(o)}, nil
	}
	return hold.Held{}, fmt.Errorf("ask for approval: an answer that makes no sense: %q without what belongs to it", o.Outcome)
}

// Look tells how a request stands.
func (h *holder) Look(ctx context.Context, ref string) (hold.Held, error) {
	if _, ok := parseLet(ref); ok {
		return hold.Held{Ref: ref, State: hold.Approved}, nil
	}
	r, err := h.request(ctx, ref)
	if errors.Is(err, approval.ErrNotFound) {
		return hold.Held{}, errors.Join(hold.ErrNoRequest, err)
	}
	if err != nil {
		return hold.Held{}, err
	}
	return h.stand(r), nil
}

// request reads a request of this agent.
func (h *holder) request(ctx context.Context, ref string) (*approval.Request, error) {
	if ref == "" {
		return nil, fmt.Errorf("look at a request without a reference: %w", approval.ErrNotFound)
	}
	r, err := h.asking.request(ctx, ref)
	if err == nil && r.Agent.ID != h.agent {
		err = approval.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("look at the request %s: %w", ref, err)
	}
	return r, nil
}

// Claim takes the one run of a call. Refusals are *ClaimError.
func (h *holder) Claim(ctx context.Context, ref, key string, v hold.Verdict) error {
	text, err := presentable(key, v)
	if err != nil {
		return err
	}
	if v.Outcome == resolve.Deny {
		return &ClaimError{State: ClaimDenied, Detail: orElse(v.Message, "the plan denies the call")}
	}
	if l, ok := parseLet(ref); ok {
		return h.claimLet(ctx, l, text, v)
	}
	if ref == "" {
		return &ClaimError{State: ClaimUnknown, Detail: "nobody was asked about this call"}
	}
	r, err := h.asking.consume(ctx, ref, plain(key), v.Call)
	switch {
	case err != nil:
		return h.refused(ctx, ref, err)
	case r.State != approval.Consumed:
		return fmt.Errorf("claim the request %s: an answer that makes no sense: it is %s", ref, r.State)
	}
	return nil
}

// claimLet presents a call again that was let through without asking.
func (h *holder) claimLet(ctx context.Context, l let, text []byte, v hold.Verdict) error {
	if digest(text) != l.digest {
		return &ClaimError{State: ClaimChanged, Detail: "another call was let through", Err: approval.ErrBinding}
	}
	o, err := h.asking.open(ctx, l.key, v)
	if err != nil {
		return fmt.Errorf("present the call again: %w", err)
	}
	switch o.Outcome {
	case approval.OpenAllow, approval.OpenGranted:
		return nil
	case approval.OpenPending:
		return &ClaimError{State: ClaimPending, Detail: "the rules want people to be asked now", Err: approval.ErrPending}
	}
	if o.Denied == frozen {
		return &ClaimError{State: ClaimFrozen, Detail: deniedReason(o), Err: approval.ErrFrozen}
	}
	return &ClaimError{State: ClaimDenied, Detail: deniedReason(o)}
}

// refused says why a claim was refused. How a request ended is read from the request, so that a repetition is told the same.
func (h *holder) refused(ctx context.Context, ref string, err error) error {
	for _, c := range []struct {
		err    error
		state  ClaimState
		detail string
	}{
		{approval.ErrPending, ClaimPending, "nobody has decided yet"},
		{approval.ErrConsumed, ClaimTaken, "the one run of this approval was taken before"},
		{approval.ErrBinding, ClaimChanged, "this is not the call that was approved"},
		{approval.ErrFrozen, ClaimFrozen, "the agent is frozen by its operators"},
		{approval.ErrNotFound, ClaimUnknown, "there is no such request of this program and agent"},
	} {
		if errors.Is(err, c.err) {
			return &ClaimError{c.state, c.detail, err}
		}
	}
	if !errors.Is(err, approval.ErrNotApproved) && !errors.Is(err, approval.ErrStale) {
		return fmt.Errorf("claim the request %s: %w", ref, err)
	}
	r, failed := h.request(ctx, ref)
	if failed != nil {
		return fmt.Errorf("claim the request %s: %w", ref, errors.Join(err, failed))
	}
	now := h.stand(r)
	return &ClaimError{ClaimState(now.State), ending(now), err}
}

// Cancel withdraws a request, for every runtime that shares it. What has ended stays as it is.
func (h *holder) Cancel(ctx context.Context, ref, reason string) error {
	if _, ok := parseLet(ref); ok || ref == "" {
		return nil // nobody was asked
	}
	if _, err := h.request(ctx, ref); err != nil {
		return err
	}
	if err := h.asking.cancel(ctx, ref, reason); err != nil && !errors.Is(err, approval.ErrClosed) {
		return fmt.Errorf("cancel the request %s: %w", ref, err)
	}
	return nil
}

// presentable returns the text of a call that can be presented.
func presentable(key string, v hold.Verdict) ([]byte, error) {
	switch {
	case v.Call == nil:
		return nil, ErrNoCall
	case key == "":
		return nil, ErrNoKey
	}
	return client.CallText(v.Call)
}

// longestPlain is how long a key may be that is sent as it is.
const longestPlain = 100

// plain makes of any key one that every channel carries.
func plain(key string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	if len(key) <= longestPlain && !strings.ContainsFunc(key, odd) {
		return key
	}
	return "sha256:" + digest([]byte(key))
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// let is a call that was let through without asking: which one, and under which key.
type let struct{ digest, key string }

const letPrefix = "let:"

func (l let) ref() string { return letPrefix + l.digest + ":" + l.key }

func parseLet(ref string) (let, bool) {
	rest, ok := strings.CutPrefix(ref, letPrefix)
	if !ok {
		return let{}, false
	}
	sum, key, ok := strings.Cut(rest, ":")
	return let{sum, key}, ok && key != ""
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
