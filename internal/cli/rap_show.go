package cli

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/rap"
)

// rapEnd is the JSON document of a call that has ended, with what was asked on the way.
type rapEnd struct {
	rap.Call
	Asked []rapExchange `json:"asked"`
}

// rapFollow waits for what the call comes to, and prints it.
func (a Assent) rapFollow(ctx context.Context, f rapCallFlags, runtime *rap.Runtime, terminal *rapTerminal, in rap.Invocation) error {
	call, err := runtime.Wait(ctx, in.Thread, in.ID)
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
	return a.rapPrint(f, rapEnd{call, terminal.exchanges()})
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
	if end.SignIn != "" {
		p.printf("the tool wants you to sign in: %s\n", end.SignIn)
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
