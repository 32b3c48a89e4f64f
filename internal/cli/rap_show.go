package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/assent-dev/assent/rap"
)

// rapEnd is the JSON document of a call that has ended, with what was asked on the way.
type rapEnd struct {
	rap.Call
	Asked []rapExchange `json:"asked"`
}

// rapFollow waits for what the call comes to, and prints it.
func (a Assent) rapFollow(ctx context.Context, f rapCallFlags, runtime *rap.Runtime, terminal *rapTerminal, in rap.Invocation) error {
	call, err := terminal.wait(ctx, runtime, in)
	if errors.Is(err, context.Canceled) {
		_ = runtime.Cancel(context.WithoutCancel(ctx), in.Thread, in.ID, "stopped at the terminal") // as well as it goes: we are leaving
		return &exitError{ExitNo, errors.New("stopped waiting: the tool server is told so")}
	}
	if err != nil {
		return err
	}
	if terminal.err != nil {
		return terminal.done()
	}
	terminal.refused(call)
	return a.rapPrint(f, rapEnd{call, terminal.exchanges()})
}

// wait is Runtime.Wait that tells on the way where the tool wants its user to sign in: until that is done there is no result.
func (t *rapTerminal) wait(ctx context.Context, runtime *rap.Runtime, in rap.Invocation) (rap.Call, error) {
	told := ""
	for {
		soon, done := context.WithTimeout(ctx, signInEvery)
		call, err := runtime.Wait(soon, in.Thread, in.ID)
		done()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return call, err
		}
		if call.SignIn != "" && call.SignIn != told {
			told = call.SignIn
			t.printf("the tool wants you to sign in: %s\n", told)
		}
	}
}

// signInEvery is how often a call is looked at while it is waited for.
const signInEvery = 300 * time.Millisecond

// rapNews is where what goes on is told, by several at once, until the end.
type rapNews struct {
	mu sync.Mutex
	w  io.Writer
}

func (n *rapNews) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.w == nil {
		return len(text), nil
	}
	return n.w.Write(text)
}

// end drops what is told from now on.
func (n *rapNews) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.w = nil
}

// rapLog tells what the runtime refuses, without the time: somebody looks on.
func rapLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}))
}

// rapPrint prints how a call ended.
func (a Assent) rapPrint(f rapCallFlags, end rapEnd) error {
	p := a.printer()
	var no error
	if end.Failed || end.Synthetic || end.Outcome == nil {
		no = &exitError{code: ExitNo}
	}
	if f.asJSON {
		return errors.Join(p.document(end), no)
	}
	if end.Outcome != nil {
		p.outcome(end.Outcome)
	}
	if end.Synthetic {
		p.printf("(%s: these are the runtime's words, not the tool's)\n", string(end.Why))
	}
	return errors.Join(p.done(), no)
}

func (p *printer) outcome(o *rap.Outcome) {
	if o.Content == nil {
		p.raw(scrub(o.Text) + "\n")
		return
	}
	for _, c := range o.Content {
		if c.MediaType != "" {
			p.printf("[image %s, %d bytes of base64]\n", c.MediaType, len(c.Image))
			continue
		}
		p.raw(scrub(c.Text) + "\n")
	}
}
