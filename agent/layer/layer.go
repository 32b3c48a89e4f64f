// Package layer holds chat clients that go around others and treat requests to the user and their answers: they bind answers to what
// was asked, keep away requests that nobody needs to answer, and remember standing approvals.
//
// Layers compose. From the outside in: Standing, Binding, Bypass, InvocableBypass, the loop that calls functions, the model. What a layer
// remembers stands in the thread of the options (agent.Options.Thread) as JSON, so any process can go on with it; a thread serves one
// run at a time. Around a Default loop, which binds answers itself, Standing is the layer to have; Binding and Bypass are for Compatible
// loops and for services that ask. Layers change neither the messages nor the options that they are given.
//
// Each layer has two profiles. Compatible does what the .NET layers do, holes included. Default fails closed: what is recorded wins over
// what the messages say, and each request is answered once.
package layer

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
	begin func(ctx context.Context, in input) (*round, error)
}

// input is what a run was given.
type input struct {
	messages  []*content.Message
	options   *agent.Options
	streaming bool
}

func (in input) thread() *agent.Thread {
	if in.options == nil {
		return nil
	}
	return in.options.Thread
}

// round is one request to the inner client.
type round struct {
	messages []*content.Message
	options  *agent.Options
	silent   bool            // the inner client is not asked
	refused  []agent.Refusal // is told before anything else
	// told sees the refusals of the inner client, before take sees what came with them. Nil for nothing to do.
	told func([]agent.Refusal)
	// take sees each content that comes out, in order, and tells whether it goes on to the caller. Nil lets all pass.
	take func(content.Content) (bool, error)
	// choose is shown the messages before take sees their contents. A stream is held back while one of its calls has no result.
	choose func([]*content.Message)
	// end sees what the inner client gave when it is complete. Nil for nothing to do.
	end func(whole *agent.Response) (ending, error)
	// left is called instead of end when the reader of the stream has gone.
	left func()
	// alone forgets what earlier rounds gave, unless it was streamed.
	alone bool
}

// ending is what follows the response of a round.
type ending struct {
	extra []content.Content // goes to the caller as the assistant's
	next  *round
}

// errLeft ends the rounds when the reader of a stream has gone.
var errLeft = errors.New("the reader of the stream has gone")

// Respond runs the rounds.
func (s *stack) Respond(ctx context.Context, messages []*content.Message, opt *agent.Options) (*agent.Response, error) {
	r, err := s.begin(ctx, input{messages, opt, false})
	total := &agent.Response{}
	for err == nil && r != nil {
		if r.alone {
			total = &agent.Response{Refused: total.Refused}
		}
		r, err = s.respond(ctx, r, total)
	}
	if err != nil {
		return nil, err
	}
	return total, nil
}

func (s *stack) respond(ctx context.Context, r *round, total *agent.Response) (*round, error) {
	total.Refused = append(total.Refused, r.refused...)
	whole := &agent.Response{}
	if !r.silent {
		got, err := s.inner.Respond(ctx, r.messages, r.options)
		if err != nil {
			return nil, err
		}
		if got != nil {
			whole = got
		}
	}
	r.hear(whole.Refused)
	if r.choose != nil {
		r.choose(whole.Messages)
	}
	kept, err := r.strainAll(whole.Messages)
	if err != nil {
		return nil, err
	}
	addTo(total, whole, kept)
	e, err := r.finish(whole)
	addLast(total, e.extra)
	return e.next, err
}

func (r *round) hear(refused []agent.Refusal) {
	if r.told != nil && len(refused) > 0 {
		r.told(refused)
	}
}

func (r *round) finish(whole *agent.Response) (ending, error) {
	if r.end == nil {
		return ending{}, nil
	}
	return r.end(whole)
}

// Stream runs the rounds piece by piece.
func (s *stack) Stream(ctx context.Context, messages []*content.Message, opt *agent.Options) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		r, err := s.begin(ctx, input{messages, opt, true})
		for err == nil && r != nil {
			r, err = s.stream(ctx, r, func(u *agent.Update) bool { return yield(u, nil) })
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

func (s *stack) stream(ctx context.Context, r *round, yield func(*agent.Update) bool) (*round, error) {
	if len(r.refused) > 0 && !yield(&agent.Update{Refused: r.refused}) {
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
	if len(e.extra) > 0 && !yield(&agent.Update{Role: content.Assistant, Contents: e.extra}) {
		return nil, errLeft
	}
	return e.next, nil
}

// pass lets the updates of the inner client through and returns them joined.
func (s *stack) pass(ctx context.Context, r *round, yield func(*agent.Update) bool) (*agent.Response, error) {
	var all, held []*agent.Update
	if r.silent {
		return agent.Join(nil), nil
	}
	out := outlet{r, strainer{take: r.take}, yield}
	for u, err := range s.inner.Stream(ctx, r.messages, r.options) {
		if err != nil {
			return nil, err
		}
		if u == nil {
			continue
		}
		all, held = append(all, u), append(held, u)
		if r.choose != nil && len(openCalls(agent.Join(held).Messages)) > 0 {
			continue
		}
		if err := out.release(held); err != nil {
			return nil, err
		}
		held = nil
	}
	if len(held) > 0 {
		r.choose(agent.Join(held).Messages)
	}
	return agent.Join(all), out.release(held)
}

// outlet is where updates go to the reader of a stream.
type outlet struct {
	*round
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
			if o.left != nil {
				o.left()
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

// addLast adds contents to the assistant's last message, as joining a last update does.
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
