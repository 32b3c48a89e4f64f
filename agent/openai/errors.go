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

// ErrCut says that the connection ended in the middle of an answer. It
// always comes with io.ErrUnexpectedEOF or the connection's error.
var ErrCut = errors.New("openai: the answer was cut in the middle")

// StatusError is a failure that the service reports.
type StatusError struct {
	// Status is the HTTP status; 0 when the failure was told inside an
	// answer that had begun well.
	Status int
	Code   string // the service's, such as rate_limit_exceeded
	Type   string
	Param  string
	// Message is the service's sentence. It may repeat secrets, so
	// Error leaves it out.
	Message    string
	RetryAfter time.Duration // how long the service wants us to wait; 0 when it didn't say
	RequestID  string
	Err        error // the SDK's error; nil inside answers
}

// Error tells the status and the code.
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

// statusError makes a StatusError of an answer that says no, and passes
// other errors on.
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

// longestWait bounds what a header can make a caller wait.
const longestWait = 24 * time.Hour

// cut is the error of an answer that ended too early: the context's,
// when that is why.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("openai: %w", ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrCut, err)
}

// unfinished is the error of a stream that ended without having said
// that it is complete.
func unfinished() error { return fmt.Errorf("%w: %w", ErrCut, io.ErrUnexpectedEOF) }

// unreadable says of an error of reading what was read; others tell for
// themselves.
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
