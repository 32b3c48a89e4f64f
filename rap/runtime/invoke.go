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
)

// Invoke makes a call: it is validated, decided, approved where the
// plan asks, and sent. It returns as soon as the call is kept, which is
// before it is sent; Wait returns what becomes of it. The same call
// again is the one that is there; another one under its id is
// ErrOtherCall. Calls are remembered for a day after their end.
func (t *Threads) Invoke(ctx context.Context, in Invocation) (Call, error) {
	if err := in.settle(); err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	as := t.who
	as.Principal = in.User
	if err := as.Check(); err != nil { // nobody could be asked in that name
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

// found is the call of an id, where it is the one that was made.
func (in *Invocation) found(c *call) (Call, error) {
	if !same(c, in) {
		return Call{}, ErrOtherCall
	}

	return shown(c), nil
}

// newCall is what a call is to begin with: ended where it is not valid
// or not allowed, and otherwise about to be sent.
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
	c.Part.Listed = r.placeOf(ctx, c)
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

	return c, r.engine.Decide(ctx, c) // it is decided again right before it leaves
}

// choose finds the tool of a call. The words say why the call is not valid.
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
	c.Part.Destroys = hinted(tool.Annotations.Destructive)
	if err := tool.CheckArguments(c.Arguments); err != nil {
		return "the arguments are not valid: " + plainError(err), nil
	}

	return "", nil
}

// begin keeps a new call and sets it going.
func (t *Threads) begin(ctx context.Context, c *call, in *Invocation) (Call, error) {
	r := t.r
	err := r.engine.Add(ctx, c)
	if errors.Is(err, durable.ErrExists) { // another process made the same call now
		old, err := t.kept(ctx, c.Part.Thread, c.Part.ID)
		if err != nil {
			return Call{}, fmt.Errorf("invoke: %w", err)
		}
		return in.found(old)
	}

	if err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	r.lists(ctx, c)
	if c.Over() {
		r.noteEnd(ctx, c)
		return shown(c), nil
	}

	// Once more, since the call is kept: whoever closes the thread from
	// now on finds it.
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

	return shown(c), nil
}

// kept returns a call of this asker; ErrNoCall.
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

// Call returns a call as it is now; ErrNoCall.
func (t *Threads) Call(ctx context.Context, thread, id string) (Call, error) {
	c, err := t.kept(ctx, thread, id)
	if err != nil {
		return Call{}, err
	}

	return shown(c), nil
}

// Wait returns once the call is done, or as it is when ctx ends (with
// ctx's error). Another process may bring it about: it is looked at
// from time to time.
func (t *Threads) Wait(ctx context.Context, thread, id string) (Call, error) {
	return t.WaitFor(ctx, thread, id, func(c Call) bool { return c.State == CallDone })
}

// WaitFor is Wait for whatever enough makes of the call, such as a
// question that is open.
func (t *Threads) WaitFor(ctx context.Context, thread, id string, enough func(Call) bool) (Call, error) {
	if _, err := t.kept(ctx, thread, id); err != nil {
		return Call{}, err
	}

	key := t.r.names.Call(t.who, thread, id)
	c, err := t.r.engine.Watch(ctx, key, func(c *call) bool { return enough(shown(c)) })
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return Call{}, ErrNoCall
	case c == nil:
		return Call{}, err
	}

	return shown(c), err
}
