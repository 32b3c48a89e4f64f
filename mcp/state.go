package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// mostRounds is how often a modern client is sent back with a state
// alone. One library takes the third for a failure.
const mostRounds = 2

// state is what a modern client brings back when it makes a call again
// because we asked for it. It is sealed: it says which wait goes on, and
// allows nothing.
type state struct {
	Key    string    `json:"key"` // of the record
	Number int       `json:"number"`
	Round  int       `json:"round"` // how often it was sent back with a state alone
	Until  time.Time `json:"until"`
	// Offered is what its user was shown with the state, or before, and
	// Ref the request that this was about.
	Offered showing `json:"offered,omitempty"`
	Ref     string  `json:"ref,omitempty"`
}

// showing is what the user of a client was shown.
type showing string

// What may have been shown.
const (
	offeredForm showing = "form"
	offeredLink showing = "link"
)

// next is the state that follows this one when the user of the client
// is shown something.
func (s state) next(o showing, ref string) state {
	return state{Round: s.Round, Offered: o, Ref: ref}
}

const (
	stateVersion = "v1."
	statePlace   = "request state"
	stateLives   = time.Hour
)

// sendBack has a modern client make the call again, with the answer of
// its user where something is asked. Without, its limit for one request
// doesn't end the wait.
func (g *Gateway) sendBack(
	ctx context.Context, c *record, s state, name string, params json.RawMessage,
) (json.RawMessage, *wire.Error) {
	changed, err := g.engine.Change(ctx, c.Key, func(c *record) error {
		c.Part.States++
		c.Part.State = c.Part.States
		return nil
	})
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the call can't be kept")
	}
	s.Key, s.Number = c.Key, changed.Part.State
	s.Until = g.now().Add(stateLives)
	text, err := json.Marshal(s)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the state can't be written")
	}
	sealed := base64.RawURLEncoding.EncodeToString(g.places.Seal(statePlace, text))
	return written(func(w *jsonmsg.Writer) {
		w.Member("resultType", wire.InputRequired)
		w.Name("inputRequests").Object(func(w *jsonmsg.Writer) { writeInput(w, name, params) })
		w.Member("requestState", stateVersion+sealed)
	}), nil
}

// writeInput writes what the user of a client is asked; nothing without
// a name.
func writeInput(w *jsonmsg.Writer, name string, params json.RawMessage) {
	if name == "" {
		return
	}
	w.Name(name).Object(func(w *jsonmsg.Writer) {
		w.Member("method", methodElicit)
		w.Name("params").Verbatim(params)
	})
}

var errState = errors.New("requestState: it is not one of this call, or was used before")

// comeBack takes a state that a client brought back, once.
func (g *Gateway) comeBack(ctx context.Context, q *request, text string) (state, error) {
	s, err := g.unseal(text)
	if err != nil || s.Until.Before(g.now()) {
		return state{}, errState
	}
	_, err = g.engine.Change(ctx, s.Key, func(c *record) error {
		p := &c.Part
		if p.Caller != q.caller.Name || p.Said != q.said() || p.State != s.Number || s.Number == 0 {
			return errState
		}
		p.State = 0
		return nil
	})
	return s, err
}

// unseal opens a state that a client brought back. Whatever is no state
// of this gateway is an error.
func (g *Gateway) unseal(text string) (s state, err error) {
	if len(text) < len(stateVersion) || text[:len(stateVersion)] != stateVersion {
		return s, errState
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text[len(stateVersion):])
	if err != nil {
		return s, err
	}
	plain, err := g.places.Unseal(statePlace, sealed)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(plain, &s)
}

// pending answers a call that still waits when its caller may wait no
// longer.
func (g *Gateway) pendingAnswer(
	ctx context.Context, r *server.Request, q *request, c *record,
) (json.RawMessage, *wire.Error) {
	if r.Modern && q.back.Round < mostRounds && !q.gaveUp && !c.Over() && c.State != durable.Running {
		s := q.back
		s.Round++
		return g.sendBack(ctx, c, s, "", nil)
	}
	return g.say(r, g.pendingText(c))
}
