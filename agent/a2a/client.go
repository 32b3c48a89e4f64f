package a2a

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/value"
)

// Version is the supported version of A2A.
const Version = "1.0"

// ClientConfig configures the connection to a remote agent.
type ClientConfig struct {
	URL   string // of its JSON-RPC interface
	Token string // bearer token, if any
	// Loopback lets the client connect to this machine, including by plain http. Otherwise it
	// only connects to public addresses by https, and to the networks in Allow.
	Loopback bool
	Allow    []netip.Prefix
	TLS      *tls.Config   // roots and client certificates; the system's by default
	MaxBytes int           // of one response; 1 MiB by default
	Timeout  time.Duration // of one exchange; 30 seconds by default
}

// Client communicates with one remote agent over A2A 1.0, as JSON-RPC over HTTP. It doesn't
// follow redirects. Reading requests are retried a few times. A message is sent again only if
// it never left this machine, or if the peer replied that it accepts none at the moment.
type Client struct {
	cfg  ClientConfig
	http *http.Client
}

// NewClient checks the address of a remote agent. It doesn't send anything.
func NewClient(cfg ClientConfig) (*Client, error) {
	g := guard.Guard{Loopback: cfg.Loopback, Allow: cfg.Allow, TLS: cfg.TLS}
	if _, err := g.CheckURL(cfg.URL); err != nil {
		return nil, fmt.Errorf("the URL of the remote agent: %w", err)
	}
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 1<<20)
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	return &Client{cfg: cfg, http: g.Client(cfg.Timeout)}, nil
}

// PeerError is returned if the peer refused a request and has not accepted anything.
type PeerError struct {
	Code    int    // of JSON-RPC, or the HTTP status
	Message string // the peer's text; untrusted
}

// Error does not contain the peer's text.
func (e *PeerError) Error() string {
	return fmt.Sprintf("the remote agent refuses, with code %d", e.Code)
}

// CodeTaskNotFound is the JSON-RPC code for an unknown task.
const CodeTaskNotFound = -32001

// UnsureError is returned if a message was sent and no usable response came back: the peer may
// have accepted it.
type UnsureError struct{ Err error }

