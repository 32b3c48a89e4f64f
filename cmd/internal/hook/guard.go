package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
)

// result is the result of running a hook.
type result struct {
	event *event // nil: the document could not be read that far
	v     verdict
	err   error
	// fileErrors are the errors in the files that decided about the call.
	fileErrors []diag.Finding
}

// catch keeps signals from ending the process before it has answered, and returns a channel with
// the signals received. It ignores SIGPIPE: if the reader has gone, the write returns an error.
func catch() <-chan os.Signal {
	caught := make(chan os.Signal, 1)
	for _, s := range signals() {
		if s == syscall.SIGPIPE {
			signal.Ignore(s)
			continue
		}
		signal.Notify(caught, s)
	}

	return caught
}

// guarded runs work. A panic, a signal, and the end of the time within are returned as errors,
// which block the call.
func guarded(within time.Duration, work func(ctx context.Context) result) result {
	caught := catch()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := time.NewTimer(within)
	defer over.Stop()
	done := make(chan result, 1)
	go func() { done <- contained(ctx, work) }()
	select {
	case r := <-done:
		return r
	case s := <-caught:
		return result{err: fmt.Errorf("the hook was stopped (%s)", s)}
	case <-over.C:
		return result{err: fmt.Errorf("the hook could not say in %s whether the call may run", within)}
	}
}

// parentLooks is the interval at which withParent checks the parent process.
const parentLooks = 200 * time.Millisecond

// withParent returns a context that ends when the process that started the hook has exited, because
// then no process is left to run an approved call.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	look := time.NewTicker(parentLooks)
	go func() {
		defer look.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}

		cancel()
	}()

	return ctx, cancel
}

// contained runs work and converts a panic into an error.
func contained(ctx context.Context, work func(ctx context.Context) result) (r result) {
	defer func() {
		if broken := recover(); broken != nil {
			r = result{err: fmt.Errorf("the hook failed: %v", broken)}
		}
	}()

	return work(ctx)
}

// errBlocked makes the process exit with the code that blocks the call. The reason has been written
// already.
var errBlocked = term.ExitWith(term.ExitFailure, nil)

// answer writes the answer for the product. It blocks the call if there is an error, also an error
// of writing.
func (a command) answer(p *product, r result) error {
	if r.err == nil {
		var text []byte
		if text, r.err = r.v.text(r.event); r.err == nil && r.v.outcome != silent {
			r.err = put(a.Out, text)
		}
	}

	if r.err == nil {
		return nil
	}

	return a.block(p, r)
}

// block tells the product not to run the call: by the exit code, with the reason on standard error.
// Dialogs ignore the exit code, so for a dialog, and if standard error can't be written, it writes
// a document that denies.
func (a command) block(p *product, r result) error {
	why := "Not run. " + reason(r.err)
	err := put(a.Err, []byte("assent: "+why+"\n"))
	e := r.event
	if e == nil {
		e = &event{product: p}
	}
	if err == nil && e.moment != dialog {
		return errBlocked
	}
	text, failed := denies(why).text(e)
	if failed == nil {
		failed = put(a.Out, text)
	}
	if failed != nil {
		return errBlocked
	}

	return nil
}

// toWrite is the time that a product has to read the answer.
const toWrite = 2 * time.Second

// put writes a text. It returns an error if the stream is not connected to a reader, or if the
// write takes longer than toWrite.
func put(w io.Writer, text []byte) error {
	if isNowhere(w) {
		return errors.New("nobody reads what the hook says: " + os.DevNull + " is in the place of the product's pipe")
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.Write(text)
		done <- err
	}()
	over := time.NewTimer(toWrite)
	defer over.Stop()
	select {
	case err := <-done:
		return err
	case <-over.C:
		return errors.New("nobody reads what the hook says")
	}
}

// isNowhere reports whether a stream has no reader: the process was started without the stream, or
// with the null device as the stream.
func isNowhere(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	at, err := f.Stat()
	null, gone := os.Stat(os.DevNull)

	return err != nil || gone == nil && os.SameFile(at, null)
}

// reason returns an error as one line. It is also shown to models.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "Nobody could say in time whether this call may run."
	}

	return strings.TrimRight(term.ScrubLine(err.Error()), ".") + "."
}
