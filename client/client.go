// Package client speaks to an assent server (docs/contracts/http.md).
// Do is all that most runtimes need: it presents a call, waits for
// people, takes the one run of it and runs exactly what was approved.
//
// Errors that the server gave are *Problem and say what to do next.
// Reads are tried again with growing pauses; so are Open and Consume,
// which carry a key made once, so that a lost answer never asks or runs
// anything twice.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/value"
)

// maxAnswer bounds one answer, in bytes: a request with several edits
// of the largest arguments.
const maxAnswer = 128 << 20

// Options are the choices of whoever makes a client. The zero value is
// the default.
type Options struct {
	// HTTP makes the exchanges; nil means one that looks at the proxy
	// environment. Redirects are never followed.
	HTTP *http.Client
	// Attempts bounds how often one exchange is tried; 0 means 5.
	Attempts int
	// Pause is what waits between attempts grow from, and MaxPause
	// where they stop; 0 means 200ms and 10s. A server that says
	// Retry-After is believed, up to MaxPause.
	Pause, MaxPause time.Duration
	// Timeout bounds one attempt, without the time that the server was
	// asked to wait; 0 means 30s.
	Timeout time.Duration
	// Poll is how often the people of a server are looked at where the
	// token may not read events; 0 means 3s.
	Poll time.Duration
	// UserAgent names the program.
	UserAgent string
}

// Client speaks to one server with one token. It is safe for concurrent
// use, and prints no secret.
type Client struct {
	base  *url.URL
	token string
	opt   Options
}

// New returns a client. The base URL is where the server is, such as
// https://assent.example; a path in it goes before /v1.
func New(baseURL, token string, opt Options) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(baseURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.User != nil ||
		base.RawQuery != "" {
		return nil, errors.New("the server's URL: expected http(s)://host[:port][/path]")
	}
	if strings.ContainsAny(token, " \r\n\t") {
		return nil, errors.New("the token holds white space: expected assent_ and 43 characters")
	}
	return &Client{base: base, token: token, opt: opt.orDefault()}, nil
}

func (o Options) orDefault() Options {
	own := http.Client{}
	if o.HTTP != nil {
		own = *o.HTTP
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &own
	if o.Attempts == 0 {
		o.Attempts = 5
	}
	if o.Pause == 0 {
		o.Pause = 200 * time.Millisecond
	}
	if o.MaxPause == 0 {
		o.MaxPause = 10 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Poll == 0 {
		o.Poll = 3 * time.Second
	}
	if o.UserAgent == "" {
		o.UserAgent = "assent-client"
	}
	return o
}

// String names the server, never the token.
func (c *Client) String() string { return c.base.Redacted() }

// GoString is String: %#v prints no token either.
func (c *Client) GoString() string { return c.String() }

// Problem is an error that the server gave.
type Problem struct{ openapi.Problem }

// Error says what was wrong, in the server's words.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%s)", p.Title, p.Code)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return text
}

// Is reports whether the problem is an error of the domain, such as
// approval.ErrFrozen: the one that its code stands for.
func (p *Problem) Is(target error) bool {
	err := openapi.MeaningOf(p.Problem.Code).Err
	return err != nil && err == target
}

// Code returns the code of the problem in an error, or "".
func Code(err error) openapi.Code {
	var p *Problem
	if errors.As(err, &p) {
		return p.Problem.Code
	}
	return ""
}

// call is one exchange.
type call struct {
	method string
	path   []string // segments, to be escaped
	query  url.Values
	body   []byte // JSON; nil for none
	header map[string]string
	again  retry
	longer time.Duration // that the server was asked to wait
}

// retry says after what a call may be tried again.
type retry int

const (
	never       retry = iota
	onceIfLost        // once, when no answer came: the server refuses what it has seen already
	whenRefused       // when no answer came, or the server said it is not available: repeating changes nothing
)

func get(query url.Values, path ...string) call {
	return call{method: http.MethodGet, path: path, query: query, again: whenRefused}
}

func post(body []byte, path ...string) call {
	return call{method: http.MethodPost, path: path, body: body}
}

// sending is a post of what is encoded.
func sending(body any, path ...string) (call, error) {
	text, err := json.Marshal(body)
	return post(text, path...), err
}

// repeatable is the call, of which repeating changes nothing.
func (in call) repeatable() call {
	in.again = whenRefused
	return in
}

// do makes an exchange and decodes the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, in call, out any) error {
	text, err := c.exchange(ctx, in)
	if err != nil || out == nil {
		return err
	}
	return in.read(text, out)
}

