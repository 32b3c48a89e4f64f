package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/resolve"
)

// Invoke makes a call: it is validated, decided, approved if the plan asks, and sent. Invoke
// returns as soon as the call is stored, which is before it is sent; Wait returns its outcome.
// A repeated invocation returns the existing call; a different one with the same id returns
// ErrOtherCall. Calls are kept for a day after their end.
func (t *Threads) Invoke(ctx context.Context, in Invocation) (Call, error) {
	if err := in.settle(); err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	as := t.who
	as.Principal = in.User
	if err := as.Check(); err != nil { // no request could be made for this asker
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	old, err := t.kept(ctx, in.Thread, in.ID)
	if err == nil {
		return in.found(old)
	}
	if !errors.Is(err, ErrNoCall) {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	c, err := t.newCall(ctx, &in)
	if err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	return t.begin(ctx, c, &in)
}

func (in *Invocation) settle() error {
	if len(in.Arguments) == 0 {
		in.Arguments = json.RawMessage("{}")
	}
	texts := append([]string{in.Thread, in.ID, in.User, in.Operation}, in.Ancestors...)
	if in.CallID != nil {
		texts = append(texts, *in.CallID)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return errors.New("the call's names are not UTF-8")
		}
	}
	if in.Thread == "" || in.ID == "" {
		return errors.New("a call needs a thread and an id")
	}
	return info.Check(in.Context)
}

// found returns the existing call if the invocation repeats it, and otherwise ErrOtherCall.
func (in *Invocation) found(c *call) (Call, error) {
	if !isSame(c, in) {
		return Call{}, ErrOtherCall
	}

	return publicCall(c), nil
}

// newCall returns the initial record of a call. It has ended if the call is invalid or not
// allowed.
func (t *Threads) newCall(ctx context.Context, in *Invocation) (*call, error) {
	r := t.r
	token, alias := names.NewToken()
	c := &call{
		Key:       r.names.Call(t.who, in.Thread, in.ID),
		Alias:     alias,
		Asker:     t.who,
		State:     durable.Ready,
		Arguments: in.Arguments,
		Deadline:  r.now().Add(r.cfg.CallWithin),
		Part: part{
			Wire:      r.names.Sent(t.who, in.Thread, in.ID, in.Ancestors),
			Thread:    in.Thread,
			ID:        in.ID,
			CallID:    in.CallID,
			Ancestors: in.Ancestors,
			User:      in.User,
			Operation: in.Operation,
			Context:   slices.Clone(in.Context),
			Token:     token,
		},
	}
	c.Part.Listed = r.listingKey(ctx, c)
	closed, err := r.isClosed(ctx, names.ThreadOf(c.Key))
	if err != nil {
		return nil, err
	}
	if closed {
		r.close(c)
		return c, nil
	}

	invalid, err := r.choose(ctx, c)
	if err != nil {
		return nil, err
	}
	if invalid != "" {
		r.engine.Finish(c, durable.Ending{Why: whyInvalid, Reason: "not run: " + invalid})
		return c, nil
	}

	return c, r.engine.Decide(ctx, c) // it is decided on again right before it is sent
}

// choose finds the tool of a call. If the call is invalid, it returns the reason.
func (r *Runtime) choose(ctx context.Context, c *call) (invalid string, err error) {
	tool, err := r.offered(ctx, r.session(c), c.Part.Operation)
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

// begin stores a new call.
func (t *Threads) begin(ctx context.Context, c *call, in *Invocation) (Call, error) {
	r := t.r
	err := r.engine.Add(ctx, c)
	if errors.Is(err, durable.ErrExists) { // another process made the same call at the same time
		old, err := t.kept(ctx, c.Part.Thread, c.Part.ID)
		if err != nil {
			return Call{}, fmt.Errorf("invoke: %w", err)
		}
		return in.found(old)
	}

	if err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	r.updateListing(ctx, c)
	if c.Over() {
		r.noteEnd(ctx, c)
		return publicCall(c), nil
	}

	// Check again now that the call is stored: if the thread is closed from now on, the call is found.
	closed, err := r.isClosed(ctx, names.ThreadOf(c.Key))
	if err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	if closed {
		if err := r.closeCall(ctx, c.Key); err != nil && !errors.Is(err, durable.ErrUnchanged) {
			return Call{}, fmt.Errorf("invoke: %w", err)
		}
		return t.Call(ctx, c.Part.Thread, c.Part.ID)
	}

	return publicCall(c), nil
}

// kept returns a call of this asker, or ErrNoCall.
func (t *Threads) kept(ctx context.Context, thread, id string) (*call, error) {
	c, err := t.r.engine.Get(ctx, t.r.names.Call(t.who, thread, id))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, ErrNoCall
	case err != nil:
		return nil, err
	}

	if may, err := t.r.mayRead(ctx, c, reader{asker: t.who}); err != nil || !may {
		return nil, cmp.Or(err, ErrNoCall)
	}

	return c, nil
}

// Call returns the current state of a call, or ErrNoCall.
func (t *Threads) Call(ctx context.Context, thread, id string) (Call, error) {
	c, err := t.kept(ctx, thread, id)
	if err != nil {
		return Call{}, err
	}

	return publicCall(c), nil
}

// Wait waits until the call is done. If ctx ends before, it returns the current state with
// ctx's error. The call is also polled, because another process may end it.
func (t *Threads) Wait(ctx context.Context, thread, id string) (Call, error) {
	return t.WaitFor(ctx, thread, id, func(c Call) bool { return c.State == CallDone })
}

// WaitFor is like Wait, but waits until enough returns true, for example for an open question.
func (t *Threads) WaitFor(ctx context.Context, thread, id string, enough func(Call) bool) (Call, error) {
	if _, err := t.kept(ctx, thread, id); err != nil {
		return Call{}, err
	}

	key := t.r.names.Call(t.who, thread, id)
	c, err := t.r.engine.Watch(ctx, key, func(c *call) bool { return enough(publicCall(c)) })
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return Call{}, ErrNoCall
	case c == nil:
		return Call{}, err
	}

	return publicCall(c), err
}
