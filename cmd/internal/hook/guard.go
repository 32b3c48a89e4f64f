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

// result is what the work of a hook came to.
type result struct {
	event *event // nil: the document could not be read that far
	v     verdict
	err   error
	// fileErrors are the errors of the files that decided.
	fileErrors []diag.Finding
}

// catch keeps signals from ending the process until it ends by itself,
// and tells of those that somebody sent. That nobody reads what is
// written, the writing itself tells.
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

// guarded does the work, and ends it whatever happens: a panic, a
// signal, and a time that is over are errors, which block.
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

// parentLooks is how often withParent looks.
const parentLooks = 200 * time.Millisecond

// withParent ends when the process that started the hook has gone: nobody
// would run then what people approve.
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

// contained makes an error of a panic.
func contained(ctx context.Context, work func(ctx context.Context) result) (r result) {
	defer func() {
		if broken := recover(); broken != nil {
			r = result{err: fmt.Errorf("the hook failed: %v", broken)}
		}
	}()

	return work(ctx)
}

// errBlocked says that the call is blocked by the exit code; why was said.
var errBlocked = term.ExitWith(term.ExitFailure, nil)

// answer tells the product. What can't be told blocks.
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

// block has the product not run the call: by the exit code with the
// reason on standard error, which all but dialogs heed, and by a
// document for these, and where nothing can be written there.
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

// toWrite is how long a product has to read what is written.
const toWrite = 2 * time.Second

// put writes a text where somebody may read it, but doesn't wait for
// ever until somebody does.
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

// isNowhere reports whether nobody can read what is written: the
// process was started without that stream, and has the null device in
// its place, or was given that.
func isNowhere(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	at, err := f.Stat()
	null, gone := os.Stat(os.DevNull)

	return err != nil || gone == nil && os.SameFile(at, null)
}

// reason is an error in one line, for a model too.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "Nobody could say in time whether this call may run."
	}

	return strings.TrimRight(term.ScrubLine(err.Error()), ".") + "."
}
