package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/backoff"

	sdk "github.com/openai/openai-go/v3"
)

// ErrCut is returned if the connection ended in the middle of an answer. The error also wraps
// io.ErrUnexpectedEOF or the connection's error.
var ErrCut = errors.New("openai: the answer was cut in the middle")

// StatusError is an error that the service reports.
type StatusError struct {
	// Status is the HTTP status. It is zero if the error was reported inside of a response that
	// had begun successfully.
	Status int
	Code   string // the service's code, such as rate_limit_exceeded
	Type   string
	Param  string
	// Message is the service's text. It may repeat secrets, so Error doesn't include it.
	Message    string
	RetryAfter time.Duration // how long the service asks to wait; zero if it didn't say
	RequestID  string
	Err        error // the SDK's error; nil for errors inside of answers
}

// Error returns the status and the code.
func (e *StatusError) Error() string {
	out := "openai: the service reports a failure"
	if e.Status != 0 {
		out = "openai: status " + strconv.Itoa(e.Status)
	}
	switch {
	case e.Code != "":
		out += ": " + e.Code
	case e.Type != "":
		out += ": " + e.Type
	}

	return out
}

// Unwrap returns the SDK's error.
func (e *StatusError) Unwrap() error { return e.Err }

// statusError converts an error response into a StatusError and wraps other errors.
func statusError(res *http.Response, err error) error {
	if res == nil || res.StatusCode < 400 {
		return fmt.Errorf("openai: %w", err)
	}
	out := &StatusError{
		Status:     res.StatusCode,
		RetryAfter: backoff.RetryAfter(res.Header, time.Now(), longestWait),
		RequestID:  res.Header.Get("X-Request-Id"),
		Err:        err,
	}
	var known *sdk.Error
	if errors.As(err, &known) {
		out.Code = known.Code
		out.Type = known.Type
		out.Param = known.Param
		out.Message = known.Message
	}

	return out
}

// longestWait limits the waiting time that a Retry-After header can request.
const longestWait = 24 * time.Hour

// cut returns the error for an answer that ended too early: the context's error if that is the
// cause, otherwise ErrCut.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("openai: %w", ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrCut, err)
}

// unfinished returns the error for a stream that ended without a sign that it is complete.
func unfinished() error { return fmt.Errorf("%w: %w", ErrCut, io.ErrUnexpectedEOF) }

// unreadable adds to a decoding error that it is about the answer. It returns other errors
// unchanged.
func unreadable(err error) error {
	var unread *content.BadError
	if errors.As(err, &unread) {
		return fmt.Errorf("openai: the answer: %w", err)
	}
	return err
}

func bad(code content.Code, where, format string, args ...any) *content.BadError {
	return &content.BadError{Code: code, Where: where, Detail: fmt.Sprintf(format, args...)}
}
