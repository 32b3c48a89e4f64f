package rap

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/assent-dev/assent/approval"
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
	if errors.Is(err, errGateType) || errors.Is(err, errGateCut) { // no answer yet: nothing changes
		http.Error(w, err.Error(), gateStatus(err))
		return
	}
	in, err := readAnswer(body, err)
	ctx, stop := gateDetached(req.Context())
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
func (g *Gateway) asked(ctx context.Context, token string) (*doc[gateCall], error) {
	if token == "" || len(token) > longestToken {
		return nil, nil
	}
	alias := hashed(token)
	d, err := g.calls.byAlias(ctx, alias)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(d.alias), []byte(alias)) != 1 || d.body.Question == nil:
		return nil, nil
	}
	return d, nil
}

// signed tells whether it is the calling runtime that answers, where that is to be shown.
func (g *Gateway) signed(req *http.Request, d *doc[gateCall]) bool {
	c := g.caller(d.body.Caller)
	if c == nil || !c.AnswersSigned {
		return c != nil
	}
	from, _ := g.authenticate(req)
	return from == c
}

// How an answer stands to the call.
type gateHearing int

const (
	gateLate  gateHearing = iota // nothing is open, and this is not what was answered
	gateTaken                    // it is the answer
	gateSame                     // it was the answer already (T7)
	gateWrong                    // it is no answer, and the call is over (U24)
)

func (g *Gateway) answered(ctx context.Context, w http.ResponseWriter, req *http.Request, d *doc[gateCall], in wire.Answer, bad error) {
	heard := gateLate
	d, changed, err := g.change(ctx, d.key, func(d *doc[gateCall]) bool {
		heard = g.hear(d, in, bad)
		return heard == gateTaken || heard == gateWrong
	})
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "an answer could not be kept", "error", err)
		http.Error(w, "the answer could not be kept", http.StatusServiceUnavailable)
		return
	}
	if changed {
		facts := map[string]any{"valid": heard == gateTaken, "verdict": d.body.Verdict, "session": d.body.Grant != ""}
		_ = g.record(ctx, "rap_user_answered", &d.body, facts)
		g.hint(d.key)
		defer g.moved(d)
	}
	switch heard {
	case gateTaken, gateSame:
		w.WriteHeader(http.StatusOK)
	case gateWrong:
		g.refuse(ctx, "an answer made no sense", "not the call's id, or not an index of its choices", &d.body)
		http.Error(w, "not an answer to this question; the call is over", http.StatusBadRequest)
	default:
		g.unknown(w, req, "the question is not open any more")
	}
}

// hear moves a call by an answer: the first that comes in time stands (T8).
func (g *Gateway) hear(d *doc[gateCall], in wire.Answer, bad error) gateHearing {
	c, q := &d.body, d.body.Question
	right := bad == nil && in.ID == c.ID && in.Selected >= 0 && in.Selected < q.Choices
	relayed := c.Phase == gateExecuting && q.Relayed && q.Selected == nil && !q.Bad && c.Stop == "" // nobody needs it once the run is to stop
	open := c.Phase == gateAwaiting || relayed
	switch {
	case !open && right && q.Selected != nil && *q.Selected == in.Selected:
		return gateSame
	case !open || !g.now().Before(c.Until):
		return gateLate
	case q.Relayed:
		q.Bad = !right
	case !right:
		c.settle(gateInvalid, "the answer to the question was not valid; nothing was run")
		d.due = g.now()
	default:
		g.chosen(d, in.Selected)
	}
	if !right {
		return gateWrong
	}
	q.Selected = &in.Selected
	return gateTaken
}

// chosen decides a call by the index that the user chose: only those that were offered as an allowance allow (4.3.6).
func (g *Gateway) chosen(d *doc[gateCall], index int) {
	c, q := &d.body, d.body.Question
	d.due = g.now()
	switch index {
	case 0:
	case q.Session: // never 0
		c.Grant, c.Makes = gateGrantKey(d.key, c), true
	default:
		c.settle(gateDeny, "the user denied this call")
		return
	}
	by := gateByUser
	if c.Held != "" {
		by = gateByBoth
	}
	c.Phase, c.By, c.Verdict, c.Tries = gateDecided, by, gateAllow, 0
}
