package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// mostParked limits how many calls of modern clients may be open at once because a legacy server
// asked a question during the call.
const mostParked = 100

// parked is such a call. It is kept in this process only: if a state refers to a call that is not
// here, the client is told that the call may have run in part.
type parked struct {
	caller string
	asked  chan json.RawMessage // questions, as a modern client gets them
	answer chan json.RawMessage // results of the client
	ended  chan struct{}        // closed when the call has ended
	stop   context.CancelFunc
	out    upstream.Answer // once it has ended
	err    error
}

// parking holds the open calls by the ids in their states.
type parking struct {
	mu   sync.Mutex
	of   map[string]*parked
	used map[string]time.Time // states that clients have sent back, with the time at which they expire
}

// park keeps a call. It returns false if the caller has too many of them.
func (p *parking) park(id string, c *parked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]*parked{}
	}
	open := 0
	for _, other := range p.of {
		if other.caller == c.caller {
			open++
		}
	}
	if open >= mostParked {
		return false
	}
	p.of[id] = c
	return true
}

// ended removes a call that has ended without another question to the client.
func (p *parking) ended(c *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(_ string, other *parked) bool { return other == c })
}

// mostUsed limits how many used states are remembered.
const mostUsed = 10_000

// use marks a state that expires at until as used. It returns false if the state was used before,
// or if too many are remembered.
func (p *parking) use(id string, now, until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == nil {
		p.used = map[string]time.Time{}
	}
	if len(p.used) >= mostUsed {
		maps.DeleteFunc(p.used, func(_ string, lapses time.Time) bool { return lapses.Before(now) })
	}
	if _, again := p.used[id]; again || len(p.used) >= mostUsed {
		return false
	}
	p.used[id] = until
	return true
}

// take removes and returns a call, because each state can be used only once.
func (p *parking) take(id string) *parked {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.of[id]
	delete(p.of, id)
	return c
}

// mayPark reports whether the server asks by requests of its own and the client can only be asked
// by results.
func (f *forwarder) mayPark(r *server.Request, s *Server) bool {
	says, ok := s.Upstream.(interface{ Peer() upstream.Peer })
	return r.Modern && ok && wire.IsLegacy(says.Peer().Version) && s.Questions.relays()
}

// passParked passes on a call and keeps it open while its client is asked.
func (f *forwarder) passParked(
	ctx context.Context, r *server.Request, q *request, d *delivery,
) (json.RawMessage, *wire.Error) {
	c := &parked{
		caller: q.caller.Name,
		asked:  make(chan json.RawMessage),
		answer: make(chan json.RawMessage),
		ended:  make(chan struct{}),
	}
	open, stop := context.WithTimeout(context.WithoutCancel(ctx), f.cfg.RunWithin)
	c.stop = stop
	d.ask = f.askerOf(c, f.servers[q.call.Server], r.Capabilities)
	go func() {
		defer close(c.ended)
		defer stop()
		defer f.parking.ended(c)
		c.out, c.err = f.send(open, d)
		f.noteOutcome(open, q, c.out, c.err)
	}()
	return f.followParked(ctx, r, q, c)
}

// askerOf returns a function that asks a modern client by the result of its call.
func (f *forwarder) askerOf(
	c *parked, s *Server, able server.Capabilities,
) func(context.Context, string, json.RawMessage) (json.RawMessage, *wire.Error) {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
		shown, own, err := f.relayable(s, able, method, params)
		if err != nil || own != nil {
			return ownAnswer(method, own, err)
		}
		question := written(func(w *jsonmsg.Writer) {
			w.Member("method", method)
			w.Name("params").Verbatim(shown)
		})
		select {
		case c.asked <- question:
		case <-ctx.Done():
			return ownAnswer(method, nil, errNotRelayed)
		}
		select {
		case answer := <-c.answer:
			return answer, nil
		case <-ctx.Done():
			return ownAnswer(method, nil, errNotRelayed)
		}
	}
}

// followParked waits until a parked call has ended or its server asks a question.
func (f *forwarder) followParked(
	ctx context.Context, r *server.Request, q *request, c *parked,
) (json.RawMessage, *wire.Error) {
	select {
	case <-c.ended:
		return f.answerOf(r, q, c.out, c.err)
	case <-ctx.Done():
		c.stop()
		<-c.ended
		return f.answerOf(r, q, c.out, c.err)
	case question := <-c.asked:
		return f.askParked(r, q, c, question)
	}
}

// askParked returns a question to the client and parks the call.
func (f *forwarder) askParked(
	r *server.Request, q *request, c *parked, question json.RawMessage,
) (json.RawMessage, *wire.Error) {
	id := rand.Text()
	if !f.parking.park(id, c) {
		c.stop()
		return f.say(r, &wire.Said{Text: textAsks, IsError: true})
	}
	next := round{
		ID:     id,
		Caller: q.caller.Name,
		Said:   q.said(),
		Until:  f.now().Add(stateLives),
		Names:  []string{parkedName},
		Parked: id,
	}
	return f.sealRound(next, written(func(w *jsonmsg.Writer) { w.Name(parkedName).Verbatim(question) }))
}

const parkedName = "question"

// goOn passes the client's answer to a parked call.
func (f *forwarder) goOn(ctx context.Context, r *server.Request, q *request) (json.RawMessage, *wire.Error) {
	c, answer := f.parking.take(q.round.Parked), jsonmsg.Get(q.responses, parkedName)
	if c == nil {
		return f.say(r, &wire.Said{
			Text: "This call may have run in part. Its server asked something, and nobody waits for the answer any " +
				"more. Check before calling again.",
			IsError: true,
		})
	}

	if answer == nil {
		answer = json.RawMessage(nobodyChose)
	}
	select {
	case c.answer <- answer:
	case <-c.ended:
	case <-ctx.Done():
		c.stop()
	}

	return f.followParked(ctx, r, q, c)
}
