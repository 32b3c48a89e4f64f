// Package peer reaches the other side of RAP. All of assent's outgoing RAP requests go through one guarded HTTP client: it knows the origins
// that were registered for a peer and reaches no other, follows no redirect, listens to no proxy of the environment, checks addresses when it
// connects (so a name that resolves to something else later gains nothing), waits no longer than it was told, and reads no more of an answer
// than it needs. Its errors never repeat an address: paths and queries hold secrets.
package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Config describes one peer as its operator registered it.
type Config struct {
	URL   string   // configured base URL; its origin (scheme, host, port) is allowed. "" for a peer that is known by Allow alone
	Allow []string // further origins, "https://tools.example:8443"
	// Networks are further networks that the origins may resolve to, such as 10.0.0.0/8. A loopback address is reached only where an origin names
	// one (localhost, 127.0.0.1, [::1]); http is for loopback only.
	Networks []netip.Prefix
	Token    string      // sent as Authorization: Bearer, to the allowed origins; "" none
	TLS      *tls.Config // roots and client certificates; nil: those of the system

	Connect  time.Duration // 5s
	Timeout  time.Duration // of one whole exchange; 10s
	MaxBody  int64         // of an answer that is read (Get); 1 MiB
	Attempts int           // of Deliver; 6
	Backoff  time.Duration // upper bound of the first wait, doubled for each further one, with jitter; 500ms
}

// Peer is one registered peer. It is safe for concurrent use.
type Peer struct{ cfg Config }

// ErrOrigin is the cause when an address is none that was registered for the peer.
var ErrOrigin = errors.New("not an origin that is registered for this peer")

// StatusError is an answer that was not 2xx. Redirects are among them: nobody follows them.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("the peer answered %d", e.Code) }

// New checks the configuration.
func New(cfg Config) (*Peer, error) { return nil, errors.New("being written") }

// Check reports an address that this peer's client never reaches: not absolute http(s), with user or fragment, longer than 4096 bytes, or of
// another origin (ErrOrigin). Every request checks again.
func (p *Peer) Check(raw string) error { return errors.New("being written") }

// Get reads a JSON document.
func (p *Peer) Get(ctx context.Context, url string) ([]byte, error) {
	return nil, errors.New("being written")
}

// Post sends a JSON document once, to exactly this URL, byte for byte as it is given. The answer's body is thrown away.
func (p *Peer) Post(ctx context.Context, url string, body []byte) error {
	return errors.New("being written")
}

// Exchange sends a JSON document once and reads a JSON answer.
func (p *Peer) Exchange(ctx context.Context, url string, body []byte) ([]byte, error) {
	return nil, errors.New("being written")
}

// Deliver is Post, repeated with the same body while Again holds, a bounded number of times; the last error otherwise.
func (p *Peer) Deliver(ctx context.Context, url string, body []byte) error {
	return errors.New("being written")
}

// Pause returns how long to wait after so many attempts, with jitter, and false when they are spent: for those whose attempts must outlive
// the process.
func (p *Peer) Pause(attempts int) (time.Duration, bool) { return 0, false }

// Again reports whether trying once more can help: no connection, no answer in time, 5xx, 429. Refused addresses, redirects and 4xx are final.
func Again(err error) bool { return false }
