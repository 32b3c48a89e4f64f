package rapcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/runtime"
)

// rapEnd is the JSON document of an ended call, with the questions that were asked.
type rapEnd struct {
	runtime.Call
	Asked  []rapExchange `json:"asked"`
	Events []rap.Event   `json:"events,omitempty"` // that came after the result
	Ended  rapEnded      `json:"ended,omitempty"`  // how the subscription did
}

// rapEnded is the way in which the events after a result ended.
type rapEnded string

const (
	rapFinal       rapEnded = "final"       // the tool said that it was the last one
	rapInterrupted rapEnded = "interrupted" // stopped by the user
	rapTimeout     rapEnded = "timeout"     // --within was over
)

// rapFollow waits for the result of the call and prints it.
func (a command) rapFollow(
	ctx context.Context,
	f rapCallFlags,
	threads *runtime.Threads,
	terminal *rapTerminal,
	in runtime.Invocation,
	until time.Time,
) error {
	of, err := threads.Follow(ctx, in.Thread, in.ID, runtime.Place{})
	if err != nil {
		return err
	}
	call, err := terminal.wait(ctx, of)
	if errors.Is(err, context.Canceled) {
		// errors are ignored: the command is exiting
		_ = threads.Cancel(context.WithoutCancel(ctx), in.Thread, in.ID, "stopped at the terminal")
		return term.No("stopped waiting: the tool server is told so")
	}
	if err != nil {
		return err
	}
	if terminal.Err != nil {
		return terminal.Done()
	}
	terminal.refused(call)
	end := rapEnd{Call: call, Asked: terminal.exchanges()}
	if !call.Subscription {
		return a.rapPrint(f, end)
	}
	return a.rapEvents(ctx, f, following{
		threads:  threads,
		of:       of,
		terminal: terminal,
	}, end, until)
}

// following holds what is needed to follow a call after its result.
type following struct {
	threads  *runtime.Threads
	of       *runtime.Follower
	terminal *rapTerminal
}

// rapEvents prints the events after a result as they arrive, up to the last one.
func (a command) rapEvents(
	ctx context.Context, f rapCallFlags, call following, end rapEnd, until time.Time,
) error {
	p := a.Printer()
	if !f.asJSON {
		printOutcome(p, end.Outcome)
	}
	limit, stop := context.WithDeadline(ctx, until)
	defer stop()
	err := call.eachEvent(limit, func(e rap.Event) {
		end.Events = append(end.Events, e)
		if !f.asJSON {
			p.Raw(term.Scrub(e.Text) + "\n")
		}
	})
	end.Ended = rapFinal
	if limit.Err() != nil && err != nil {
		end.Ended, err = rapInterrupted, errors.New("stopped listening: the tool server is told so")
		if ctx.Err() == nil {
			end.Ended, err = rapTimeout, fmt.Errorf(
				"its events went on for longer than --within %s: the tool server is told that nobody listens any more",
				f.within,
			)
		}

		// errors are ignored: the command is exiting
		_ = call.threads.Cancel(context.WithoutCancel(ctx), end.Thread, end.ID, "nobody listens any more")
		err = term.ExitWith(term.ExitNo, err)
	}

	if last := len(end.Events) - 1; err == nil && strings.HasPrefix(end.Events[last].Text, "Error:") {
		err = term.Exit(term.ExitNo)
	}
	if f.asJSON {
		return errors.Join(p.Document(end), err)
	}
	return errors.Join(p.Done(), err)
}

// eachEvent shows the events of a call as they arrive. It returns nil after the last one.
func (f *following) eachEvent(ctx context.Context, show func(rap.Event)) error {
	for {
		n, err := nextNews(ctx, f.of)
		if err != nil {
			return err
		}
		if n.Event == nil {
			f.terminal.tell(n)
			continue
		}
		show(*n.Event)
		if n.Event.Final {
			return nil
		}
	}
}

// nextNews waits for the next change of a call.
func nextNews(ctx context.Context, of *runtime.Follower) (runtime.News, error) {
	for {
		p, err := of.Next(ctx)
		if err != nil {
			return runtime.News{}, err
		}
		if n, ok, err := p.Read(ctx); ok || err != nil {
			return n, err
		}
	}
}

// wait waits for the result of a call. Meanwhile it prints what the tool shows and where its user
// has to sign in, without which there is no result.
func (t *rapTerminal) wait(ctx context.Context, of *runtime.Follower) (runtime.Call, error) {
	for told := ""; ; {
		n, err := nextNews(ctx, of)
		switch {
		case err != nil:
			return runtime.Call{}, err
		case n.Call == nil:
			t.tell(n)
		case n.Call.State == runtime.CallDone:
			return *n.Call, nil
		case n.Call.SignIn != "" && n.Call.SignIn != told:
			told = n.Call.SignIn
			t.signIn(*n.Call)
		}
	}
}

// tell prints news other than results and events.
func (t *rapTerminal) tell(n runtime.News) {
	switch {
	case n.View != nil:
		content, cut := safetext.Head(string(n.View.Content), maxShownView)
		if cut {
			content += " …"
		}
		t.mu.Lock() // no question is asked meanwhile
		defer t.mu.Unlock()
		t.Printf("the tool shows %s: %s\n", n.View.Type, content)
	case n.Lost > 0:
		t.Printf("%d of its events came faster than they were read, and are gone\n", n.Lost)
	}
}

// maxShownView limits how many characters of a view are printed.
const maxShownView = 1000

// signIn prints the sign-in link of a tool with its host in front if the host is registered. Other
// links are not shown, because they could lead anywhere.
func (t *rapTerminal) signIn(call runtime.Call) {
	if call.SignInHost == "" {
		t.Printf("the tool wants you to sign in at an origin that is not registered: --allow ORIGIN takes one\n")
		return
	}
	t.Printf("the tool wants you to sign in at %s: %s\n", call.SignInHost, call.SignIn)
}

// rapNews writes progress messages from several goroutines until end is called.
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

// end makes the writer drop everything from now on.
func (n *rapNews) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.w = nil
}

// rapLog logs what the runtime refuses. It omits the time, because a person is watching.
func rapLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// rapPrint prints how a call ended.
func (a command) rapPrint(f rapCallFlags, end rapEnd) error {
	p := a.Printer()
	var no error
	if end.Failed || end.Synthetic || end.Outcome == nil {
		no = term.Exit(term.ExitNo)
	}
	if f.asJSON {
		return errors.Join(p.Document(end), no)
	}
	if end.Outcome != nil {
		printOutcome(p, end.Outcome)
	}
	if end.Synthetic {
		p.Printf("(%s: these are the runtime's words, not the tool's)\n", string(end.Why))
	}
	return errors.Join(p.Done(), no)
}

func printOutcome(p *term.Printer, o *rap.Outcome) {
	if o.Content == nil {
		p.Raw(term.Scrub(o.Text) + "\n")
		return
	}
	for _, c := range o.Content {
		if c.MediaType != "" {
			p.Printf("[image %s, %d bytes of base64]\n", c.MediaType, len(c.Image))
			continue
		}
		p.Raw(term.Scrub(c.Text) + "\n")
	}
}
