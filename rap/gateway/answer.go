package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/wire"
)

// longestToken is more than any token of ours has.
const longestToken = 128

// answer takes the answer to a question, at an address that nobody knows who was not told. To everybody else it is not there, whatever became of the
// call (T9, T31).
func (g *Gateway) answer(w http.ResponseWriter, req *http.Request, token string) {
	d, err := g.asked(req.Context(), token)
	if err != nil {
		g.cfg.Log.ErrorContext(req.Context(), "an answer could not be looked at", "error", err)
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	if d == nil || !g.signed(req, d) {
		g.unknown(w, req, "no such question is open, or it is not the runtime that answers")
		return
	}
	body, err := g.body(w, req, maxNotice)
	if errors.Is(err, errNotJSON) || errors.Is(err, errCutOff) { // no answer yet: nothing changes
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	in, err := readAnswer(body, err)
	ctx, stop := detached(req.Context())
	defer stop()
	g.answered(ctx, w, req, d, in, err)
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
func (g *Gateway) asked(ctx context.Context, token string) (*kept.Doc[call], error) {
	if token == "" || len(token) > longestToken {
		return nil, nil
	}
	alias := kept.Hash(token)
	d, err := g.calls.ByAlias(ctx, alias)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(d.Alias), []byte(alias)) != 1 || d.Body.Question == nil:
		return nil, nil
	}
	return d, nil
}

// signed tells whether it is the calling runtime that answers, where that is to be shown.
func (g *Gateway) signed(req *http.Request, d *kept.Doc[call]) bool {
	c := g.caller(d.Body.Caller)
	if c == nil || !c.AnswersSigned {
		return c != nil
	}
	from, _ := g.authenticate(req)
	return from == c
}

// How an answer stands to the call.
type hearing int

const (
	hearingLate  hearing = iota // nothing is open, and this is not what was answered
	hearingTaken                // it is the answer
	hearingSame                 // it was the answer already (T7)
	hearingWrong                // it is no answer, and the call is over (U24)
)

func (g *Gateway) answered(ctx context.Context, w http.ResponseWriter, req *http.Request, d *kept.Doc[call], in wire.Answer, bad error) {
	heard := hearingLate
	d, changed, err := g.change(ctx, d.Key, func(d *kept.Doc[call]) bool {
		heard = g.hear(d, in, bad)
		return heard == hearingTaken || heard == hearingWrong
	})
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "an answer could not be kept", "error", err)
		http.Error(w, "the answer could not be kept", http.StatusServiceUnavailable)
		return
	}
	if changed {
		facts := map[string]any{"valid": heard == hearingTaken, "verdict": d.Body.Verdict, "session": d.Body.Grant != ""}
		_ = g.record(ctx, "rap_user_answered", &d.Body, facts)
		g.hint(d.Key)
		defer g.moved(d)
	}
	switch heard {
	case hearingTaken, hearingSame:
		w.WriteHeader(http.StatusOK)
	case hearingWrong:
		g.refuse(ctx, "an answer made no sense", "not the call's id, or not an index of its choices", &d.Body)
		http.Error(w, "not an answer to this question; the call is over", http.StatusBadRequest)
	default:
		g.unknown(w, req, "the question is not open any more")
	}
}

// hear moves a call by an answer: the first that comes in time stands (T8).
func (g *Gateway) hear(d *kept.Doc[call], in wire.Answer, bad error) hearing {
	c, q := &d.Body, d.Body.Question
	right := bad == nil && in.ID == c.ID && in.Selected >= 0 && in.Selected < q.Choices
	relayed := c.Phase == phaseExecuting && q.Relayed && q.Selected == nil && !q.Bad && c.Stop == "" // nobody needs it once the run is to stop
	open := c.Phase == phaseAwaiting || relayed
	switch {
	case !open && right && q.Selected != nil && *q.Selected == in.Selected:
		return hearingSame
	case !open || !g.now().Before(c.Until):
		return hearingLate
	case q.Relayed:
		q.Bad = !right
	case !right:
		c.settle(verdictInvalid, "the answer to the question was not valid; nothing was run")
		d.Due = g.now()
	default:
		g.chosen(d, in.Selected)
	}
	if !right {
		return hearingWrong
	}
	q.Selected = &in.Selected
	return hearingTaken
}

// chosen decides a call by the index that the user chose: only those that were offered as an allowance allow (4.3.6).
func (g *Gateway) chosen(d *kept.Doc[call], index int) {
	c, q := &d.Body, d.Body.Question
	d.Due = g.now()
	switch index {
	case 0:
	case q.Session: // never 0
		c.Grant, c.Makes = grantKey(d.Key, c), true
	default:
		c.settle(verdictDeny, "the user denied this call")
		return
	}
	by := byUser
	if c.Held != "" {
		by = byBoth
	}
	c.Phase, c.By, c.Verdict, c.Tries = phaseDecided, by, verdictAllow, 0
}
