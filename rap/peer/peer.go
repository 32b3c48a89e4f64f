// Package peer sends requests to the other side of RAP. All of assent's outgoing RAP requests
// use its guarded HTTP client. The client connects only to the origins registered for the peer,
// follows no redirects, ignores proxies of the environment, checks IP addresses when it
// connects (so that DNS rebinding has no effect), and limits time and the size of responses.
// Its errors never contain a URL, because paths and queries hold secrets.
package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/assent-dev/assent/internal/guard"
)

// Config describes a peer as its operator registered it. Zero fields have the documented
// default.
type Config struct {
	// URL is the base URL. Its origin (scheme, host, port) is allowed. It may be empty if there
	// are other origins.
	URL   string
	Allow []string // further origins, "https://tools.example:8443"
	// AnyPort lists origins of this machine without a port, such as "http://127.0.0.1". All
	// their ports are allowed. They are for programs that listen on another port each time they
	// start.
	AnyPort []string
	// Networks lists further networks that the origins may resolve to, such as 10.0.0.0/8. An
	// address of this machine is reached only through an origin that names it (localhost,
	// 127.0.0.1, [::1]). A private address is reached only if an origin or Networks contains
	// it. http is for this machine only.
	Networks []netip.Prefix
	Token    string      // sent as Authorization: Bearer; may be empty
	TLS      *tls.Config // roots and client certificates; nil: those of the system

	Connect  time.Duration // limit for connecting; 5s
	Timeout  time.Duration // limit for a whole exchange; 10s; negative: none
	MaxBody  int64         // limit for a response body; 1 MiB
	Attempts int           // for Deliver and Pause; 6
	Backoff  time.Duration // upper bound of the first wait, doubled each time, with jitter; 500ms
}

// Peer is a registered peer. It is safe for concurrent use.
type Peer struct {
	cfg     Config
	origins map[string]*http.Client // by scheme, host and port; "*" matches any port
}

// ErrOrigin is the cause if an address is not on an origin registered for the peer.
var ErrOrigin = errors.New("not an origin that is registered for this peer")

// StatusError is a response other than 2xx, including redirects, which are not followed.
type StatusError struct{ Code int }

// Error names the status.
func (e *StatusError) Error() string { return fmt.Sprintf("the peer answered %d", e.Code) }

// Post sends a JSON document once, to exactly this URL and byte for byte. The response body is
// discarded.
func (p *Peer) Post(ctx context.Context, to string, body []byte) error {
	_, err := p.exchange(ctx, http.MethodPost, to, body, 0)
	return err
}

// Get requests a JSON document.
func (p *Peer) Get(ctx context.Context, from string) ([]byte, error) {
	return p.exchange(ctx, http.MethodGet, from, nil, p.cfg.MaxBody)
}

// Exchange sends a JSON document once and returns the JSON response.
func (p *Peer) Exchange(ctx context.Context, to string, body []byte) ([]byte, error) {
	return p.exchange(ctx, http.MethodPost, to, body, p.cfg.MaxBody)
}

// Deliver is like Post, but retries with the same body while Again returns true, up to Attempts
// times. It returns the last error.
func (p *Peer) Deliver(ctx context.Context, to string, body []byte) error {
	for attempt := 1; ; attempt++ {
		err := p.Post(ctx, to, body)
		wait, more := p.Pause(attempt)
		if err == nil || !more || !Again(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// Pause returns how long to wait after a number of attempts, with jitter, and false if no
// attempts are left. It is for callers whose attempts outlive the process.
func (p *Peer) Pause(attempts int) (time.Duration, bool) {
	if attempts >= p.cfg.Attempts {
		return 0, false
	}
	bound := p.cfg.Backoff << min(max(attempts-1, 0), 10)
	return bound/2 + rand.N(bound/2+1), true
}

// Do sends the caller's request once and returns any response. The caller has to limit and
// close the body.
func (p *Peer) Do(r *http.Request) (*http.Response, error) {
	client, err := p.client(r.URL.String())
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	return answer, withoutURL(err)
}

// Again reports whether a retry can help: after a failed connection, a timeout, 5xx or 429.
// Refused addresses, redirects and other 4xx are final.
func Again(err error) bool {
	if err == nil {
		return false
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code >= 500 || status.Code == http.StatusTooManyRequests
	}
	_, refused := errors.AsType[*guard.Refusal](err)
	return !refused && !errors.Is(err, errAnswer)
}

// errAnswer is the cause if a response can't be used. A retry would not help.
var errAnswer = errors.New("the peer's answer is of no use")

// exchange makes one request and reads up to most bytes of a JSON response. If most is 0, the
// body is discarded.
func (p *Peer) exchange(ctx context.Context, method, to string, body []byte, most int64) ([]byte, error) {
	client, err := p.client(to)
	if err != nil {
		return nil, err
	}
	r, err := p.request(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }() // read to the end or abandoned
	if answer.StatusCode/100 != 2 {
		discard(answer.Body)
		return nil, &StatusError{answer.StatusCode}
	}
	if most == 0 {
		discard(answer.Body)
		return nil, nil
	}
	return read(answer, most)
}

// request uses the address in its original spelling, because any part of it may contain the
// peer's secret.
func (p *Peer) request(ctx context.Context, method, to string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, &guard.Refusal{Err: errors.New("the request can't be made of this address")}
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "assent")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if p.cfg.Token != "" {
		r.Header.Set("Authorization", "Bearer "+p.cfg.Token)
	}
	return r, nil
}

// discard reads a little of the body, so that the connection can be reused.
func discard(r io.Reader) { _, _ = io.CopyN(io.Discard, r, 4<<10) }

func read(answer *http.Response, most int64) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, fmt.Errorf("%w: expected application/json", errAnswer)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", withoutURL(err))
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("%w: expected at most %d bytes", errAnswer, most)
	}
	return body, nil
}

// withoutURL removes the address that net/http puts into its errors.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
