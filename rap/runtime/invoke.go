package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/resolve"
)

// Invoke makes a call: it is validated, decided, approved where the plan asks, and sent. It returns as soon as the call is kept, which is before it
// is sent (4.3.2); Wait for what becomes of it. The same call again is the one that is there; another one under its id is ErrOtherCall. Calls are
// remembered for a day after their end.
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
		return same(&old.Body, &in)
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
	return nil
}

func same(c *outCall, in *Invocation) (Call, error) {
	if !c.is(in) {
		return Call{}, ErrOtherCall
	}
	return c.call(), nil
}

// newCall is what a call is to begin with: ended where it is not valid or not allowed, and otherwise about to be sent.
func (t *Threads) newCall(ctx context.Context, in *Invocation) (*outCall, error) {
	r, now := t.r, t.r.now()
	c := &outCall{
		Key: r.names.Call(t.who, in.Thread, in.ID), Asker: t.who, Wire: r.names.Sent(t.who, in.Thread, in.ID, in.Ancestors),
		Thread: in.Thread, ID: in.ID, CallID: in.CallID, Ancestors: in.Ancestors, User: in.User, Operation: in.Operation, Arguments: in.Arguments,
		State: CallSending, Deadline: now.Add(r.cfg.CallWithin),
	}
	c.Token, _ = kept.NewToken()
	c.Send.Next = now
	closed, err := r.isClosed(ctx, names.ThreadOf(c.Key))
	if err != nil {
		return nil, err
	}
	if closed {
		c.finish(now, rap.Outcome{Text: closedText}, WhyClosed)
		c.Closed = true
		return c, nil
	}
	tool, err := r.offered(ctx, r.session(c), in.Operation)
	switch {
	case errors.Is(err, errUnknown):
		c.finish(now, rap.Outcome{Text: "Error: not run: " + plainError(err)}, WhyInvalid)
		return c, nil
	case err != nil:
		return nil, err
	}
	c.Server, c.Endpoint, c.Definition = tool.Server, tool.endpoint, tool.Digest()
	c.Destroys = tool.Annotations.Destructive != nil && *tool.Annotations.Destructive
	if err := tool.CheckArguments(in.Arguments); err != nil {
		c.finish(now, rap.Outcome{Text: "Error: not run: the arguments are not valid: " + plainError(err)}, WhyInvalid)
		return c, nil
	}
	return c, r.firstDecision(ctx, c)
}

// firstDecision decides a call for the first time. It is decided again right before it leaves.
func (r *Runtime) firstDecision(ctx context.Context, c *outCall) error {
	v, err := r.decide(ctx, c)
	if err != nil {
		return err
	}
	want := r.consentFor(c, v)
	switch {
	case v.Outcome != resolve.Allow && v.Outcome != resolve.Ask:
		c.finish(r.now(), rap.Outcome{Text: "Error: not run: " + deniedText(v)}, WhyDenied)
	case want != nil && r.cfg.People == nil:
		c.finish(r.now(), rap.Outcome{Text: "Error: not run: people would have to approve it, and nobody can be asked"}, WhyDenied)
	case want != nil:
		c.ask(want)
	}
	return nil
}

// begin keeps a new call and sets it going.
func (t *Threads) begin(ctx context.Context, c *outCall, in *Invocation) (Call, error) {
	r := t.r
	err := r.insert(ctx, c)
	if errors.Is(err, approval.ErrVersion) { // another process made the same call now
		old, err := t.kept(ctx, c.Thread, c.ID)
		if err != nil {
			return Call{}, fmt.Errorf("invoke: %w", err)
		}
		return same(&old.Body, in)
	}
	if err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	if c.State == CallDone {
		r.ended(ctx, c)
		return c.call(), nil
	}
	closed, err := r.isClosed(ctx, names.ThreadOf(c.Key)) // once more, since the call is kept: whoever closes the thread from now on finds it
	if err != nil {
		return Call{}, fmt.Errorf("invoke: %w", err)
	}
	if closed {
		if err := r.closeCall(ctx, c.Key); err != nil && !errors.Is(err, errMoved) {
			return Call{}, fmt.Errorf("invoke: %w", err)
		}
		return t.Call(ctx, c.Thread, c.ID)
	}
	r.kick(c.Key, false)
	return c.call(), nil
}

// insert keeps a new call, in the place of one that has expired.
func (r *Runtime) insert(ctx context.Context, c *outCall) error {
	d := &kept.Doc[outCall]{Key: c.Key, Alias: kept.Hash(c.Token), Due: c.due(), Expires: c.expires(r.now()), Body: *c}
	if old, err := r.calls.Get(ctx, d.Key); err == nil && r.gone(old.Expires) {
		d.Version = old.Version
	}
	return r.calls.Put(ctx, d)
}

// kept returns a call of this asker; ErrNoCall.
func (t *Threads) kept(ctx context.Context, thread, id string) (*kept.Doc[outCall], error) {
	d, err := t.r.calls.Get(ctx, t.r.names.Call(t.who, thread, id))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, ErrNoCall
	case err != nil:
		return nil, err
	case t.r.gone(d.Expires) || !d.Body.Asker.Same(t.who):
		return nil, ErrNoCall
	}
	return d, nil
}

// Call tells how a call stands; ErrNoCall.
func (t *Threads) Call(ctx context.Context, thread, id string) (Call, error) {
	d, err := t.kept(ctx, thread, id)
	if err != nil {
		return Call{}, err
	}
	return d.Body.call(), nil
}

// Wait returns once the call is done, or as it stands when ctx ends (with ctx's error). Another process may bring it about: it is looked at from
// time to time.
func (t *Threads) Wait(ctx context.Context, thread, id string) (Call, error) {
	key, last := t.r.names.Call(t.who, thread, id), Call{}
	for {
		news, leave := t.r.waiting.on(key)
		c, err := t.Call(ctx, thread, id)
		if ctx.Err() != nil {
			leave()
			return last, ctx.Err()
		}
		if last = c; err != nil || c.State == CallDone {
			leave()
			return c, err
		}
		look := time.NewTimer(t.r.cfg.Poll)
		select {
		case <-news:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		leave()
	}
}
