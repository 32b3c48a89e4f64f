// Package client is a client of an assent server (docs/contracts/http.md). Most runtimes need
// only Do: it presents a call, waits for people, claims its one run and runs exactly what was
// approved.
//
// Errors from the server are *Problem and say what to do next. Reads are retried with growing
// pauses. So are Open and Consume: they send an idempotency key, so that a lost response never
// asks people or runs anything twice.
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

// maxAnswer limits one response, in bytes. A request with several edits of the largest
// arguments fits.
const maxAnswer = 128 << 20

// Options configures a client. The zero value has the defaults.
type Options struct {
	// HTTP makes the requests. The default uses the proxy of the environment. Redirects are
	// never followed.
	HTTP *http.Client
	// Attempts limits the attempts of one exchange. The default is 5.
	Attempts int
	// Pause is the initial wait between attempts and MaxPause the longest. The defaults are
	// 200ms and 10s. A Retry-After of the server takes precedence, up to MaxPause.
	Pause, MaxPause time.Duration
	// Timeout limits one attempt, in addition to the time that the server was asked to wait.
	// The default is 30s.
	Timeout time.Duration
	// Poll is the interval between checks for changes if the token may not read events. The
	// default is 3s.
	Poll time.Duration
	// UserAgent identifies the program.
	UserAgent string
}

// Client is a client of one server with one token. It is safe for concurrent use. Printing it
// reveals no secret.
type Client struct {
	base  *url.URL
	token string
	opt   Options
}

// New returns a client. The base URL is that of the server, such as https://assent.example. A
// path in it is prepended to /v1.
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

// String returns the server's URL without the token.
func (c *Client) String() string { return c.base.Redacted() }

// GoString returns String, so that %#v does not print the token.
func (c *Client) GoString() string { return c.String() }

// Problem is an error from the server.
type Problem struct{ openapi.Problem }

// Error returns the server's description of the problem.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%s)", p.Title, p.Code)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return text
}

// Is reports whether target is the domain error for the problem's code, such as
// approval.ErrFrozen.
func (p *Problem) Is(target error) bool {
	err := openapi.MeaningOf(p.Problem.Code).Err
	return err != nil && err == target
}

// Code returns the code of the problem in an error, or an empty string.
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
	path   []string // segments, not escaped yet
	query  url.Values
	body   []byte // JSON; may be nil
	header map[string]string
	again  retry
	longer time.Duration // additional time that the server was asked to wait
}

// retry says after which failures a call may be retried.
type retry int

const (
	never       retry = iota
	onceIfLost        // once after a lost response: the server refuses a repetition
	whenRefused       // after a lost response or if the server is unavailable: a repetition changes nothing
)

func get(query url.Values, path ...string) call {
	return call{method: http.MethodGet, path: path, query: query, again: whenRefused}
}

func post(body []byte, path ...string) call {
	return call{method: http.MethodPost, path: path, body: body}
}

// sending returns a post with a JSON body.
func sending(body any, path ...string) (call, error) {
	text, err := json.Marshal(body)
	return post(text, path...), err
}

// repeatable returns the call with retries enabled, for calls whose repetition changes nothing.
func (in call) repeatable() call {
	in.again = whenRefused
	return in
}

// do makes an exchange and decodes the response into out, unless that is nil.
func (c *Client) do(ctx context.Context, in call, out any) error {
	text, err := c.exchange(ctx, in)
	if err != nil || out == nil {
		return err
	}
	return in.read(text, out)
}

// as makes an exchange and returns the decoded response.
func as[T any](ctx context.Context, c *Client, in call) (*T, error) {
	out := new(T)
	return out, c.do(ctx, in, out)
}

// read decodes a response. It returns an error for JSON that another reader could understand
// differently, such as duplicate names.
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

// exchange retries until there is a final response, and returns its body.
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

// send makes one exchange up to the response header. It returns an error unless the status is
// 2xx.
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
		return nil, err // a *url.Error has method, URL and cause, but not the token
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
		if p == "" || p == "." || p == ".." { // would be another resource
			return nil, fmt.Errorf("%q is no name of anything on the server: expected an id", p)
		}
		out[i] = url.PathEscape(p)
	}

	return out, nil
}

// problemOf returns the error in a response. An error that is not from assent (but a proxy, for
// example) gets a code by its status.
func problemOf(resp *http.Response) *Problem {
	p := &Problem{}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // a body that can't be read is not a problem document
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
