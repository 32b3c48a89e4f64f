// Package server serves MCP clients on a pipe or by HTTP. It opens conversations in both eras,
// matches ids, ends cancelled requests, and sends messages while a request is open. A Handler
// implements the methods.
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

// The causes with which the context of a request ends.
var (
	// ErrCancelled means that the client no longer waits for the answer.
	ErrCancelled = errors.New("the client cancelled the request")
	// ErrClosed means that the connection has ended.
	ErrClosed = errors.New("the connection to the client has ended")
)

// Request is a request of a client, in either era.
type Request struct {
	Caller string // the name of the client's caller in the configuration
	Method string
	Params json.RawMessage // nil when absent
	Meta   wire.Meta
	// Version is the version that was negotiated, or that this request names.
	Version      string
	Modern       bool
	Capabilities Capabilities // of the client; in a modern version, for this request
	// LogLevel is the lowest level of logs that the client wants. If it is empty, a legacy client
	// gets all levels and a modern one gets none.
	LogLevel string
	// Header holds the headers of a modern request by HTTP. It is nil for all other requests.
	Header http.Header
}

// Handler answers requests and takes notifications.
type Handler interface {
	// Describe returns what the gateway offers to a caller. It is part of the answer to initialize
	// and server/discover.
	Describe(ctx context.Context, caller string) Description

	// Handle answers a request. Its context ends, with a cause, when the answer is no longer
	// needed.
	Handle(ctx context.Context, r *Request, with *Exchange) (json.RawMessage, *wire.Error)

	// Listen returns those of the client's topics that it may subscribe to, and calls tell for
	// their changes until ctx ends.
	Listen(ctx context.Context, r *Request, t Topics, tell Tell) (Topics, *wire.Error)

	// Notified handles a notification, except those of the connection itself.
	Notified(ctx context.Context, r *Request)
}

// Description holds the facts that a gateway reports about itself.
type Description struct {
	Capabilities json.RawMessage // for legacy clients; an object
	// for modern clients: tasks are an extension there
	ModernCapabilities json.RawMessage
	Instructions       string        // "" for none
	TTL                time.Duration // how long a modern client may keep it
}

// Config configures a Server. Fields that are zero have the default that their comment names.
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