// as makes an exchange and decodes the answer.
func as[T any](ctx context.Context, c *Client, in call) (*T, error) {
	out := new(T)
	return out, c.do(ctx, in, out)
}

// read decodes an answer. One that another reader could read otherwise,
// since a name stands twice in it, is an error.
func (in call) read(text []byte, out any) error {
	_, err := jsonmsg.Check(text, value.Limits{MaxBytes: maxAnswer})
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("read the answer to %s /%s: %w", in.method, strings.Join(in.path, "/"), err)
	}
	return nil
}

// exchange tries until there is an answer that counts, and returns its body.
func (c *Client) exchange(ctx context.Context, in call) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		text, err := c.attempt(ctx, in)
		if err == nil || ctx.Err() != nil || attempt >= c.opt.Attempts || !in.again.allows(err, attempt) {
			return text, err
		}
		if err := wait.Pause(ctx, c.backoff(attempt, err)); err != nil {
			return nil, err
		}
	}
}

func (r retry) allows(err error, attempt int) bool {
	var p *Problem
	refused := errors.As(err, &p)
	switch {
	case r == onceIfLost:
		return !refused && attempt == 1
	case r == whenRefused && refused:
		return p.Status == http.StatusTooManyRequests || p.Status == http.StatusBadGateway ||
			p.Status == http.StatusServiceUnavailable && p.Problem.Code != openapi.CodeAgentUnusable ||
			p.Status == http.StatusGatewayTimeout
	}

	return r == whenRefused
}

// attempt makes one exchange.
func (c *Client) attempt(ctx context.Context, in call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout+in.longer)
	defer cancel()
	resp, err := c.send(ctx, in)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}

	return text, nil
}

// send makes one exchange up to the header; the answer is of the 200s,
// or the error says why not.
func (c *Client) send(ctx context.Context, in call) (*http.Response, error) {
	path, err := escaped(in.path)
	if err != nil {
		return nil, err
	}
	u := c.base.JoinPath(path...)
	u.RawQuery = in.query.Encode()
	req, err := http.NewRequestWithContext(ctx, in.method, u.String(), bytes.NewReader(in.body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("User-Agent", c.opt.UserAgent)
	if in.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range in.header {
		req.Header.Set(k, v)
	}
	resp, err := c.opt.HTTP.Do(req)
	if err != nil {
		return nil, err // *url.Error: method, URL and cause; the token is in none of them
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, problemOf(resp)
	}
	return resp, nil
}

func escaped(path []string) ([]string, error) {
	out := make([]string, len(path))
	for i, p := range path {
		if p == "" || p == "." || p == ".." { // would name another resource
			return nil, fmt.Errorf("%q is no name of anything on the server: expected an id", p)
		}
		out[i] = url.PathEscape(p)
	}

	return out, nil
}

// problemOf reads an error. One that did not come from assent (a
// proxy's) gets a code by its status.
func problemOf(resp *http.Response) *Problem {
	p := &Problem{}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what can't be read is no problem document
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") &&
		json.Unmarshal(text, &p.Problem) == nil &&
		p.Problem.Code != "" {
		p.Status = resp.StatusCode
		return p
	}

	p.Problem = openapi.Problem{
		Status:     resp.StatusCode,
		Title:      "the server answered " + resp.Status,
		Code:       openapi.CodeInternal,
		NextAction: openapi.NextActionNone,
		Detail:     "the answer is not from assent: look at the URL and at proxies on the way",
	}
	if resp.StatusCode >= 502 || resp.StatusCode == http.StatusTooManyRequests {
		p.Problem.Code, p.NextAction = openapi.CodeUnavailable, openapi.NextActionRetry
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
		p.RetryAfter = s
	}
	return p
}
