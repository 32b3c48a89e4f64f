package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
)

// problem is an error in the form that clients get (RFC 9457). cause is only logged.
type problem struct {
	openapi.Problem
	cause error
	lacks []string // scopes, of which a token needs one
}

// Error returns the detail, or the title.
func (p *problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.cause }

// about sets the request that the problem is about.
func (p *problem) about(id string) *problem {
	p.Request = id
	return p
}

// in sets the field that is wrong.
func (p *problem) in(field string) *problem {
	p.Field = field
	return p
}

// after sets the number of seconds after which to try again.
func (p *problem) after(seconds int) *problem {
	p.RetryAfter = seconds
	return p
}

// fail returns a problem. With an empty detail only the title is shown.
func fail(code openapi.Code, detail string) *problem {
	m := openapi.MeaningOf(code)
	return &problem{Problem: openapi.Problem{
		Type:       "urn:assent:problem:" + string(code),
		Title:      m.Title,
		Status:     m.Status,
		Detail:     detail,
		Code:       code,
		NextAction: m.Next,
		RetryAfter: m.After,
	}}
}

// bad returns a problem with one part of the request: a field, a parameter or a header.
func bad(name, why string) *problem {
	return fail(openapi.CodeBadRequest, name+": "+why).in(name)
}

// problemOf converts any error to a problem that a client may see. An unknown error becomes
// 503, so that nothing runs.
func problemOf(err error) *problem {
	var known *problem
	if errors.As(err, &known) {
		return known
	}
	var input *approval.InputError
	if errors.As(err, &input) {
		return fail(openapi.CodeInvalid, input.Error()).in(input.Field)
	}
	var answer *approval.AnswerError
	if errors.As(err, &answer) {
		return fail(openapi.CodeInvalid, answer.Error()).in("data")
	}
	var said *info.Error
	if errors.As(err, &said) {
		return fail(openapi.CodeInvalid, said.Error()).in(said.Path)
	}
	var limit *approval.LimitError
	if errors.As(err, &limit) {
		return fail(openapi.CodeTooMany, limit.Detail).after(int(limit.After.Seconds()) + 1)
	}
	var unusable *plans.UnusableError
	if errors.As(err, &unusable) {
		return fail(openapi.CodeAgentUnusable, unusable.Error())
	}
	m, ok := openapi.MeaningOfError(err)
	if !ok {
		m = openapi.MeaningOf(openapi.CodeUnavailable)
	}
	p := fail(m.Code, m.Detail)
	p.cause = err
	if m.Code == openapi.CodeUnavailable && errors.Is(err, context.Canceled) {
		p.Detail = "the exchange was cut off"
	}

	return p
}

// Limits of the texts in a problem, in bytes. Callers choose the names that it repeats.
const (
	longestDetail = 1000
	longestField  = 200
)

// cut shortens a text that is too long, between two characters.
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
	switch {
	case p.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", challenge(p.Code))
	case len(p.lacks) > 0:
		h.Set("WWW-Authenticate", fmt.Sprintf(
			`Bearer realm="assent", error="insufficient_scope", scope=%q`, strings.Join(p.lacks, " ")))
	}

	text, err := json.Marshal(p.Problem)
	if err != nil { // strings and numbers always have a JSON form
		text = nil
	}
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // a client that has disconnected can't read an error either
}

func challenge(code openapi.Code) string {
	if code == openapi.CodeUnauthenticated {
		return `Bearer realm="assent"`
	}
	return `Bearer realm="assent", error="invalid_token"`
}
