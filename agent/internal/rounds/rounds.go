// Package rounds is what the layers of the packages layer and compat
// are made of: a driver that asks the client further in once or several
// times in a run, and the records of requests that layers keep in a
// thread.
package rounds

import (
	"context"
	"errors"
	"iter"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// stack drives the rounds of a layer around another client.
type stack struct {
	inner agent.ChatClient
	begin Begin
}

// Begin makes the first round of a run; nil when nothing is to be asked.
type Begin func(ctx context.Context, in Input) (*Round, error)

// New returns the client that drives the rounds of a layer around
// another client.
func New(inner agent.ChatClient, begin Begin) agent.ChatClient {
	return &stack{inner: inner, begin: begin}
}

// Input is what a run was given.
type Input struct {
	Messages  []*content.Message
	Options   *agent.Options
	Streaming bool
}

// Thread is that of the options; nil for none.
func (in Input) Thread() *agent.Thread {
	if in.Options == nil {
		return nil
	}
	return in.Options.Thread
}

// Round is one request to the inner client.
type Round struct {
	Messages []*content.Message
	Options  *agent.Options
	Silent   bool            // the inner client is not asked
	Refused  []agent.Refusal // is told before anything else
	// Lead are contents of the user that the caller sees before what the
	// inner client gives; nil for none.
	Lead []content.Content
	// Told sees the refusals of the inner client, before Take sees what
	// came with them. Nil for nothing to do.
	Told func([]agent.Refusal)
	// Take sees each content that comes out, in order, and reports
	// whether it goes on to the caller. Nil lets all pass.
	Take func(content.Content) (bool, error)
	// Choose is shown the messages before Take sees their contents. A
	// stream is held back while one of its calls has no result.
	Choose func([]*content.Message)
	// End sees what the inner client gave when it is complete. Nil for
	// nothing to do.
	End func(whole *agent.Response) (Ending, error)
	// Left is called instead of End when the reader of the stream has gone.
	Left func()
	// Alone forgets what earlier rounds gave, unless it was streamed.
	Alone bool
}

// Ending is what follows the response of a round.
type Ending struct {
	Extra []content.Content // goes to the caller as the assistant's
	Next  *Round
}

// errLeft ends the rounds when the reader of a stream has gone.
var errLeft = errors.New("the reader of the stream has gone")

// Respond runs the rounds.
func (s *stack) Respond(
	ctx context.Context,
	messages []*content.Message,
	opt *agent.Options,
) (*agent.Response, error) {
	r, err := s.begin(ctx, Input{Messages: messages, Options: opt, Streaming: false})
	total := &agent.Response{}
	for err == nil && r != nil {
		if r.Alone {
			total = &agent.Response{Refused: total.Refused}
		}
		r, err = s.respond(ctx, r, total)
	}

	if err != nil {
		return nil, err
	}
	return total, nil
}

func (s *stack) respond(ctx context.Context, r *Round, total *agent.Response) (*Round, error) {
	total.Refused = append(total.Refused, r.Refused...)
	whole := &agent.Response{}
	if !r.Silent {
		got, err := s.inner.Respond(ctx, r.Messages, r.Options)
		if err != nil {
			return nil, err
		}
		if got != nil {
			whole = got
		}
	}

	r.hear(whole.Refused)
	if r.Choose != nil {
		r.Choose(whole.Messages)
	}
	kept, err := r.strainAll(whole.Messages)
	if err != nil {
		return nil, err
	}
	if len(r.Lead) > 0 {
		total.Messages = append(total.Messages, content.NewMessage(content.User, r.Lead...))
	}
	addTo(total, whole, kept)
	e, err := r.finish(whole)
	addLast(total, e.Extra)
	return e.Next, err
}

func (r *Round) hear(refused []agent.Refusal) {
	if r.Told != nil && len(refused) > 0 {
		r.Told(refused)
	}
}

func (r *Round) finish(whole *agent.Response) (Ending, error) {
	if r.End == nil {
		return Ending{}, nil
	}
	return r.End(whole)
}

// Stream runs the rounds piece by piece.
func (s *stack) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		r, err := s.begin(ctx, Input{Messages: messages, Options: opt, Streaming: true})
		for err == nil && r != nil {
			r, err = s.stream(ctx, r, func(u *agent.Update) bool { return yield(u, nil) })
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

func (s *stack) stream(ctx context.Context, r *Round, yield func(*agent.Update) bool) (*Round, error) {
	if len(r.Refused) > 0 && !yield(&agent.Update{Refused: r.Refused}) {
		return nil, errLeft
	}
	if len(r.Lead) > 0 && !yield(&agent.Update{Role: content.User, Contents: r.Lead}) {
		return nil, errLeft
	}
	whole, err := s.pass(ctx, r, yield)
	if err != nil {
		return nil, err
	}
	e, err := r.finish(whole)
	if err != nil {
		return nil, err
	}
	if len(e.Extra) > 0 && !yield(&agent.Update{Role: content.Assistant, Contents: e.Extra}) {
		return nil, errLeft
	}
	return e.Next, nil
}

// pass lets the updates of the inner client through and returns them joined.
func (s *stack) pass(ctx context.Context, r *Round, yield func(*agent.Update) bool) (*agent.Response, error) {
	var all, held []*agent.Update
	if r.Silent {
		return agent.Join(nil), nil
	}
	out := outlet{
		Round:    r,
		strainer: strainer{take: r.Take},
		yield:    yield,
	}
	for u, err := range s.inner.Stream(ctx, r.Messages, r.Options) {
		if err != nil {
			return nil, err
		}
		if u == nil {
			continue
		}
		all, held = append(all, u), append(held, u)
		if r.Choose != nil && len(openCalls(agent.Join(held).Messages)) > 0 {
			continue
		}
		if err := out.release(held); err != nil {
			return nil, err
		}
		held = nil
	}

	if len(held) > 0 {
		r.Choose(agent.Join(held).Messages)
	}
	return agent.Join(all), out.release(held)
}

// outlet is where updates go to the reader of a stream.
type outlet struct {
	*Round
	strainer strainer
	yield    func(*agent.Update) bool
}

func (o *outlet) release(updates []*agent.Update) error {
	for _, u := range updates {
		o.hear(u.Refused)
		kept, err := o.strainer.update(u)
		if err != nil {
			return err
		}
		if kept != nil && !o.yield(kept) {
			if o.Left != nil {
				o.Left()
			}
			return errLeft
		}
	}

	return nil
}

// addTo adds the response of a round, with the messages that go on.
func addTo(total, r *agent.Response, kept []*content.Message) {
	total.Add(r)
	total.Messages = append(total.Messages, kept...)
}

// addLast adds contents to the assistant's last message, as joining a
// last update does.
func addLast(total *agent.Response, extra []content.Content) {
	if len(extra) == 0 {
		return
	}
	end := len(total.Messages) - 1
	if end < 0 || total.Messages[end].Role != content.Assistant {
		total.Messages = append(total.Messages, content.NewMessage(content.Assistant, extra...))
		return
	}
	last := total.Messages[end]
	total.Messages[end] = last.With(append(last.Contents[:len(last.Contents):len(last.Contents)], extra...))
}
