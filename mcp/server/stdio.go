package server

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/assent-dev/assent/mcp/wire"
)

// Pipe serves one client on a pipe, such as standard input and output, until the pipe or ctx ends.
// Requests that are open then may go on for Config.Grace. Only messages are written to out.
//
// The caller of Pipe owns in: a blocked read ends when in is closed.
func (s *Server) Pipe(ctx context.Context, caller string, in io.Reader, out io.Writer) error {
	to := wire.NewPipe(out)
	p := &pipe{
		session: s.newSession(caller, to),
		lines:   wire.NewLines(in, s.cfg.Limits.MaxBytes),
		out:     to,
	}
	err := p.read(ctx)
	p.finish(ctx)
	return err
}

// pipe is a client on a pipe.
type pipe struct {
	*session
	lines *wire.Lines
	out   *wire.Pipe
}

// read handles messages until there are no more.
func (p *pipe) read(ctx context.Context) error {
	lines := make(chan line)
	go p.scan(ctx, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-lines:
			if errors.Is(l.err, io.EOF) {
				return nil
			}
			if l.err != nil && !errors.Is(l.err, wire.ErrTooLong) {
				return l.err
			}
			p.line(ctx, l)
		}
	}
}

// line is the result of one read.
type line struct {
	text []byte
	err  error
}

// scan reads lines in a goroutine of its own, because a read can't be interrupted. It ends with the
// pipe.
func (p *pipe) scan(ctx context.Context, to chan<- line) {
	for {
		text, err := p.lines.Next()
		select {
		case to <- line{text: text, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, wire.ErrTooLong) {
			return
		}
	}
}

// line handles a line: a message, or a batch if the version has them.
func (p *pipe) line(ctx context.Context, l line) {
	if l.err != nil {
		p.refuse(ctx, p.out, wire.ID{}, wire.Fail(wire.CodeInvalidRequest, "%v", l.err))
		return
	}
	all, is, bad := wire.Batch(l.text, p.srv.cfg.Limits)
	switch {
	case bad != nil:
		p.refuse(ctx, p.out, wire.ID{}, bad)
	case !is:
		p.message(ctx, l.text)
	case p.batches():
		for _, text := range all {
			p.message(ctx, text)
		}
	default:
		p.refuseBatch(ctx, all)
	}
}

// refuseBatch answers each request of a batch with an error if the version has no batches, because
// the client waits for the answers.
func (p *pipe) refuseBatch(ctx context.Context, all [][]byte) {
	answered := false
	for _, text := range all {
		m, _ := wire.Parse(text, p.srv.cfg.Limits)
		if m.ID.IsZero() || m.Kind() == wire.Response {
			continue
		}
		answered = true
		p.refuse(ctx, p.out, m.ID, wire.Fail(wire.CodeInvalidRequest, "expected one message, found a batch"))
	}
	if !answered {
		p.refuse(ctx, p.out, wire.ID{}, wire.Fail(wire.CodeInvalidRequest, "expected one message, found a batch"))
	}
}

// message handles one message. The end of the pipe doesn't end its request: see finish.
func (p *pipe) message(ctx context.Context, text []byte) {
	m, bad := wire.Parse(text, p.srv.cfg.Limits)
	if bad != nil {
		p.refuse(ctx, p.out, m.ID, bad)
		return
	}
	p.take(context.WithoutCancel(ctx), &m, p.out)
}

// batches reports whether the client may send several messages at once.
func (s *session) batches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version == wire.V20250326
}

// finish waits a while for open requests to end, and then ends them.
func (p *pipe) finish(ctx context.Context) {
	p.leave()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		p.work.Wait()
	}()
	grace := time.NewTimer(p.srv.cfg.Grace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	}

	p.close(ErrClosed)
}
