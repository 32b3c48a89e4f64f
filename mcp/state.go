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

// mostRounds limits how often a modern client is sent back with only a state. One client library
// treats the third time as a failure.
const mostRounds = 2

// state is the token that a modern client brings back when it repeats a call at the gateway's
// request. It is sealed. It identifies the wait that continues, and allows nothing by itself.
type state struct {
	Key    string    `json:"key"` // of the record
	Number int       `json:"number"`
	Round  int       `json:"round"` // how often it was sent back with a state alone
	Until  time.Time `json:"until"`
	// Offered records the kind of thing that the user was shown with this state or an earlier one,
	// and Ref is the request that it was about.
	Offered showing `json:"offered,omitempty"`
	Ref     string  `json:"ref,omitempty"`
}

// showing names the kind of thing that the user of a client was shown.
type showing string

// The values of showing.
const (
	offeredForm showing = "form"
	offeredLink showing = "link"
)

// next returns the state that follows this one when the user of the client is shown something.
func (s state) next(o showing, ref string) state {
	return state{Round: s.Round, Offered: o, Ref: ref}
}

const (
	stateVersion = "v1."
	statePlace   = "request state"
	stateLives   = time.Hour
)

// sendBack makes a modern client repeat the call. If a question is given, the client adds its
// user's answer. Repeating the call also keeps the client's limit for one request from ending the
// wait.
func (w *waiting) sendBack(
	ctx context.Context, c *record, s state, name string, params json.RawMessage,
) (json.RawMessage, *wire.Error) {
	changed, err := w.keeper.engine.Change(ctx, c.Key, func(c *record) error {
		c.Part.States++
		c.Part.State = c.Part.States
		return nil
	})
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the call can't be kept")
	}
	s.Key, s.Number = c.Key, changed.Part.State
	s.Until = w.now().Add(stateLives)
	text, err := json.Marshal(s)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the state can't be written")
	}
	sealed := base64.RawURLEncoding.EncodeToString(w.places.Seal(statePlace, text))
	return written(func(w *jsonmsg.Writer) {
		w.Member("resultType", wire.InputRequired)
		w.Name("inputRequests").Object(func(w *jsonmsg.Writer) { writeInput(w, name, params) })
		w.Member("requestState", stateVersion+sealed)
	}), nil
}

// writeInput writes a question for the user of the client. It writes nothing if name is empty.
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

// comeBack accepts a state that a client sent back. Each state is accepted once.
func (w *waiting) comeBack(ctx context.Context, q *request, text string) (state, error) {
	s, err := w.unseal(text)
	if err != nil || s.Until.Before(w.now()) {
		return state{}, errState
	}
	_, err = w.keeper.engine.Change(ctx, s.Key, func(c *record) error {
		p := &c.Part
		if p.Caller != q.caller.Name || p.Said != q.said() || p.State != s.Number || s.Number == 0 {
			return errState
		}
		p.State = 0
		return nil
	})
	return s, err
}

// unseal opens a state that a client sent back. It returns an error for anything that this
// gateway didn't seal.
func (w *waiting) unseal(text string) (s state, err error) {
	if len(text) < len(stateVersion) || text[:len(stateVersion)] != stateVersion {
		return s, errState
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text[len(stateVersion):])
	if err != nil {
		return s, err
	}
	plain, err := w.places.Unseal(statePlace, sealed)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(plain, &s)
}

// pendingAnswer answers a call that still waits when its caller may wait no longer.
func (w *waiting) pendingAnswer(
	ctx context.Context, r *server.Request, q *request, c *record,
) (json.RawMessage, *wire.Error) {
	if r.Modern && q.back.Round < mostRounds && !q.gaveUp && !c.Over() && c.State != durable.Running {
		s := q.back
		s.Round++
		return w.sendBack(ctx, c, s, "", nil)
	}
	return w.say(r, w.pendingText(c))
}
