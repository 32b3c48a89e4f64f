package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/server/tokens"
)

// Estimates of the memory of an exchange, in bytes: of its copies of the body and of stored
// data, and of the trees of their values. TestBodiesWeighWhatTheyTake compares them with
// real allocations.
const (
	exchangeWeight = 128 << 10
	byteWeight     = 24  // for each byte of a body or of a stored request
	valueWeight    = 480 // for each JSON value of a call
)

// heavy is the size in bytes from which work on a body or a request is heavy.
const heavy = 64 << 10

// How long an exchange waits for its share before it is refused.
const (
	enterWait  = 10 * time.Second
	memoryWait = 2 * time.Second
	turnWait   = 5 * time.Second
)

// bodyWeight estimates the memory for a body with this number of bytes and values.
func bodyWeight(size, values int64) int64 {
	return exchangeWeight + byteWeight*size + valueWeight*values
}

// valuesIn returns an upper bound for the number of values in a JSON text: each one follows
// a comma or an opening bracket.
func valuesIn(text []byte) int64 {
	return 1 + int64(bytes.Count(text, []byte{','})+bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}))
}

// enter waits until the exchange may be processed. Exchanges of one token wait for each
// other, so that they can't occupy all processors when another token needs one. The token
// is not looked up yet, so tokens are distinguished by their hash.
func (x *exchange) enter() error {
	secret, _ := bearer(x.r) // without one they are all alike
	entered, err := x.cfg.Shares.Exchanges.Take(x.r.Context(), quota.Who{Tenant: tokens.Hash(secret)}, 1, enterWait)
	if err != nil {
		return x.limited(err, "exchanges")
	}
	x.entered = entered
	return nil
}

func (x *exchange) leave() {
	x.entered.Return()
	x.entered = nil
}

// outside gives up the exchange's turn while wait runs, so that other exchanges are
// processed.
func (x *exchange) outside(wait func() error) error {
	if x.entered == nil {
		return wait()
	}
	x.leave()
	if err := wait(); err != nil {
		return err
	}
	return x.enter()
}

// take replaces the exchange's share of memory by another one.
func (x *exchange) take(units int64) error {
	x.memory.Return()
	x.memory = nil
	return x.outside(func() (err error) {
		if x.memory, err = x.cfg.Shares.Memory.Take(x.r.Context(), x.who, units, memoryWait); err != nil {
			return x.limited(err, "memory")
		}
		return nil
	})
}

// turn waits until heavy work may begin, if this size is heavy.
func (x *exchange) turn(size int64) error {
	if size < heavy || x.turned != nil {
		return nil
	}
	return x.outside(func() (err error) {
		if x.turned, err = x.cfg.Shares.Turns.Take(x.r.Context(), x.who, 1, turnWait); err != nil {
			return x.limited(err, "turns")
		}
		return nil
	})
}

// inTurn waits for its turn and reads a part of the ledger.
func (x *exchange) inTurn(read func() ([]ledger.SealedEntry, error)) ([]ledger.SealedEntry, error) {
	x.leave() // the result is sent as slowly as the reader takes it
	turn, err := x.cfg.Shares.Turns.Take(x.r.Context(), x.who, 1, turnWait)
	if err != nil {
		return nil, x.limited(err, "turns")
	}
	defer turn.Return()
	return read()
}

// place takes a place in a pool of waiting exchanges, and gives all other shares back.
func (x *exchange) place(p *quota.Pool, kind string) (*quota.Hold, error) {
	x.giveBack()
	hold, err := p.Take(x.r.Context(), x.who, 1, 0)
	if err != nil {
		return nil, x.limited(err, kind)
	}
	return hold, nil
}

func (x *exchange) giveBack() {
	x.leave()
	x.turned.Return()
	x.memory.Return()
	x.turned, x.memory = nil, nil
}

// limited turns a quota.FullError into the problem with the share that is used up. It
// returns other errors, such as the cancellation by a client that left, unchanged.
func (x *exchange) limited(err error, kind string) error {
	var full *quota.FullError
	if !errors.As(err, &full) {
		return err
	}
	x.metrics.limited(kind, full.Whose)
	return limitProblem(full, kind)
}

