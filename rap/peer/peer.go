// Package peer reaches the other side of RAP. All of assent's outgoing
// RAP requests go through one guarded HTTP client: it knows the origins
// that were registered for a peer and reaches no other, follows no
// redirect, listens to no proxy of the environment, checks addresses
// when it connects (so a name that resolves to something else later
// gains nothing), waits no longer than it was told, and reads no more
// of an answer than it needs. Its errors never repeat an address: paths
// and queries hold secrets.
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

// Config describes one peer as its operator registered it. Zero fields
// take the defaults named.
type Config struct {
	// configured base URL; its origin (scheme, host, port) is allowed.
	// "" for a peer that is known by Allow alone
	URL   string
	Allow []string // further origins, "https://tools.example:8443"
	// AnyPort are origins of this machine without a port,
	// "http://127.0.0.1": every port of them is allowed. They are for
	// programs that listen at another port each time they start.
	AnyPort []string
	// Networks are further networks that the origins may resolve to,
	// such as 10.0.0.0/8. An address of this machine is reached only
	// through an origin that names it (localhost, 127.0.0.1, [::1]), a
	// private address only where it stands in an origin or in Networks;
	// http is for this machine only.
	Networks []netip.Prefix
	Token    string      // sent as Authorization: Bearer; "" none
	TLS      *tls.Config // roots and client certificates; nil: those of the system

	Connect  time.Duration // for a connection to be made; 5s
	Timeout  time.Duration // of one whole exchange; 10s; below 0 there is none
	MaxBody  int64         // of an answer that is read; 1 MiB
	Attempts int           // of Deliver and Pause; 6
	Backoff  time.Duration // upper bound of the first wait, doubled for each further one, with jitter; 500ms
}

// Peer is one registered peer. It is safe for concurrent use.
type Peer struct {
	cfg     Config
	origins map[string]*http.Client // by scheme, host and port; "*" stands for any port
}

// ErrOrigin is the cause when an address is none that was registered
// for the peer.
var ErrOrigin = errors.New("not an origin that is registered for this peer")

// StatusError is an answer that was not 2xx. Redirects are among them:
// nobody follows them.
type StatusError struct{ Code int }

// Error names the status.
func (e *StatusError) Error() string { return fmt.Sprintf("the peer answered %d", e.Code) }

// Post sends a JSON document once, to exactly this URL, byte for byte
// as it is given. The answer's body is thrown away.
func (p *Peer) Post(ctx context.Context, to string, body []byte) error {
	_, err := p.exchange(ctx, http.MethodPost, to, body, 0)
	return err
}

// Get reads a JSON document.
func (p *Peer) Get(ctx context.Context, from string) ([]byte, error) {
	return p.exchange(ctx, http.MethodGet, from, nil, p.cfg.MaxBody)
}

// Exchange sends a JSON document once and reads a JSON answer.
func (p *Peer) Exchange(ctx context.Context, to string, body []byte) ([]byte, error) {
	return p.exchange(ctx, http.MethodPost, to, body, p.cfg.MaxBody)
}

// Deliver is Post, repeated with the same body while Again holds, at
// most Attempts times; the last error otherwise.
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

// Pause returns how long to wait after so many attempts, with jitter,
// and false when they are spent: for those whose attempts must outlive
// the process.
func (p *Peer) Pause(attempts int) (time.Duration, bool) {
	if attempts >= p.cfg.Attempts {
		return 0, false
	}
	bound := p.cfg.Backoff << min(max(attempts-1, 0), 10)
	return bound/2 + rand.N(bound/2+1), true
}

// Do sends a request of the caller's making once, and returns whatever
// came: the body is the caller's to bound and to close.
func (p *Peer) Do(r *http.Request) (*http.Response, error) {
	client, err := p.client(r.URL.String())
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	return answer, withoutURL(err)
}

// Again reports whether trying once more can help: no connection, no
// answer in time, 5xx, 429. Refused addresses, redirects and other 4xx
// are final.
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

// errAnswer is the cause when an answer can't be read: another attempt
// would bring the same.
var errAnswer = errors.New("the peer's answer is of no use")

// exchange makes one request and reads up to most bytes of a JSON
// answer; none when most is 0.
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
	defer func() { _ = answer.Body.Close() }() // read to the end or given up
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

// request keeps the address as it was written: the peer's secret may
// stand in any part of it.
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

// discard reads a little, so that the connection can be used again.
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

// withoutURL drops the address, which net/http puts into its errors.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
