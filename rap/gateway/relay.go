package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/template"
)

// gateClock stops a run that takes too long. It stands while people are asked.
type runClock struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time
	timer *time.Timer
}

func newRunClock(within time.Duration, stop context.CancelCauseFunc) *runClock {
	return &runClock{left: within, since: time.Now(), timer: time.AfterFunc(within, func() { stop(errTimedOut) })}
}

func (c *runClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.left -= time.Since(c.since)
}

func (c *runClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.timer.Reset(max(c.left, 0))
}

// ask relays a question of the operation to the runtime's user. A call asks once: a question of the rules was the one, and so is a first of the
// operation (2.6.6).
func (r *operationRun) ask(ctx context.Context, prompt string, choices []string, standard int) (int, error) {
	if len(choices) == 0 || standard < 0 || standard >= len(choices) {
		return 0, errors.New("expected choices, and a default among them")
	}
	d, err := r.pose(ctx, prompt, choices, standard)
	if err != nil {
		return 0, err
	}
	r.clock.stop()
	defer r.clock.start()
	if err := r.post(ctx, d); err != nil {
		return 0, err
	}
	return r.wait(ctx, d.Body.Until)
}

func (r *operationRun) pose(ctx context.Context, prompt string, choices []string, standard int) (*kept.Doc[call], error) {
	for range maxChanges {
		d, err := r.g.calls.Get(ctx, r.key)
		switch {
		case err != nil:
			return nil, err
		case d.Body.Question != nil:
			return nil, rap.ErrAskedAlready
		case d.Body.Phase != phaseExecuting || d.Body.Owner != r.g.id:
			return nil, errLost
		}
		q := &question{Session: -1, Relayed: true}
		err = r.g.pose(ctx, d, q, r.g.relayedPrompt(d.Body.Operation, prompt), relayedLabels(choices), standard, r.g.cfg.Within)
		if !errors.Is(err, approval.ErrVersion) {
			return d, err
		}
	}
	return nil, errBusy
}

// relayedPrompt shows a question that is not ours: who asks first, then its words, which can't act on a screen.
func (g *Gateway) relayedPrompt(operation, prompt string) string {
	prompt, _ = cutText(prompt, maxMessage)
	lines := strings.Split(strings.ReplaceAll(prompt, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = template.Escape(line)
	}
	return fmt.Sprintf("%s asks, while %s runs:\n%s", template.Escape(g.cfg.Name), operation, strings.Join(lines, "\n"))
}

func relayedLabels(labels []string) []string {
	var out []string
	for _, label := range labels {
		label, _ = cutText(template.Escape(label), maxLabel)
		out = append(out, label)
	}
	return out
}

func (r *operationRun) post(ctx context.Context, d *kept.Doc[call]) error {
	c := r.g.caller(d.Body.Caller)
	if err := c.peer.Deliver(ctx, d.Body.Callback, d.Body.Question.Body); err != nil {
		r.g.refuse(ctx, "a question could not be posted", err, &d.Body)
		return &rap.PublicError{Text: "the question could not be put to the user"}
	}
	return nil
}

// wait waits for the answer, which any process may have taken.
func (r *operationRun) wait(ctx context.Context, until time.Time) (int, error) {
	t := time.NewTicker(r.g.cfg.Poll)
	defer t.Stop()
	for {
		selected, err := r.answer(ctx, until)
		if err != nil || selected >= 0 {
			return selected, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-r.nudge:
		case <-t.C:
		}
	}
}

// answer returns what was answered; -1 while nothing was.
func (r *operationRun) answer(ctx context.Context, until time.Time) (int, error) {
	d, err := r.g.calls.Get(ctx, r.key)
	if err != nil {
		return 0, err
	}
	switch q := d.Body.Question; {
	case q != nil && q.Bad:
		return 0, &rap.PublicError{Text: "the answer to the question was not valid"}
	case q != nil && q.Selected != nil:
		return *q.Selected, nil
	case !r.g.now().Before(until):
		return 0, &rap.PublicError{Text: "nobody answered the question in time"}
	}
	return -1, nil
}
