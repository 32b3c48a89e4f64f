package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
	"github.com/assent-dev/assent/store"
)

// problem is an error as a client sees it (RFC 9457). cause is for the log only.
type problem struct {
	openapi.Problem
	cause error
}

// Error is the detail, or the title.
func (p *problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Unwrap returns what is behind it.
func (p *problem) Unwrap() error { return p.cause }

// about says which request the problem is about.
func (p *problem) about(id string) *problem {
	p.Request = id
	return p
}

// in says which field is wrong.
func (p *problem) in(field string) *problem {
	p.Field = field
	return p
}

// after says in how many seconds to try again.
func (p *problem) after(seconds int) *problem {
	p.RetryAfter = seconds
	return p
}

// kind is what all problems of one code have in common.
type kind struct {
	status int
	title  string
	next   openapi.NextAction
	after  int // seconds
}

const (
	retry   = openapi.NextActionRetry
	request = openapi.NextActionRequest
	none    = openapi.NextActionNone
)

// kinds lists every code. docs/contracts/http.md shows it as a table.
func kinds() map[openapi.Code]kind {
	return map[openapi.Code]kind{
		openapi.CodeBadRequest:           {http.StatusBadRequest, "the request can't be read", none, 0},
		openapi.CodeUnauthenticated:      {http.StatusUnauthorized, "no valid token", none, 0},
		openapi.CodeTokenExpired:         {http.StatusUnauthorized, "the token has expired", none, 0},
		openapi.CodeTokenRevoked:         {http.StatusUnauthorized, "the token was revoked", none, 0},
		openapi.CodeMissingScope:         {http.StatusForbidden, "the token may not do this", none, 0},
		openapi.CodeAgentNotAllowed:      {http.StatusForbidden, "the token may not act for this agent", none, 0},
		openapi.CodeNoPerson:             {http.StatusForbidden, "the token speaks for no person", none, 0},
		openapi.CodeUnknownPerson:        {http.StatusForbidden, "nobody is known by this name", none, 0},
		openapi.CodeNotEligible:          {http.StatusForbidden, "this person may not answer the request", none, 0},
		openapi.CodeNotFound:             {http.StatusNotFound, "not found", none, 0},
		openapi.CodeUnknownAgent:         {http.StatusNotFound, "unknown agent", none, 0},
		openapi.CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "not with this method", none, 0},
		openapi.CodePending:              {http.StatusConflict, "nobody has decided yet", retry, 5},
		openapi.CodeNotApproved:          {http.StatusConflict, "the request was not approved", none, 0},
		openapi.CodeConsumed:             {http.StatusConflict, "the approval has been used", none, 0},
		openapi.CodeStale:                {http.StatusConflict, "the rules changed since it was approved", request, 0},
		openapi.CodeClosed:               {http.StatusConflict, "the request has ended", none, 0},
		openapi.CodeQuestion:             {http.StatusConflict, "a question takes a choice, and approves nothing", none, 0},
		openapi.CodeBindingMismatch:      {http.StatusConflict, "this is not what was shown or approved", none, 0},
		openapi.CodeVersionMismatch:      {http.StatusPreconditionFailed, "the request changed meanwhile", retry, 0},
		openapi.CodeTooLarge:             {http.StatusRequestEntityTooLarge, "the body is too large", none, 0},
		openapi.CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "expected application/json", none, 0},
		openapi.CodeInvalid:              {http.StatusUnprocessableEntity, "a value that can't be accepted", none, 0},
		openapi.CodeNotShown:             {http.StatusUnprocessableEntity, "the call was not shown fully", none, 0},
		openapi.CodeHiddenValues:         {http.StatusUnprocessableEntity, "a policy forbids approving while it hides a value of the call", none, 0},
		openapi.CodeKeyReuse:             {http.StatusUnprocessableEntity, "the idempotency key was used for another call", none, 0},
		openapi.CodeEditDenied:           {http.StatusUnprocessableEntity, "the edited call is denied", none, 0},
		openapi.CodeGrantRefused:         {http.StatusUnprocessableEntity, "no standing approval can come out of this", none, 0},
		openapi.CodeFrozen:               {http.StatusLocked, "frozen", none, 0},
		openapi.CodeIfMatchRequired:      {http.StatusPreconditionRequired, "an answer must say which version it answers", none, 0},
		openapi.CodeTooMany:              {http.StatusTooManyRequests, "too much at once", retry, 10},
		openapi.CodeInternal:             {http.StatusInternalServerError, "a fault of the server", none, 0},
		openapi.CodeTampered:             {http.StatusInternalServerError, "the database was tampered with", none, 0},
		openapi.CodeUnavailable:          {http.StatusServiceUnavailable, "not available now", retry, 2},
		openapi.CodeAgentUnusable:        {http.StatusServiceUnavailable, "the agent's files can't be used", none, 0},
		openapi.CodeWrongHost:            {http.StatusMisdirectedRequest, "not a name of this server", none, 0},
	}
}

