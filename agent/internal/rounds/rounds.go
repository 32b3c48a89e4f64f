// Package rounds contains the parts that the layers of the packages layer and compat share: a
// driver that calls the inner client once or several times in a run, and the records of
// requests that layers keep in a thread.
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

// Begin makes the first round of a run. It returns nil if the inner client need not be called.
type Begin func(ctx context.Context, in Input) (*Round, error)

// New returns the client that drives the rounds of a layer around another client.
func New(inner agent.ChatClient, begin Begin) agent.ChatClient {
	return &stack{inner: inner, begin: begin}
}

// Input is the input of a run.
type Input struct {
	Messages  []*content.Message
	Options   *agent.Options
	Streaming bool
}

// Thread returns the thread of the options, or nil.
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
	Silent   bool            // the inner client is not called
	Refused  []agent.Refusal // reported before anything else
	// Lead are user contents that the caller sees before the response of the inner client. It
	// may be nil.
	Lead []content.Content
	// Told gets the refusals of the inner client, before Take gets the contents that came with
	// them. It may be nil.
	Told func([]agent.Refusal)
	// Take gets each content of the response, in order, and reports whether it is passed on to
	// the caller. If it is nil, all contents are passed on.
	Take func(content.Content) (bool, error)
	// Choose gets the messages before Take gets their contents. A stream is held back while one
	// of its calls has no result.
	Choose func([]*content.Message)
	// End gets the complete response of the inner client. It may be nil.
	End func(whole *agent.Response) (Ending, error)
	// Left is called instead of End if the reader of the stream has stopped.
	Left func()
	// Alone drops the messages of earlier rounds, unless they were streamed.
	Alone bool
}

// Ending follows the response of a round.
type Ending struct {
	Extra []content.Content // for the caller, as contents of the assistant
	Next  *Round
}

// errLeft ends the rounds after the reader of a stream has stopped.
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

// Stream runs the rounds and yields the response in pieces.
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

// pass passes the updates of the inner client on and returns them joined.
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

// outlet passes updates on to the reader of a stream.
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

// addTo adds the response of a round, with only the messages in kept.
func addTo(total, r *agent.Response, kept []*content.Message) {
	total.Add(r)
	total.Messages = append(total.Messages, kept...)
}

// addLast adds contents to the assistant's last message, as joining a last update would.
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
