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

// requestOps are the operations on requests to people.
type requestOps struct{ *exchange }

// maxWait limits a long poll, so that proxies don't time out.
const maxWait = 60 * time.Second

func (x requestOps) getRequest() error {
	id := x.r.PathValue("id")
	wait, err := x.duration("wait")
	if err != nil {
		return err
	}
	version, err := x.integer("version", 0, mostWhole, 0)
	if err != nil {
		return err
	}
	if wait > 0 { // a client that gets no place causes no read
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

// moved waits until a request has changed, and reads it again. It doesn't keep the request
// in memory meanwhile.
func (x requestOps) moved(id string, version int64, wait time.Duration) (*approval.Request, error) {
	x.giveBack()
	ctx, done := x.waiting(wait)
	err := x.cfg.Service.Await(ctx, x.tenant(), id, version, wait)
	drained := ctx.Err() != nil && x.r.Context().Err() == nil // then the answer has the current state
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

// waiting returns the context of a long poll. It also ends when the server drains.
func (x *exchange) waiting(wait time.Duration) (ctx context.Context, done func()) {
	// test recorders have no deadlines
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(wait + answerTime))
	ctx, cancel := x.untilDrained()
	x.metrics.polls.Inc()
	return ctx, func() {
		cancel()
		x.metrics.polls.Dec()
	}
}

// untilDrained returns the context of the exchange. It also ends when the server drains.
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

func (x requestOps) answerRequest(r *approval.Request) error {
	x.w.Header().Set("ETag", etag(r))
	return x.answer(http.StatusOK, r)
}

func etag(r *approval.Request) string { return fmt.Sprintf("%q", strconv.FormatInt(r.Version, 10)) }

// own returns a request that this runtime has asked for, first or later. It does not find
// requests of others.
func (x requestOps) own(id string) (*approval.Request, error) {
	r, err := x.cfg.Service.Own(x.r.Context(), x.tenant(), id, asker(x.token))
	if err == nil && !actsFor(x.token, r.Agent.ID) {
		return nil, approval.ErrNotFound
	}
	return r, err
}

// reader returns what the token may read: nil, which is everything, if it has no person or
// is an administrator's, and otherwise what its person may read.
func (x *exchange) reader() (*approval.Reader, error) {
	if x.token.Person == "" || may(x.token, openapi.ScopeAdmin) {
		return nil, nil
	}

	return x.cfg.Service.Reader(x.r.Context(), x.tenant(), x.token.Person)
}

// known returns a request that the token may read, if the token may act for its agent.
func (x requestOps) known(id string) (*approval.Request, error) {
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

// readable returns a request that the token may read: with scope read, those of its reader,
// and otherwise its own.
func (x requestOps) readable(id string) (*approval.Request, error) {
	if !may(x.token, openapi.ScopeRead) {
		return x.own(id)
	}
	r, err := x.known(id)
	if errors.Is(err, approval.ErrNotFound) && may(x.token, openapi.ScopeRequest) {
		return x.own(id)
	}
	return r, err
}

func (x requestOps) history() error {
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

// mostHistory is the maximal number of entries in one answer.
const mostHistory = 500

// nextEntry returns the index at which a history continues after the entries read, or 0 at
// its end.
func (x requestOps) nextEntry(subject string, read []ledger.SealedEntry) (int64, error) {
	if len(read) == 0 {
		return 0, nil
	}
	more, err := x.cfg.Store.History(x.r.Context(), x.tenant(), subject, read[len(read)-1].Index+1, 1)
	if err != nil || len(more) == 0 {
		return 0, err
	}
	return more[0].Index, nil
}
