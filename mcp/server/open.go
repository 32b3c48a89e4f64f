package server

import (
	"context"
	"encoding/json"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// The methods that belong to a connection.
const (
	methodInitialize  = "initialize"
	methodPing        = "ping"
	methodDiscover    = "server/discover"
	methodListen      = "subscriptions/listen"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
)

// initialize opens a legacy conversation with the version that the client asks for, or with our
// newest legacy version if that one is not supported.
func (s *session) initialize(ctx context.Context, r *Request) (json.RawMessage, *wire.Error) {
	f := jsonmsg.Read(r.Params, wire.Limits())
	version := f.NonEmpty("protocolVersion")
	capabilities := f.Raw("capabilities")
	if f.Err() != nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "params: %v", f.Err())
	}
	if !wire.IsLegacy(version) {
		version = wire.Legacy()[0]
	}
	if bad := s.agree(version, capabilities); bad != nil {
		return nil, bad
	}
	d := s.srv.cfg.Handler.Describe(ctx, s.caller)
	return written(func(w *jsonmsg.Writer) {
		w.Member("protocolVersion", version)
		w.Name("capabilities").Raw(d.Capabilities)
		w.Name("serverInfo").Object(s.srv.writeInfo)
		w.Optional("instructions", d.Instructions)
	})
}

// agree sets the version, once.
func (s *session) agree(version string, capabilities []byte) *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != "" {
		return wire.Fail(wire.CodeInvalidRequest, "the conversation was initialized before")
	}
	s.version = version
	s.capabilities = readCapabilities(capabilities)
	return nil
}

// discover answers a modern client's first request. It opens nothing: the client may still
// initialize a legacy conversation.
func (s *session) discover(ctx context.Context, r *Request) (json.RawMessage, *wire.Error) {
	d := s.srv.cfg.Handler.Describe(ctx, r.Caller)
	return written(func(w *jsonmsg.Writer) {
		w.Member("resultType", wire.Complete)
		w.Name("supportedVersions").Strings(wire.Modern())
		w.Name("capabilities").Raw(d.ModernCapabilities)
		w.Optional("instructions", d.Instructions)
		w.Name("ttlMs").Int(d.TTL.Milliseconds())
		w.Member("cacheScope", "private")
		w.Name("_meta").Object(func(w *jsonmsg.Writer) {
			w.Name(wire.KeyServerInfo).Object(s.srv.writeInfo)
		})
	})
}

func (s *Server) writeInfo(w *jsonmsg.Writer) {
	w.Member("name", s.cfg.Name)
	w.Member("version", s.cfg.Version)
}

// written returns a result, or an error if it could not be written.
func written(fill func(*jsonmsg.Writer)) (json.RawMessage, *wire.Error) {
	text, err := jsonmsg.Object(fill)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the answer can't be written: %v", err)
	}
	return text, nil
}
