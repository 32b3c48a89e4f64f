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

// What is wrong with a request (the cause of a RequestError) or with
// what came back.
var (
	// ErrUnsupported says that the API has no such thing.
	ErrUnsupported = errors.New("the Messages API does not have that")
	// ErrHistory says that the messages are no valid history: a call
	// without exactly one result beside it, a result without its call,
	// or a content where it can't stand.
	ErrHistory = errors.New("not a valid history")
	// ErrContent says that a content or a definition can't be read.
	ErrContent = errors.New("not readable")

	// ErrBadResponse says that the service answered something that is
	// no message.
	ErrBadResponse = errors.New("anthropic: the response is not a message")
	// ErrCut says that a stream ended before its message did. What came
	// before is not an answer.
	ErrCut = errors.New("anthropic: the stream ended before the message did")
)

// RequestError says why a request was not sent. Its cause is ErrUnsupported,
// ErrHistory or ErrContent.
type RequestError struct {
	Where  string // such as messages[2].contents[0]
	Detail string
	Err    error
}

// Error names the place, the kind of problem and what was found.
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

// StatusError is an error that the service told, after the SDK's retries.
type StatusError struct {
	// Status is the HTTP status. It is 200 for an error that came in
	// the middle of a stream; Type tells more then.
	Status     int
	Type       string // such as rate_limit_error, overloaded_error, invalid_request_error; "" when the body told none
	Message    string
	RetryAfter time.Duration // when to try again; 0 when the service did not say
	RequestID  string
	Err        error // of the SDK; nil for one in a stream
}

// Error is one line.
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

// Unwrap returns the error of the SDK.
func (e *StatusError) Unwrap() error { return e.Err }

// callError makes a StatusError of what the service refused; other
// failures are wrapped.
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

// errorOf reads the body, or event, of an error. One that can't be read
// leaves the status.
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

// longestWait bounds what a header can make a caller wait.
const longestWait = 24 * time.Hour
