package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/quota"
)

// bye is the reason why a stream ends before its call. Contract: docs/contracts/http.md.
type bye string

const (
	byeDraining bye = "draining" // the server stops
	byeToken    bye = "token"    // the token is valid no more
	byeSlow     bye = "slow"     // the reader took too long to read
	byeBusy     bye = "busy"     // the caller's share of concurrent work is used up
	byeGone     bye = "gone"     // the call was forgotten
	byeFailed   bye = "failed"   // the next event can't be read now
)

// copies is the number of copies of an event in memory: as it is stored, opened, read and
// written.
const copies = 4

// callStream sends the events of a call to one reader.
type callStream struct {
	*exchange
	out   *feed.Writer
	of    *runtime.Follower
	at    runtime.Place
	asked time.Time // when the token was looked up last
}

// rapFollow sends the events of a call until the call ends or the reader disconnects.
func (x rapOps) rapFollow(threads *runtime.Threads) error {
	thread, err := x.needed("thread")
	if err != nil {
		return err
	}
	id, err := x.needed("id")
	if err != nil {
		return err
	}
	from, err := x.from()
	if err != nil {
		return err
	}
	of, err := threads.Follow(x.r.Context(), thread, id, from)
	if err != nil {
		return err
	}
	place, err := x.place(x.cfg.Shares.Streams, "streams")
	if err != nil {
		return err
	}
	defer place.Return()
	x.metrics.watchers.Inc()
	defer x.metrics.watchers.Dec()
	s := &callStream{
		exchange: x.exchange,
		out:      feed.NewWriter(x.w, x.cfg.Timing.Slow),
		of:       of,
		at:       from,
		asked:    time.Now(),
	}
	if x.r.Method == http.MethodHead {
		return nil
	}
	s.out.Write([]byte("retry: 1000\n\n"))
	s.run()
	return nil
}

// from returns the place up to which the reader has read.
func (x rapOps) from() (runtime.Place, error) {
	name, text := "Last-Event-ID", x.r.Header.Get("Last-Event-ID")
	if text == "" {
		name, text = "after", x.query["after"]
	}
	if text == "" {
		return runtime.Place{}, nil
	}
	p, err := runtime.ParsePlace(text)
	if err != nil {
		return p, bad(name, err.Error())
	}

	return p, nil
}

// run sends one event after the other. Events that the reader has not taken are in the
// store and not in memory.
func (s *callStream) run() {
	ctx, done := s.untilDrained()
	defer done()
	for s.out.Err() == nil {
		soon, stop := context.WithTimeout(ctx, s.cfg.Timing.Heartbeat)
		next, err := s.of.Next(soon)
		quiet := soon.Err() != nil
		stop()
		switch {
		case s.r.Context().Err() != nil:
			return
		case ctx.Err() != nil:
			s.bye(byeDraining)
			return
		case errors.Is(err, io.EOF):
			s.out.Event(s.at.String(), "end", []byte("{}"))
			s.out.Flush()
			return
		}

		reason := s.mayGoOn()
		switch {
		case reason != "":
		case quiet && err != nil:
			s.out.Heartbeat()
			continue
		case errors.Is(err, runtime.ErrNoCall):
			reason = byeGone
		case err != nil:
			s.cfg.Logger.Error("a call can't be followed", "tenant", s.tenant(), "error", err)
			reason = byeFailed
		default:
			reason = s.send(ctx, next)
		}

		if reason != "" {
			s.bye(reason)
			return
		}
	}
}

// mayGoOn checks the token from time to time.
func (s *callStream) mayGoOn() bye {
	if time.Since(s.asked) < s.cfg.Timing.Heartbeat {
		return ""
	}
	s.asked = time.Now()
	if s.stillMay(openapi.ScopeRequest) != nil {
		return byeToken
	}

	return ""
}

// send sends pending events, if there is memory for them.
func (s *callStream) send(ctx context.Context, next *runtime.Pending) bye {
	room, err := s.cfg.Shares.Memory.Take(ctx, s.who, exchangeWeight+copies*int64(next.Bytes), memoryWait)
	if full, ok := errors.AsType[*quota.FullError](err); ok {
		s.metrics.limited("memory", full.Whose)
		return byeBusy
	}
	if err != nil {
		return byeDraining // or the reader has left
	}
	defer room.Return()
	n, ok, err := next.Read(ctx)
	if err != nil {
		s.cfg.Logger.Error("a call can't be followed", "tenant", s.tenant(), "error", err)
		return byeFailed
	}
	s.at = n.At
	if !ok {
		return ""
	}

	kind, data, err := newsText(n)
	if err != nil {
		s.cfg.Logger.Error("news of a call can't be written", "tenant", s.tenant(), "error", err)
		return byeFailed
	}
	s.out.Event(s.at.String(), kind, data)
	if s.out.Flush(); s.out.Slow() {
		return byeSlow
	}

	return ""
}

// newsText encodes an event as one line of JSON, even if the tool wrote several lines.
func newsText(n runtime.News) (kind string, data []byte, err error) {
	switch {
	case n.Call != nil:
		kind = "call"
		data, err = jsonmsg.Marshal(n.Call)
	case n.Event != nil:
		kind = "event"
		data, err = jsonmsg.Marshal(n.Event)
	case n.View != nil:
		kind = "view"
		data, err = jsonmsg.Marshal(n.View)
	default:
		kind = "lost"
		data, err = jsonmsg.Marshal(map[string]int{"events": n.Lost})
	}

	return kind, data, err
}

// bye sends the reason why the stream ends, and where to continue.
func (s *callStream) bye(reason bye) {
	data, _ := jsonmsg.Marshal(map[string]bye{"reason": reason}) // strings can always be written
	s.out.Event(s.at.String(), "bye", data)
	s.out.Flush()
}
