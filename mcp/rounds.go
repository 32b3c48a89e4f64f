package mcp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// round is the state that a modern client brings back with the answer to a server's question. It is
// sealed, and valid for one call of one caller.
type round struct {
	ID     string    `json:"id"` // it is used once
	Caller string    `json:"caller"`
	Said   string    `json:"said"`
	Until  time.Time `json:"until"`
	Names  []string  `json:"names,omitempty"` // of what the client is asked
	// Own are the answers that the gateway gives itself, by name.
	Own   map[string]json.RawMessage `json:"own,omitempty"`
	State json.RawMessage            `json:"state,omitempty"` // the server's own; nil for none
	// Parked is the id of a legacy server's call that is still open. It is empty if there is none.
	Parked string `json:"parked,omitempty"`
}

const (
	roundVersion = "q1."
	roundPlace   = "question of a server"
	longestState = 64 << 10 // bytes of a server's own state
	mostOwn      = 8        // rounds in a row that the gateway answers by itself
)

// isRound reports whether a state belongs to a question of a server.
func isRound(text string) bool { return strings.HasPrefix(text, roundVersion) }

// asksBack passes on the questions that a server asks instead of answering.
func (f *forwarder) asksBack(
	ctx context.Context, r *server.Request, q *request, out upstream.Answer, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	for range mostOwn {
		next, asked, err := f.readRound(r, q, out.Result)
		switch {
		case err != nil:
			return f.say(r, &wire.Said{Text: textAsks, IsError: true})
		case len(next.Names) > 0 || len(next.Own) == 0:
			return f.sealRound(next, asked)
		}

		out, err = f.send(ctx, &delivery{
			call:    q.call,
			meta:    q.meta,
			with:    with,
			answers: next.answers(nil),
		})
		if err != nil || out.Error != nil || !asksMore(out) {
			return f.passed(ctx, r, q, out, afterRound(err))
		}
	}

	return f.say(r, &wire.Said{Text: textAsks, IsError: true})
}

// afterRound returns the error of a round after the first one. The server has already begun then,
// so any error becomes ErrUnknown.
func afterRound(err error) error {
	if err == nil {
		return nil
	}
	return upstream.ErrUnknown
}

// asksMore reports whether a server asks something instead of answering.
func asksMore(out upstream.Answer) bool {
	return out.Error == nil && wire.ResultType(out.Result) == wire.InputRequired
}

// readRound reads a server's questions. asked is the object of questions for the client.
func (f *forwarder) readRound(r *server.Request, q *request, result []byte) (next round, asked []byte, err error) {
	next = round{
		ID:     rand.Text(),
		Caller: q.caller.Name,
		Said:   q.said(),
		Until:  f.now().Add(stateLives),
		Own:    map[string]json.RawMessage{},
		State:  jsonmsg.Get(result, "requestState"),
	}
	fields := jsonmsg.Read(result, wire.Limits())
	asked, err = jsonmsg.Object(func(w *jsonmsg.Writer) {
		for _, one := range fields.Object("inputRequests").Members() {
			f.relayOne(w, r, q, &next, one)
		}
	})
	if fields.Err() != nil {
		err = fields.Err()
	}
	if len(next.State) > longestState {
		err = errNotRelayed
	}
	return next, asked, err
}

// relayOne writes one question for the client, or stores the answer that the gateway gives itself.
func (f *forwarder) relayOne(w *jsonmsg.Writer, r *server.Request, q *request, next *round, one jsonmsg.Member) {
	method, _ := jsonmsg.ReadString(jsonmsg.Get(one.Raw, "method"))
	params, own, err := f.relayable(
		f.servers[q.call.Server],
		r.Capabilities,
		method,
		jsonmsg.Get(one.Raw, "params"),
	)
	switch {
	case err != nil:
		w.Fail(err)
	case own != nil:
		next.Own[one.Name] = own
	default:
		next.Names = append(next.Names, one.Name)
		w.Name(one.Name).Object(func(w *jsonmsg.Writer) {
			w.Member("method", method)
			if params != nil {
				w.Name("params").Verbatim(params)
			}
		})
	}
}

func (f *forwarder) sealRound(next round, asked []byte) (json.RawMessage, *wire.Error) {
	text, err := json.Marshal(next)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the state can't be written")
	}
	sealed := base64.RawURLEncoding.EncodeToString(f.places.Seal(roundPlace, text))
	return written(func(w *jsonmsg.Writer) {
		w.Member("resultType", wire.InputRequired)
		w.Name("inputRequests").Verbatim(asked)
		w.Member("requestState", roundVersion+sealed)
	}), nil
}

// openRound opens the state that a client sent back with the same call.
func (f *forwarder) openRound(q *request, text string) (*round, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, roundVersion))
	if err != nil {
		return nil, errState
	}
	plain, err := f.places.Unseal(roundPlace, sealed)
	if err != nil {
		return nil, errState
	}
	var s round
	err = json.Unmarshal(plain, &s)
	if err != nil || s.Caller != q.caller.Name || s.Said != q.said() || s.Until.Before(f.now()) {
		return nil, errState
	}
	if !f.parking.use(s.ID, f.now(), s.Until) {
		return nil, errState
	}
	return &s, nil
}

// answers returns the members that the server gets with the call: the client's answers to what it
// was asked, the gateway's own answers, and the server's state.
func (s *round) answers(of json.RawMessage) (all []jsonmsg.Member) {
	given := written(func(w *jsonmsg.Writer) {
		for _, m := range jsonmsg.Members(of) {
			if slices.Contains(s.Names, m.Name) {
				w.Name(m.Name).Verbatim(m.Raw)
			}
		}
		for name, own := range s.Own {
			w.Name(name).Verbatim(own)
		}
	})
	if len(s.Names) > 0 || len(s.Own) > 0 {
		all = append(all, jsonmsg.Member{Name: "inputResponses", Raw: given})
	}
	if s.State != nil {
		all = append(all, jsonmsg.Member{Name: "requestState", Raw: s.State})
	}
	return all
}
