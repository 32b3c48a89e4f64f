package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/wire"
)

// longestToken limits the length of a token; ours are shorter.
const longestToken = 128

// answer accepts the answer to a question. Only the runtime that got the question knows the
// address; for any other token the response is 404, whatever the state of the call.
func (g *Gateway) answer(w http.ResponseWriter, req *http.Request, token string) {
	r, err := g.callByToken(req.Context(), token)
	if err != nil {
		g.cfg.Log.ErrorContext(req.Context(), "an answer could not be looked at", "error", err)
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	if r == nil || !g.signed(req, r) {
		g.unknown(w, req, "no such question is open, or it is not the runtime that answers")
		return
	}
	body, err := g.body(w, req, maxNotice)
	if errors.Is(err, errNotJSON) || errors.Is(err, errCutOff) { // no answer arrived: nothing changes
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	in, err := readAnswer(body, err)
	g.answered(w, req, r, in, err)
}

func readAnswer(body []byte, err error) (wire.Answer, error) {
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.ParseAnswer(body)
}

func (g *Gateway) unknown(w http.ResponseWriter, req *http.Request, why string) {
	g.refuse(req.Context(), "an answer was refused", why, nil)
	http.NotFound(w, req)
}

// callByToken finds the call whose question has a token. It returns nil if there is none.
func (g *Gateway) callByToken(ctx context.Context, token string) (*record, error) {
	if token == "" || len(token) > longestToken {
		return nil, nil
	}
	alias := durable.Hash(token)
	r, err := g.engine.ByAlias(ctx, alias)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(r.Alias), []byte(alias)) != 1 || r.Part.Question == nil:
		return nil, nil
	}

	return r, nil
}

// signed reports whether the calling runtime has authenticated, if its answers must be signed.
func (g *Gateway) signed(req *http.Request, r *record) bool {
	c := g.caller(r.Part.Caller)
	if c == nil || !c.AnswersSigned {
		return c != nil
	}
	from, _ := g.authenticate(req)
	return from == c
}

// answerOutcome says how an answer affects its call.
type answerOutcome int

const (
	answerLate     answerOutcome = iota // the question is closed, and was not answered so
	answerAccepted                      // it is accepted
	answerRepeated                      // it repeats the accepted answer
	answerInvalid                       // it is invalid, and ends the call
)

// answered applies an answer to its call and responds. bad is the error of reading the answer.
func (g *Gateway) answered(w http.ResponseWriter, req *http.Request, r *record, in wire.Answer, bad error) {
	ctx, stop := detached(req.Context())
	defer stop()
	heard := answerLate
	r, changed, err := g.change(ctx, r.Key, func(r *record) bool {
		heard = g.applyAnswer(r, in, bad)
		return heard == answerAccepted || heard == answerInvalid
	})
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "an answer could not be kept", "error", err)
		http.Error(w, "the answer could not be kept", http.StatusServiceUnavailable)
		return
	}
	if changed {
		facts := map[string]any{
			"valid":   heard == answerAccepted,
			"verdict": r.Part.Verdict,
			"session": r.Part.Grant != "",
		}
		_ = g.record(ctx, "rap_user_answered", r, facts)
	}

	switch heard {
	case answerAccepted, answerRepeated:
		w.WriteHeader(http.StatusOK)
	case answerInvalid:
		g.refuse(ctx, "an answer made no sense", "not the call's id, or not an index of its choices", r)
		http.Error(w, "not an answer to this question; the call is over", http.StatusBadRequest)
	default:
		g.unknown(w, req, "the question is not open any more")
	}
}

// applyAnswer changes a call by an answer: the first one that is in time counts.
func (g *Gateway) applyAnswer(r *record, in wire.Answer, bad error) answerOutcome {
	q := r.Part.Question
	right := bad == nil && in.ID == r.Part.ID && in.Selected >= 0 && in.Selected < q.Choices
	switch {
	case !q.open(r) && right && q.Selected != nil && *q.Selected == in.Selected:
		return answerRepeated
	case !q.open(r) || !g.now().Before(q.Until):
		return answerLate
	case q.Relayed:
		q.Bad = !right
	case !right:
		g.engine.Finish(r, durable.Ending{Why: whyInvalid})
	default:
		g.chosen(r, in.Selected)
	}

	if !right {
		return answerInvalid
	}
	q.Selected = &in.Selected
	return answerAccepted
}

// open reports whether the question of a call still waits for an answer. It does not if the run
// is to stop.
func (q *question) open(r *record) bool {
	if q.Relayed {
		return r.State == durable.Running && r.Stop == "" && q.Selected == nil && !q.Bad
	}
	return r.State == durable.Waiting
}

// chosen moves a call by the index of the user's choice. Any index other than those of the
// offered permissions denies the call.
func (g *Gateway) chosen(r *record, index int) {
	c := &r.Part
	switch index {
	case 0:
	case c.Question.Session: // never 0
		c.Grant = grantKey(r.Key, c)
		c.Makes = true
	default:
		g.engine.Finish(r, durable.Ending{Why: durable.Refused, Reason: "the user denied this call"})
		return
	}

	c.By = byUser
	if r.Approval != nil {
		c.By = byBoth
	}
	c.Verdict = verdictAllow
	r.State = durable.Ready
	r.Deadline = time.Time{}
	r.Message = nil
}
