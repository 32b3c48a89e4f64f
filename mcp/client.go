package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// offer holds the form or the link that a client shows to its user while a call waits.
type offer struct {
	ref  string            // of the request
	text string            // of a form; "": there is none
	form *approval.Request // what the form asks
	page string            // of a link; "": there is none
	user bool              // the user of the caller may answer on that page
}

// askedWithin limits how long a call waits to learn the reference of its request, because the
// service where people answer may be unreachable.
const askedWithin = 5 * time.Second

// canForm reports whether the user of a caller may answer in the client itself. Both the
// configuration and the client's capabilities have to allow it.
func (w *waiting) canForm(r *server.Request, q *request) bool {
	forms := r.Modern || slices.Contains([]string{wire.V20250618, wire.V20251125}, r.Version)
	return w.cfg.User != nil && q.caller.InPlace && r.Capabilities.Form && forms
}

// canLink reports whether the client can be sent to a page.
func (w *waiting) canLink(r *server.Request) bool {
	return w.cfg.Page != nil && r.Capabilities.URL && (r.Modern || r.Version == wire.V20251125)
}

// offerOf waits until people were asked about a call under another reference than before, and
// returns what the client shows then. It returns nil if the client can show nothing.
func (w *waiting) offerOf(ctx context.Context, r *server.Request, q *request, key, before string) *offer {
	if !w.canForm(r, q) && !w.canLink(r) {
		return nil
	}
	c, err := w.keeper.engine.Watch(ctx, key, func(c *record) bool {
		return c.Over() || isAsked(c) && c.Ask.Ref != before || c.State != durable.Ready && c.State != durable.Asking
	})
	if err != nil || !isAsked(c) {
		return nil
	}
	o := &offer{ref: c.Ask.Ref, user: c.Ask.Question}
	if w.canForm(r, q) && c.Ask.Question && c.Part.InPlace {
		o.fill(ctx, w.cfg.User, q.caller.asker)
	}
	if w.canLink(r) && (r.Modern || !c.Part.Linked) {
		o.page = w.cfg.Page(o.ref)
	}
	return o
}

// isAsked reports whether people were asked about an open call and the reference of the request is
// known.
func isAsked(c *record) bool { return !c.Over() && c.Ask != nil && c.Ask.Ref != "" }

// fill adds the form to the offer if the question can be read and fits in a form.
func (o *offer) fill(ctx context.Context, u User, who approval.Asker) {
	asked, err := u.Question(ctx, who, o.ref)
	if err != nil {
		return
	}
	if text, fits := formText(asked); fits {
		o.text, o.form = text, asked
	}
}

// heard applies what the caller's client answered to a form. It reports whether that was an answer
// that counts.
func (w *waiting) heard(
	ctx context.Context, by *caller, key string, asked *approval.Request, result json.RawMessage,
) bool {
	ctx = context.WithoutCancel(ctx) // the answer counts even if the client has gone
	choice := choiceDeny
	switch saidIn(result) {
	case saidApprove:
		choice = choiceApprove
	case saidDeny:
	case saidDecline:
		return w.decline(ctx, key, asked.ID)
	default:
		return false
	}

	if err := w.cfg.User.Answer(ctx, by.asker, asked, choice); err != nil {
		w.cfg.Log.WarnContext(ctx, "an answer in the client doesn't count", "call", key, "error", err)
		return false
	}

	return true
}

// declined is the reason of a call that ended because the client declined the form. Clients also
// decline on their own, so it doesn't count as a person's denial.
const declined durable.Why = "declined"

// decline ends a declined call if it still asks the question that was declined.
func (w *waiting) decline(ctx context.Context, key, ref string) bool {
	c, err := w.keeper.engine.Change(ctx, key, func(c *record) error {
		if !isAsked(c) || c.Ask.Ref != ref {
			return durable.ErrUnchanged
		}
		w.keeper.engine.Finish(c, durable.Ending{Why: declined})
		return nil
	})
	if err != nil {
		return errors.Is(err, durable.ErrUnchanged)
	}
	_ = w.noteRecord(ctx, "mcp_call_declined", c, map[string]any{"channel": Channel})
	return true
}

// errNoAnswer ends a wait if the user was asked in the client and gave no answer.
var errNoAnswer = errors.New("the client gave no answer")

