package server

import (
	"fmt"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
)

func (x requestOps) consume() error {
	r, err := x.own(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	f := object(x.body, "", "call", "binding", "key").must("key")
	in := approval.ConsumeInput{
		Tenant:  x.tenant(),
		ID:      r.ID,
		Asker:   asker(x.token),
		Call:    f.call("call"),
		Binding: f.text("binding"),
		Key:     f.text("key"),
	}
	switch {
	case f.err != nil:
		return f.err
	case f.has("call") == f.has("binding"):
		return fail(openapi.CodeBadRequest, "expected either call or binding")
	case f.has("binding") && in.Binding == "":
		return bad("binding", "expected the digest of the call")
	case in.Key == "" || utf8.RuneCountInString(in.Key) > longestKey:
		return bad("key", fmt.Sprintf("expected a text of at most %d characters", longestKey))
	}

	consumed, err := x.cfg.Service.Consume(x.r.Context(), in)
	x.metrics.consumed(err)
	if err != nil {
		return x.with(r, err)
	}
	return x.answerRequest(consumed)
}

func (x requestOps) cancel() error {
	find := x.own
	if may(x.token, openapi.ScopeAdmin) {
		find = x.known
	}
	r, err := find(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	reason, err := x.reason()
	if err != nil {
		return err
	}
	cancelled, err := x.cfg.Service.Cancel(x.r.Context(), x.tenant(), r.ID, actor(x.token), reason)
	if err != nil {
		return x.with(r, err)
	}
	return x.answerRequest(cancelled)
}

const longestReason = 4000 // characters

// reason reads a body that contains only a reason, or no body.
func (x *exchange) reason() (string, error) {
	if len(x.body) == 0 {
		return "", nil
	}
	f := object(x.body, "", "reason")
	return f.reason(), f.err
}

func (f *fields) reason() string {
	reason := f.text("reason")
	if utf8.RuneCountInString(reason) > longestReason {
		f.refuse("reason", fmt.Sprintf("expected at most %d characters", longestReason))
	}
	return reason
}

// with adds the request and its current state to a problem.
func (x requestOps) with(r *approval.Request, err error) *problem {
	p := problemOf(err).about(r.ID)
	if now, err := x.cfg.Service.Request(x.r.Context(), x.tenant(), r.ID); err == nil {
		r = now
	}
	switch p.Code {
	case openapi.CodeNotApproved,
		openapi.CodeClosed,
		openapi.CodePending,
		openapi.CodeConsumed,
		openapi.CodeStale,
		openapi.CodeVersionMismatch:
		p.State = r.State
	}

	if p.Code == openapi.CodeNotApproved && p.Detail == "" {
		p.Detail = "it is " + string(r.State)
	}
	return p
}
