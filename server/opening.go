package server

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

func (x requestOps) decide() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	call, err := parseCall(x.body, "")
	if err != nil {
		return err
	}
	d, err := x.cfg.Service.Decide(x.r.Context(), x.tenant(), agent, call)
	if err != nil {
		return err
	}
	x.metrics.called(d.Outcome.String())
	return x.answer(http.StatusOK, d)
}

// agent returns the agent in the path, if the token may act for it.
func (x *exchange) agent() (string, error) {
	agent := x.r.PathValue("agent")
	return agent, x.mayActFor(agent)
}

func (x *exchange) mayActFor(agent string) error {
	if !actsFor(x.token, agent) {
		return fail(openapi.CodeAgentNotAllowed, "the token is bound to "+strings.Join(x.token.Agents, ", "))
	}
	return nil
}

func (x requestOps) openRequest() error {
	agent, err := x.agent()
	if err != nil {
		return err
	}
	key, err := x.idempotencyKey()
	if err != nil {
		return err
	}
	f := object(x.body, "", "call", "replaces", "within", "context", "ask").must("call")
	in := approval.OpenInput{
		Tenant:   x.tenant(),
		Asker:    asker(x.token),
		Agent:    agent,
		Call:     f.call("call"),
		Key:      key,
		Replaces: f.text("replaces"),
		Context:  f.context("context"),
		Within:   f.duration("within"),
		Ask:      f.text("ask"),
	}
	if f.err != nil {
		return f.err
	}
	if in.Replaces != "" {
		if _, err := x.own(in.Replaces); err != nil {
			return fail(openapi.CodeInvalid, "replaces: expected an earlier request of this token").in("replaces")
		}
	}
	if _, err := x.namesPerson(); err != nil { // the person is barred from answering, so the name must be theirs
		return err
	}
	opened, err := x.cfg.Service.Open(x.r.Context(), in)
	if err != nil {
		return err
	}
	x.metrics.called(opened.Word())
	return x.opened(opened)
}

func (x requestOps) opened(o *approval.Opened) error {
	if o.Outcome != resolve.Ask || o.Shared {
		return x.answer(http.StatusOK, o)
	}
	x.w.Header().Set("Location", "/v1/requests/"+o.Request.ID)
	x.w.Header().Set("ETag", etag(o.Request))
	return x.answer(http.StatusCreated, o)
}

const longestKey = 200 // characters

// idempotencyKey reads the Idempotency-Key header. It returns an empty string if there is
// none. A key belongs to its runtime: two runtimes may use the same key for different
// things.
func (x *exchange) idempotencyKey() (string, error) {
	switch keys := x.r.Header.Values("Idempotency-Key"); {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1 || keys[0] == "" || utf8.RuneCountInString(keys[0]) > longestKey:
		return "", bad("Idempotency-Key", fmt.Sprintf("expected one of at most %d characters", longestKey))
	default:
		return keys[0], nil
	}
}