// Error includes the cause.
func (e *UnsureError) Error() string {
	return "it is not known whether the remote agent has the message: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnsureError) Unwrap() error { return e.Err }

// Send sends a message and returns the task that the peer creates, without waiting for its end.
// If the peer replies with a message instead of a task, Send returns a completed task without
// an id. The error is a *PeerError if the peer refused, and an *UnsureError if the message may
// have arrived. After any other error it has not arrived.
func (c *Client) Send(ctx context.Context, m *Message) (*Task, error) {
	text, err := c.call(ctx, "SendMessage", map[string]any{
		"message":       m,
		"configuration": map[string]any{"returnImmediately": true},
	})
	if err != nil {
		return nil, err
	}
	task, err := readReply(text)
	if err != nil {
		return nil, &UnsureError{err}
	}
	return task, nil
}

// readReply reads the result of a sent message.
func readReply(text []byte) (*Task, error) {
	f := jsonmsg.Read(text, jsonmsg.Limits())
	if !f.Has("message") {
		return DecodeTask(text)
	}
	m := readMessage(f.Object("message"))
	if err := f.Err(); err != nil {
		return nil, badMessage(err)
	}
	return &Task{ContextID: m.ContextID, Status: Status{State: Completed, Message: m}}, nil
}

// Task returns the current state of a task.
func (c *Client) Task(ctx context.Context, id string) (*Task, error) {
	return c.about(ctx, "GetTask", id)
}

// Cancel asks the peer to end a task, and returns the task's new state, which alone shows
// whether the task was canceled.
func (c *Client) Cancel(ctx context.Context, id string) (*Task, error) {
	return c.about(ctx, "CancelTask", id)
}

// about calls a method that may be repeated safely.
func (c *Client) about(ctx context.Context, method, id string) (*Task, error) {
	for attempt := 1; ; attempt++ {
		text, err := c.call(ctx, method, map[string]string{"id": id})
		if err == nil {
			return readAbout(text, id)
		}
		var unsure *UnsureError
		if attempt == tries || !errors.As(err, &unsure) {
			return nil, err
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// readAbout reads a task and checks that it has the requested id.
func readAbout(text []byte, id string) (*Task, error) {
	task, err := DecodeTask(text)
	if err == nil && task.ID != id {
		return nil, refuse(WrongTask, "", "the peer answers about another task")
	}
	return task, err
}

// tries limits the attempts of requests that may be repeated.
const tries = 4

func pause(ctx context.Context, attempt int) error {
	return wait.Pause(ctx, backoff.Jitter(250*time.Millisecond, 4*time.Second, attempt))
}

// call makes one JSON-RPC call. It repeats the call only if nothing has left this machine, or
// if the peer replied that it accepts nothing at the moment.
func (c *Client) call(ctx context.Context, method string, params any) ([]byte, error) {
	id := rand.Text()
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      id,
		"method":  method,
		"params":  params,
	})
	if err != nil {
		return nil, fmt.Errorf("write the message: %w", err)
	}
	for attempt := 1; ; attempt++ {
		text, err := c.post(ctx, body)
		if err == nil {
			return c.result(text, id)
		}
		if attempt == tries || !notTaken(err) {
			return nil, err
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// notTaken reports whether the peer has certainly not received the request and may accept it
// later.
func notTaken(err error) bool {
	var refused *PeerError
	var op *net.OpError
	var unsure *UnsureError
	return errors.As(err, &refused) && refused.Code == http.StatusTooManyRequests ||
		!errors.As(err, &unsure) && errors.As(err, &op) && op.Op == "dial"
}

// post sends a body and returns the response body.
func (c *Client) post(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", Version)
	if c.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, sending(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.cfg.MaxBytes)+1))
	switch {
	case err != nil:
		return nil, &UnsureError{err}
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return nil, &PeerError{Code: resp.StatusCode, Message: string(text[:min(len(text), 1<<10)])}
	case resp.StatusCode != http.StatusOK:
		return nil, &UnsureError{fmt.Errorf("the remote agent answers with status %d", resp.StatusCode)}
	case len(text) > c.cfg.MaxBytes:
		return nil, &UnsureError{fmt.Errorf("the answer has more than %d bytes", c.cfg.MaxBytes)}
	}

	return text, nil
}

// sending wraps an error in an UnsureError unless it happened before anything was sent.
func sending(err error) error {
	var op *net.OpError
	var refused *guard.Refusal
	if errors.As(err, &refused) || errors.As(err, &op) && op.Op == "dial" {
		return err
	}
	return &UnsureError{err}
}

// result returns the result of a JSON-RPC response, which must belong to this call.
func (c *Client) result(text []byte, id string) ([]byte, error) {
	f := jsonmsg.Read(text, value.Limits{MaxBytes: c.cfg.MaxBytes, MaxDepth: 128})
	version, answers := f.Text("jsonrpc"), f.Text("id")
	failed, result := f.Has("error"), f.Raw("result")
	refused := &PeerError{}
	if failed {
		e := f.Object("error")
		refused.Code = int(e.Int("code", -1<<31, 1<<31-1))
		refused.Message = e.Text("message")
	}
	switch {
	case f.Err() != nil:
		return nil, &UnsureError{badMessage(f.Err())}
	case version != "2.0" || failed == (result != nil):
		return nil, &UnsureError{errors.New("the answer is none of JSON-RPC 2.0")}
	case answers != id && (answers != "" || !failed): // the error may have happened before the peer read the id
		return nil, &UnsureError{errors.New("the answer is to another call")}
	case failed:
		return nil, refused
	}

	return result, nil
}