// limitProblem returns the problem for a share that is used up, with what to do.
func limitProblem(full *quota.FullError, kind string) *problem {
	whose := map[string]string{
		"caller": "this token has",
		"tenant": "the tenant has",
		"server": "this server has",
	}[full.Whose]
	detail, after := "", 1
	switch kind {
	case "memory":
		detail = " as much in work as it may: wait for answers before you send more, or send smaller calls"
	case "exchanges":
		detail = " as much to be answered as it may: ask less at a time"
	case "turns":
		detail, after = " as many large calls and requests in work as it may: send one after the other", 2
	case "streams":
		detail = fmt.Sprintf(
			" %d event streams open, and may have no more: one is enough for everything",
			full.Most,
		)
		after = 10
	default:
		detail = fmt.Sprintf(
			" %d requests that wait for a change, and may have no more: ask again without wait",
			full.Most,
		)
		after = 10
	}

	return fail(openapi.CodeTooMany, whose+detail).after(after)
}

// takeBody takes memory for a body before it is read. A body of unknown length takes more
// while it is read.
func (x *exchange) takeBody(limit bodySize) error {
	x.sent = x.r.Body
	switch n := x.r.ContentLength; {
	case limit == noBody || x.r.Body == nil || n == 0 || n > int64(limit): // nothing will be read
	case n > 0:
		return x.take(x.weigh(n))
	default:
		x.r.Body = &growing{ReadCloser: x.r.Body, x: x}
	}

	return x.take(exchangeWeight)
}

// turnAway refuses a body for which there is no memory. The answer is sent at once. Then
// the rest of the body is read and discarded, because many clients read an answer only
// after they have sent everything.
func (x *exchange) turnAway(err error, deny bool) {
	control := http.NewResponseController(x.w)
	_ = control.EnableFullDuplex() // test recorders don't support it, and don't need it
	x.w.Header().Set("Connection", "close")
	x.refuse(x.w, x.r, err, deny)
	_ = control.Flush()
	_, _ = io.CopyN(io.Discard, x.sent, int64(callBody)) // a client that has disconnected needs no answer
}

// weigh estimates the memory for a body whose values are not counted yet.
func (x *exchange) weigh(size int64) int64 {
	size = min(size, mostWeighed)
	return bodyWeight(size, min(size/2+1, x.cfg.Values))
}

// weighed gives back the memory that the body did not need, and waits until work on it may
// begin.
func (x *exchange) weighed() error {
	size := int64(len(x.body))
	if err := x.memory.Resize(bodyWeight(size, min(valuesIn(x.body), x.cfg.Values))); err != nil {
		return x.limited(err, "memory")
	}
	return x.turn(size)
}

// growing is a body of unknown length. It takes memory while it is read.
type growing struct {
	io.ReadCloser
	x    *exchange
	read int64
}

// Read fails if there is no memory for the bytes that it read.
func (g *growing) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	g.read += int64(n)
	if full := g.x.memory.Resize(g.x.weigh(g.read)); full != nil {
		return 0, g.x.limited(full, "memory")
	}
	return n, err
}

// roomFor takes memory, and a turn, for a stored request before it is read.
func (x *exchange) roomFor(id string) error {
	heads, err := x.cfg.Store.Heads(x.r.Context(), x.tenant(), []string{id})
	if err != nil {
		return err
	}
	size := heads[id].Bytes
	if size < heavy {
		return nil
	}
	if err := x.take(bodyWeight(int64(len(x.body))+size, 0)); err != nil {
		return err
	}
	return x.turn(size)
}

// mostWeighed is the largest body that any handler reads. A handler refuses a larger one by
// its length.
const mostWeighed = int64(5 << 20)

// Metered makes the bodies of a handler outside of the API take memory like others. The
// client is known only by its address here.
func (s *Server) Metered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{
			Server: s,
			w:      w,
			r:      r,
			who:    quota.Who{Caller: addressOf(r)},
		}
		defer x.giveBack()
		if r.Body != nil && r.ContentLength != 0 {
			if err := x.takeBody(math.MaxInt64); err != nil {
				x.turnAway(err, false)
				return
			}
		}

		next.ServeHTTP(w, r)
	})
}
