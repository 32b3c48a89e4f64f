package rap

import (
	"context"
	"errors"
	"net/http"
)

// Upstream wraps the operations of another RAP tool server: it discovers them now and calls them through a Runtime of its own rooms. Questions of the
// upstream server are relayed (Job.Ask).
func Upstream(ctx context.Context, cfg UpstreamConfig) (*UpstreamServer, error) {
	return nil, errors.New("being written")
}

// UpstreamConfig names the server behind.
type UpstreamConfig struct {
	Common
	Server      Server
	CallbackURL string // base under which the upstream server reaches UpstreamServer.ServeHTTP
}

// UpstreamServer is a tool server behind a gateway.
type UpstreamServer struct{}

// Operations are what it offers.
func (u *UpstreamServer) Operations() []Operation { return nil }

// ServeHTTP takes its callbacks.
func (u *UpstreamServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {}

// Run works as Runtime.Run.
func (u *UpstreamServer) Run(ctx context.Context) error { return errors.New("being written") }