// fail makes a problem. An empty detail leaves the title to speak.
func fail(code openapi.Code, detail string) *problem {
	k := kinds()[code]
	return &problem{Problem: openapi.Problem{
		Type: "urn:assent:problem:" + string(code), Title: k.title, Status: k.status, Detail: detail, Code: code, NextAction: k.next, RetryAfter: k.after,
	}}
}

// sentinels says which code an error of the domain has, and what to tell beside its title.
func sentinels() []struct {
	err    error
	code   openapi.Code
	detail string
} {
	return []struct {
		err    error
		code   openapi.Code
		detail string
	}{
		{store.ErrTampered, openapi.CodeTampered, "what stands in the database was not written by this service, so nothing rests on it: its log says what"},
		{approval.ErrNotFound, openapi.CodeNotFound, ""},
		{approval.ErrUnknownAgent, openapi.CodeUnknownAgent, "no agent of this id is loaded: look at the id, and at what the server was started with"},
		{approval.ErrVersion, openapi.CodeVersionMismatch, "read the request again, show it again, then answer with the new version"},
		{approval.ErrBinding, openapi.CodeBindingMismatch, "an approver may have edited the call: read the request again, and present or answer what stands there now"},
		{approval.ErrNotShown, openapi.CodeNotShown, "an approval needs shown_fully: true, which only a channel that showed the whole call may say"},
		{approval.ErrHidden, openapi.CodeHiddenValues, "deny it, or have its rules show what they hide"},
		{approval.ErrPending, openapi.CodePending, "wait for the request with ?wait=, then consume"},
		{approval.ErrNotApproved, openapi.CodeNotApproved, ""},
		{approval.ErrConsumed, openapi.CodeConsumed, "it ran once, and will not run again"},
		{approval.ErrStale, openapi.CodeStale, "open a new request for the call"},
		{approval.ErrFrozen, openapi.CodeFrozen, "the kill switch is thrown; nothing runs until it is lifted"},
		{approval.ErrKeyReuse, openapi.CodeKeyReuse, "use a new key for another call"},
		{approval.ErrClosed, openapi.CodeClosed, ""},
		{approval.ErrQuestion, openapi.CodeQuestion, "answer it with choose or dismiss, then read the request"},
		{approval.ErrEditDenied, openapi.CodeEditDenied, ""},
		{approval.ErrGrantRefused, openapi.CodeGrantRefused, ""},
		{approval.ErrNotEligible, openapi.CodeNotEligible, ""},
		{approval.ErrUnknownName, openapi.CodeUnknownPerson, "the directory does not know the token's person"},
	}
}

// problemOf turns any error into what a client may see. What is not known to be the caller's fault is ours: not available, and nothing runs.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var input *approval.InputError
	if errors.As(err, &input) {
		return fail(openapi.CodeInvalid, input.Error()).in(input.Field)
	}
	var limit *approval.LimitError
	if errors.As(err, &limit) {
		return fail(openapi.CodeTooMany, limit.Detail).after(int(limit.After.Seconds()) + 1)
	}
	for _, s := range sentinels() {
		if errors.Is(err, s.err) {
			p = fail(s.code, s.detail)
			p.cause = err
			return p
		}
	}
	var unusable *plans.UnusableError
	if errors.As(err, &unusable) {
		return fail(openapi.CodeAgentUnusable, unusable.Error())
	}
	p = fail(openapi.CodeUnavailable, "nothing may run until the server can ask again")
	if p.cause = err; errors.Is(err, context.Canceled) {
		p.Detail = "the exchange was cut off"
	}
	return p
}

// What a problem says at most, in bytes. Callers choose the names that it repeats.
const (
	longestDetail = 1000
	longestField  = 200
)

// cut leaves out the end of a text that is too long, between two characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// write sends the problem.
func (p *problem) write(w http.ResponseWriter) {
	p.Detail, p.Field = cut(p.Detail, longestDetail), cut(p.Field, longestField)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge(p.Code))
	}
	text, err := json.Marshal(p.Problem)
	if err != nil { // strings and numbers always have a JSON form
		text = nil
	}
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // whoever is gone reads no error either
}

func challenge(code openapi.Code) string {
	if code == openapi.CodeUnauthenticated {
		return `Bearer realm="assent"`
	}
	return `Bearer realm="assent", error="invalid_token"`
}
