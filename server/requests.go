package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/server/openapi"
)

// maxWait bounds a long poll, so that proxies on the way stay calm.
const maxWait = 60 * time.Second

func (x *exchange) getRequest() error {
	id := x.r.PathValue("id")
	wait, err := x.duration("wait")
	if err != nil {
		return err
	}
	version, err := x.integer("version", 0, mostWhole, 0)
	if err != nil {
		return err
	}
	if wait > 0 { // whoever finds no place has nothing read for them
		place, err := x.place(x.cfg.Shares.Polls, "polls")
		if err != nil {
			return err
		}
		defer place.Return()
	}

	r, err := x.readable(id)
	if err != nil {
		return err
	}
	if wait > 0 && r.Version == version {
		if r, err = x.moved(id, version, min(wait, maxWait)); err != nil {
			return err
		}
	}
	if err := x.heldBack(r); err != nil {
		return err
	}
	return x.answerRequest(r)
}

// moved waits until a request has changed, and reads it again.
// Meanwhile nothing is kept of it.
func (x *exchange) moved(id string, version int64, wait time.Duration) (*approval.Request, error) {
	x.giveBack()
	ctx, done := x.waiting(wait)
	err := x.cfg.Service.Await(ctx, x.tenant(), id, version, wait)
	drained := ctx.Err() != nil && x.r.Context().Err() == nil // then the answer is what stands now
	done()
	if err != nil && !drained {
		return nil, err
	}
	if err := x.enter(); err != nil {
		return nil, err
	}
	if err := x.stillMay(openapi.ScopeRead, openapi.ScopeRequest); err != nil {
		return nil, err
	}
	return x.readable(id)
}

// waiting is the context of a long poll, which the draining of the
// server ends too.
func (x *exchange) waiting(wait time.Duration) (ctx context.Context, done func()) {
	// recorders of tests have none
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(wait + answerTime))
	ctx, cancel := x.untilDrained()
	x.metrics.polls.Inc()
	return ctx, func() {
		cancel()
		x.metrics.polls.Dec()
	}
}

// untilDrained is the context of the exchange, which the draining of
// the server ends too.
func (x *exchange) untilDrained() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(x.r.Context())
	go func() {
		select {
		case <-x.draining:
			cancel()
		case <-ctx.Done():
		}
	}()

	return ctx, cancel
}

func (x *exchange) answerRequest(r *approval.Request) error {
	x.w.Header().Set("ETag", etag(r))
	return x.answer(http.StatusOK, r)
}

func etag(r *approval.Request) string { return fmt.Sprintf("%q", strconv.FormatInt(r.Version, 10)) }

// own returns a request that this runtime asked for, be it first or
// later. Others are as if they were not there.
func (x *exchange) own(id string) (*approval.Request, error) {
	r, err := x.cfg.Service.Own(x.r.Context(), x.tenant(), id, asker(x.token))
	if err == nil && !actsFor(x.token, r.Agent.ID) {
		return nil, approval.ErrNotFound
	}
	return r, err
}

// reader is what the token may read: what its person may, if it has one
// and is no administrator's, and else everything.
func (x *exchange) reader() (*approval.Reader, error) {
	if x.token.Person == "" || may(x.token, openapi.ScopeAdmin) {
		return nil, nil
	}

	return x.cfg.Service.Reader(x.r.Context(), x.tenant(), x.token.Person)
}

// known returns a request that the token may read, of an agent that it
// may act for.
func (x *exchange) known(id string) (*approval.Request, error) {
	if err := x.roomFor(id); err != nil {
		return nil, err
	}
	by, err := x.reader()
	if err != nil {
		return nil, err
	}
	r, err := x.cfg.Service.Read(x.r.Context(), x.tenant(), id, by)
	if err == nil && !actsFor(x.token, r.Agent.ID) {
		return nil, approval.ErrNotFound
	}
	return r, err
}

// readable returns a request that the token may read: with scope read
// what its reader may, and else its own.
func (x *exchange) readable(id string) (*approval.Request, error) {
	if !may(x.token, openapi.ScopeRead) {
		return x.own(id)
	}
	r, err := x.known(id)
	if errors.Is(err, approval.ErrNotFound) && may(x.token, openapi.ScopeRequest) {
		return x.own(id)
	}
	return r, err
}

func (x *exchange) history() error {
	r, err := x.readable(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := x.heldBack(r); err != nil {
		return err
	}
	from, err := x.integer("from", 0, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	entries, err := x.cfg.Store.History(x.r.Context(), x.tenant(), r.ID, from, mostHistory)
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	out := openapi.Entries{Entries: make([]openapi.Entry, len(entries))}
	for i, e := range entries {
		out.Entries[i] = openapi.Entry{Index: e.Index, Leaf: e.Leaf, Openings: e.Openings}
	}

	if out.Next, err = x.nextEntry(r.ID, entries); err != nil {
		return err
	}
	return x.answer(http.StatusOK, out)
}

// mostHistory is how many entries of a history are answered with at once.
const mostHistory = 500

// nextEntry is where a history goes on behind what was read of it; 0 at
// its end.
func (x *exchange) nextEntry(subject string, read []ledger.SealedEntry) (int64, error) {
	if len(read) == 0 {
		return 0, nil
	}
	more, err := x.cfg.Store.History(x.r.Context(), x.tenant(), subject, read[len(read)-1].Index+1, 1)
	if err != nil || len(more) == 0 {
		return 0, err
	}
	return more[0].Index, nil
}
