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

// longestToken is more than any token of ours has.
const longestToken = 128

// answer takes the answer to a question, at an address that nobody
// knows who was not told. To everybody else it is not there, whatever
// became of the call.
func (g *Gateway) answer(w http.ResponseWriter, req *http.Request, token string) {
	r, err := g.asked(req.Context(), token)
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
	if errors.Is(err, errNotJSON) || errors.Is(err, errCutOff) { // no answer yet: nothing changes
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

// asked finds the call that a token answers; nil when there is none.
func (g *Gateway) asked(ctx context.Context, token string) (*record, error) {
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

// signed reports whether it is the calling runtime that answers, where
// that is to be shown.
func (g *Gateway) signed(req *http.Request, r *record) bool {
	c := g.caller(r.Part.Caller)
	if c == nil || !c.AnswersSigned {
		return c != nil
	}
	from, _ := g.authenticate(req)
	return from == c
}

// hearing is what an answer means to its call.
type hearing int

const (
	hearingLate  hearing = iota // nothing is open, and this is not what was answered
	hearingTaken                // it is the answer
	hearingSame                 // it was the answer already
	hearingWrong                // it is no answer, and the call is over
)

// answered goes by an answer, which bad says could not be read.
func (g *Gateway) answered(w http.ResponseWriter, req *http.Request, r *record, in wire.Answer, bad error) {
	ctx, stop := detached(req.Context())
	defer stop()
	heard := hearingLate
	r, changed, err := g.change(ctx, r.Key, func(r *record) bool {
		heard = g.hear(r, in, bad)
		return heard == hearingTaken || heard == hearingWrong
	})
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "an answer could not be kept", "error", err)
		http.Error(w, "the answer could not be kept", http.StatusServiceUnavailable)
		return
	}
	if changed {
		facts := map[string]any{
			"valid":   heard == hearingTaken,
			"verdict": r.Part.Verdict,
			"session": r.Part.Grant != "",
		}
		_ = g.record(ctx, "rap_user_answered", r, facts)
	}

	switch heard {
	case hearingTaken, hearingSame:
		w.WriteHeader(http.StatusOK)
	case hearingWrong:
		g.refuse(ctx, "an answer made no sense", "not the call's id, or not an index of its choices", r)
		http.Error(w, "not an answer to this question; the call is over", http.StatusBadRequest)
	default:
		g.unknown(w, req, "the question is not open any more")
	}
}

// hear moves a call by an answer: the first that comes in time counts.
func (g *Gateway) hear(r *record, in wire.Answer, bad error) hearing {
	q := r.Part.Question
	right := bad == nil && in.ID == r.Part.ID && in.Selected >= 0 && in.Selected < q.Choices
	switch {
	case !q.open(r) && right && q.Selected != nil && *q.Selected == in.Selected:
		return hearingSame
	case !q.open(r) || !g.now().Before(q.Until):
		return hearingLate
	case q.Relayed:
		q.Bad = !right
	case !right:
		g.engine.Finish(r, durable.Ending{Why: whyInvalid})
	default:
		g.chosen(r, in.Selected)
	}

	if !right {
		return hearingWrong
	}
	q.Selected = &in.Selected
	return hearingTaken
}

// open reports whether an answer to the question of a call is waited
// for. Nobody needs it once the run is to stop.
func (q *question) open(r *record) bool {
	if q.Relayed {
		return r.State == durable.Running && r.Stop == "" && q.Selected == nil && !q.Bad
	}
	return r.State == durable.Waiting
}

// chosen decides a call by the index that the user chose: only those
// that were offered as an allowance allow.
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