// offerNow shows a form or a link to a legacy client on the stream of the call. The wait goes on
// meanwhile, because the request may also be answered elsewhere.
func (w *waiting) offerNow(
	ctx context.Context, r *server.Request, q *request, key string, with *server.Exchange,
) (giveUp bool) {
	if r.Modern {
		return false // asked by a result
	}
	before := ""
	for {
		o := w.offerOf(ctx, r, q, key, before)
		switch {
		case o == nil:
			return false
		case o.form != nil:
			result, bad := with.Ask(ctx, methodElicit, formParams(r, o.text))
			if ctx.Err() != nil || bad != nil || !w.heard(ctx, q.caller, key, o.form, result) {
				return ctx.Err() == nil
			}
		case o.page != "":
			w.showLink(ctx, o, key, with)
		}

		before = o.ref
	}
}

// showLink shows the page of a request to a legacy client. The client's answer only confirms that
// the link was shown.
func (w *waiting) showLink(ctx context.Context, o *offer, key string, with *server.Exchange) {
	id := "el_" + rand.Text()
	if !w.markLinked(ctx, key) {
		return
	}
	if _, bad := with.Ask(ctx, methodElicit, linkParams(id, o.page)); bad == nil {
		w.completeLater(key, o.ref, id, with)
	}
}

// completeLater notifies a legacy client when the request behind a link has been answered.
func (w *waiting) completeLater(key, ref, id string, with *server.Exchange) {
	with.After(func(ctx context.Context, notify func(string, json.RawMessage) error) {
		_, err := w.keeper.engine.Watch(ctx, key, func(c *record) bool { return !isAsked(c) || c.Ask.Ref != ref })
		if ctx.Err() == nil && (err == nil || errors.Is(err, approval.ErrNotFound)) {
			_ = notify("notifications/elicitation/complete", written(func(w *jsonmsg.Writer) {
				w.Member("elicitationId", id)
			}))
		}
	})
}

// offerByResult asks the user of a client through the result of the call. A modern client brings
// the answer with its next call, and a client of 2025-11-25 calls again. The same thing is not
// shown twice in a row.
func (w *waiting) offerByResult(
	ctx context.Context, r *server.Request, q *request, c *record, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	if !r.Modern && (c.Part.Linked || !w.canLink(r)) {
		return nil, nil
	}
	limit, stop := context.WithTimeout(ctx, askedWithin)
	defer stop()
	o := w.offerOf(limit, r, q, c.Key, "")
	if o == nil || q.back.Offered != "" && q.back.Ref == o.ref {
		return nil, nil
	}
	q.looked = o.ref
	switch {
	case !r.Modern && o.form != nil:
		return nil, nil
	case r.Modern && o.form != nil:
		return w.sendBack(ctx, c, q.back.next(offeredForm, o.ref), o.ref, formParams(r, o.text))
	case r.Modern && o.page != "":
		return w.sendBack(ctx, c, q.back.next(offeredLink, o.ref), "see_"+o.ref, linkParams("", o.page))
	case o.page != "" && o.user && w.markLinked(ctx, c.Key):
		id := "el_" + rand.Text()
		w.completeLater(c.Key, o.ref, id, with)
		return nil, linkNeeded(id, o.page)
	}

	return nil, nil
}

// asksNext reports whether the user of a modern client can be asked by a form that the client has
// not shown yet. The wait ends early then, so that the form can be sent with the result.
func (w *waiting) asksNext(r *server.Request, q *request, c *record) bool {
	return r.Modern && w.canForm(r, q) && isAsked(c) && c.Ask.Question && c.Part.InPlace &&
		c.Ask.Ref != q.looked && c.Ask.Ref != q.back.Ref
}

// markLinked records that a client was sent to the page of a request, and reports whether this was
// the first time.
func (w *waiting) markLinked(ctx context.Context, key string) bool {
	_, err := w.keeper.engine.Change(ctx, key, func(c *record) error {
		if c.Part.Linked {
			return durable.ErrUnchanged
		}
		c.Part.Linked = true
		return nil
	})
	return err == nil
}

// broughtBack applies the answer to a form that a modern client sends with its call. It reports
// whether the client was asked but gave no answer.
func (w *waiting) broughtBack(ctx context.Context, q *request, key string) (giveUp bool) {
	back := &q.back
	if back.Offered != offeredForm || back.Key != key || w.cfg.User == nil || !q.caller.InPlace {
		return false
	}
	result := jsonmsg.Get(q.responses, back.Ref)
	if result == nil { // asked again
		back.Offered = ""
		return false
	}
	asked, err := w.cfg.User.Question(ctx, q.caller.asker, back.Ref)
	if err != nil { // it was answered elsewhere, or has expired
		return false
	}
	return !w.heard(ctx, q.caller, key, asked, result)
}
