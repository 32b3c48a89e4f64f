// Package server is what MCP clients connect to, by a pipe or by HTTP:
// it opens conversations in both eras, matches ids, ends what is
// cancelled, and carries what is said while a request is open. What the
// methods do is a Handler's matter.
package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/value"
)

// The causes for which the context of a request ends.
var (
	// ErrCancelled says that the client doesn't wait for the answer any
	// more.
	ErrCancelled = errors.New("the client cancelled the request")
	// ErrClosed says that the connection has ended.
	ErrClosed = errors.New("the connection to the client has ended")
)

// Request is a request of a client, in either era.
type Request struct {
	Caller string // the name of the client's caller in the configuration
	Method string
	Params json.RawMessage // nil when absent
	Meta   wire.Meta
	// Version is what was agreed on, or what this request says.
	Version      string
	Modern       bool
	Capabilities Capabilities // of the client; in a modern version, for this request
	// LogLevel is from which level on the client wants logs: "" is any of
	// a legacy client, and none of a modern one.
	LogLevel string
	// Header holds the headers of a modern request by HTTP; nil else.
	Header http.Header
}

// Handler answers requests and takes notifications.
type Handler interface {
	// Describe says what the gateway offers to a caller. It is part of
	// the answer to initialize and server/discover.
	Describe(ctx context.Context, caller string) Description

	// Handle answers a request. Its context ends, with a cause, when
	// nobody waits for the answer any more.
	Handle(ctx context.Context, r *Request, with *Exchange) (json.RawMessage, *wire.Error)

	// Listen says of which topics, among those that a client names, it may
	// hear, and has them told from then on until ctx ends.
	Listen(ctx context.Context, r *Request, t Topics, tell Tell) (Topics, *wire.Error)

	// Notified takes a notification other than those of the connection
	// itself.
	Notified(ctx context.Context, r *Request)
}

// Description is what a gateway says of itself.
type Description struct {
	Capabilities json.RawMessage // for legacy clients; an object
	// for modern clients: tasks are an extension there
	ModernCapabilities json.RawMessage
	Instructions       string        // "" for none
	TTL                time.Duration // how long a modern client may keep it
}

// Config says how clients are served. What is zero has the default that
// is named.
type Config struct {
	Handler Handler
	Name    string // as clients see it; "assent"
	Version string // of the program; "0"
	Limits  value.Limits
	MaxOpen int           // requests of one client that are open at once; 1,024
	Grace   time.Duration // how long requests may go on once their client is gone; 5s
	Log     *slog.Logger
}

// Server serves clients.
type Server struct {
	cfg       Config
	listeners listeners
}

// New returns a server.
func New(cfg Config) *Server {
	cfg.Name = cmp.Or(cfg.Name, "assent")
	cfg.Version = cmp.Or(cfg.Version, "0")
	cfg.MaxOpen = cmp.Or(cfg.MaxOpen, 1024)
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Limits == (value.Limits{}) {
		cfg.Limits = wire.Limits()
	}
	return &Server{cfg: cfg}
}
