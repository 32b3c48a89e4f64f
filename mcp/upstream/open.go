package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
)

// errEra means that a server doesn't speak the era that was tried.
var errEra = errors.New("the server speaks another era")

// openPipe starts the server and finds out which era it speaks. A server that exits because a
// message precedes initialize is started again.
func (s *Server) openPipe(ctx context.Context) (*conn, error) {
	ctx, stop := context.WithTimeoutCause(ctx, s.cfg.Start, fmt.Errorf(
		"the program was started, and did not answer within %s",
		s.cfg.Start,
	))
	defer stop()
	if s.cfg.Era == Legacy {
		return s.openAs(ctx, (*conn).initialize)
	}
	c, err := s.openAs(ctx, (*conn).discover)
	if err == nil || s.cfg.Era == Modern || ctx.Err() != nil {
		return c, err
	}
	return s.openAs(ctx, (*conn).initialize)
}

// openAs starts the server and opens the conversation. If the probe only found out that the server
// is legacy, the same process is used.
func (s *Server) openAs(ctx context.Context, begin func(*conn, context.Context) error) (*conn, error) {
	c, err := s.start()
	if err != nil {
		return nil, err
	}
	err = begin(c, ctx)
	if errors.Is(err, errEra) && s.cfg.Era == Auto {
		err = c.fallBack(ctx)
	}
	if err != nil {
		err = c.orEnd(err)
		c.quit(0)
		return nil, err
	}
	if c.modern {
		go c.listen()
	}
	return c, nil
}

// orEnd returns why the program has ended, because a write to its pipe fails before that is known.
// If it has not ended, it returns the error with the last lines of the program's log.
func (c *conn) orEnd(err error) error {
	if _, broken := errors.AsType[*fs.PathError](err); broken {
		_ = wait.For(context.Background(), c.gone, 2*time.Second)
	}
	if cause := c.cause(); cause != nil {
		return cause
	}
	return &EndedError{Why: err, LastWords: c.program.said.words()}
}

// fallBack opens a legacy conversation. A modern server that was slow to start refuses that, and is
// probed again because it answers now.
func (c *conn) fallBack(ctx context.Context) error {
	err := c.initialize(ctx)
	if refused := (*wire.Error)(nil); errors.As(err, &refused) && c.discover(ctx) == nil {
		return nil
	}
	return err
}

// discover asks a modern server what it offers. A legacy server answers with an error or not at
// all.
func (c *conn) discover(ctx context.Context) error {
	probe, stop := context.WithTimeout(ctx, c.s.cfg.Probe)
	defer stop()
	c.modern = true
	out, err := c.probe(probe, "server/discover", nil)
	c.modern = false
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.cause() != nil:
		return c.cause()
	case err != nil:
		return errEra
	case out.Error != nil && (!wire.ModernCode(out.Error.Code) || legacyOnly(out.Error)),
		out.Error == nil && onlyLegacy(out.Result, "supportedVersions"):
		return errEra
	case out.Error != nil:
		return fmt.Errorf("the server can't be discovered: %w", out.Error)
	}

	c.modern = true
	c.peer = modernPeer(out)
	return nil
}

// probe is like do, but doesn't wait for the server after giving up.
func (c *conn) probe(ctx context.Context, method string, params json.RawMessage) (Answer, error) {
	r := Request{Method: method, Params: params}
	id, p, err := c.begin(ctx, &r)
	if err != nil {
		return Answer{}, err
	}
	defer c.forget(id)
	if params, err = c.s.params(&r, id, c.modern); err != nil {
		return Answer{}, err
	}
	if err := c.out.Write(&wire.Message{ID: id, Method: method, Params: params}); err != nil {
		return Answer{}, err
	}
	select {
	case a := <-p.answer:
		return a.result()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

// initialize opens a legacy conversation.
func (c *conn) initialize(ctx context.Context) error {
	params, err := c.s.initializeParams()
	if err != nil {
		return err
	}
	out, err := c.probe(ctx, "initialize", params)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if c.peer, err = legacyPeer(out); err != nil {
		return err
	}
	return c.out.Write(&wire.Message{Method: "notifications/initialized"})
}

func (s *Server) initializeParams() ([]byte, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("protocolVersion", wire.Legacy()[0])
		w.Name("capabilities").Raw(s.cfg.Capabilities)
		w.Name("clientInfo").Raw(s.info())
	})
}

// legacyPeer reads the answer to initialize.
func legacyPeer(out Answer) (Peer, error) {
	if out.Error != nil {
		return Peer{}, fmt.Errorf("initialize: %w", out.Error)
	}
	version, _ := jsonmsg.ReadString(jsonmsg.Get(out.Result, "protocolVersion"))
	if !wire.IsLegacy(version) {
		return Peer{}, fmt.Errorf("initialize: the server answered with the version %q", version)
	}

	return Peer{
		Version:      version,
		Capabilities: jsonmsg.Get(out.Result, "capabilities"),
		Info:         jsonmsg.Get(out.Result, "serverInfo"),
		Instructions: instructions(out.Result),
	}, nil
}

// modernPeer reads the answer to server/discover.
func modernPeer(out Answer) Peer {
	return Peer{
		Version:      wire.V20260728,
		Capabilities: jsonmsg.Get(out.Result, "capabilities"),
		Info:         jsonmsg.Get(jsonmsg.Get(out.Result, "_meta"), wire.KeyServerInfo),
		Instructions: instructions(out.Result),
	}
}

// instructions returns a server's instructions for the client's model. It is empty if there are
// none.
func instructions(result []byte) string {
	text, _ := jsonmsg.ReadString(jsonmsg.Get(result, "instructions"))
	return text
}
