package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/assent-dev/assent/internal/backoff"
)

// Kinds of problems with a request (the cause of a RequestError) or with a response.
var (
	// ErrUnsupported means that the API doesn't support something.
	ErrUnsupported = errors.New("the Messages API does not have that")
	// ErrHistory means that the messages are not a valid history: a call without exactly one
	// result after it, a result without its call, or a misplaced content.
	ErrHistory = errors.New("not a valid history")
	// ErrContent means that a content or a definition can't be read.
	ErrContent = errors.New("not readable")

	// ErrBadResponse means that the service's response is not a message.
	ErrBadResponse = errors.New("anthropic: the response is not a message")
	// ErrCut means that a stream ended before its message did. The part before is not a
	// complete answer.
	ErrCut = errors.New("anthropic: the stream ended before the message did")
)

// RequestError describes why a request was not sent. Its cause is ErrUnsupported, ErrHistory or
// ErrContent.
type RequestError struct {
	Where  string // such as messages[2].contents[0]
	Detail string
	Err    error
}

// Error names the place, the kind of problem and the details.
func (e *RequestError) Error() string {
	return fmt.Sprintf("anthropic: %s: %v: %s", e.Where, e.Err, e.Detail)
}

// Unwrap returns the kind of problem.
func (e *RequestError) Unwrap() error { return e.Err }

func unsupported(where, detail string) error {
	return &RequestError{Where: where, Detail: detail, Err: ErrUnsupported}
}

func badHistory(where, detail string) error {
	return &RequestError{Where: where, Detail: detail, Err: ErrHistory}
}

func badContent(where, detail string) error {
	return &RequestError{Where: where, Detail: detail, Err: ErrContent}
}

func badResponse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadResponse, fmt.Sprintf(format, args...))
}

// StatusError is an error that the service reported after the SDK's retries.
type StatusError struct {
	// Status is the HTTP status. It is 200 for an error in the middle of a stream. Then see
	// Type.
	Status     int
	Type       string // such as rate_limit_error, overloaded_error or invalid_request_error; empty if unknown
	Message    string
	RetryAfter time.Duration // when to retry; zero if the service did not say
	RequestID  string
	Err        error // the SDK's error; nil for an error in a stream
}

// Error returns a single line.
func (e *StatusError) Error() string {
	kind := e.Type
	if kind == "" {
		kind = http.StatusText(e.Status)
	}
	if e.Message == "" {
		return fmt.Sprintf("anthropic: %d %s", e.Status, kind)
	}
	return fmt.Sprintf("anthropic: %d %s: %s", e.Status, kind, e.Message)
}

// Unwrap returns the SDK's error.
func (e *StatusError) Unwrap() error { return e.Err }

// callError converts an error response into a StatusError and wraps other errors.
func callError(err error) error {
	var refused *sdk.Error
	if !errors.As(err, &refused) {
		return fmt.Errorf("anthropic: %w", err)
	}
	out := errorOf(refused.StatusCode, []byte(refused.RawJSON()))
	out.Err = err
	if refused.RequestID != "" {
		out.RequestID = refused.RequestID
	}
	if refused.Response != nil {
		out.RetryAfter = backoff.RetryAfter(refused.Response.Header, time.Now(), longestWait)
	}
	return out
}

// errorOf reads the body, or event, of an error. If it can't be read, only the status is set.
func errorOf(status int, raw []byte) *StatusError {
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return &StatusError{Status: status}
	}
	return &StatusError{
		Status:    status,
		Type:      body.Error.Type,
		Message:   body.Error.Message,
		RequestID: body.RequestID,
	}
}

// longestWait limits the waiting time that a Retry-After header can request.
const longestWait = 24 * time.Hour
