package rap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/template"
)

// gateClock stops a run that takes too long. It stands while people are asked.
type gateClock struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time
	timer *time.Timer
}

func newGateClock(within time.Duration, stop context.CancelCauseFunc) *gateClock {
	return &gateClock{left: within, since: time.Now(), timer: time.AfterFunc(within, func() { stop(errGateTime) })}
}

func (c *gateClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.left -= time.Since(c.since)
}

func (c *gateClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.timer.Reset(max(c.left, 0))
}

// ask relays a question of the operation to the runtime's user. A call asks once: a question of the rules was the one, and so is a first of the
// operation (2.6.6).
func (r *gateRun) ask(ctx context.Context, prompt string, choices []string, standard int) (int, error) {
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
	return r.wait(ctx, d.body.Until)
}

func (r *gateRun) pose(ctx context.Context, prompt string, choices []string, standard int) (*doc[gateCall], error) {
	for range gateChanges {
		d, err := r.g.calls.get(ctx, r.key)
		switch {
		case err != nil:
			return nil, err
		case d.body.Question != nil:
			return nil, ErrAskedAlready
		case d.body.Phase != gateExecuting || d.body.Owner != r.g.id:
			return nil, errGateLost
		}
		q := &gateQuestion{Session: -1, Relayed: true}
		err = r.g.pose(ctx, d, q, r.g.relayedPrompt(d.body.Operation, prompt), relayedLabels(choices), standard, r.g.cfg.Within)
		if !errors.Is(err, approval.ErrVersion) {
			return d, err
		}
	}
	return nil, errGateBusy
}

// relayedPrompt shows a question that is not ours: who asks first, then its words, which can't act on a screen.
func (g *Gateway) relayedPrompt(operation, prompt string) string {
	prompt, _ = cutText(prompt, maxGateMessage)
	lines := strings.Split(strings.ReplaceAll(prompt, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = template.Escape(line)
	}
	return fmt.Sprintf("%s asks, while %s runs:\n%s", template.Escape(g.cfg.Name), operation, strings.Join(lines, "\n"))
}

func relayedLabels(labels []string) []string {
	var out []string
	for _, label := range labels {
		label, _ = cutText(template.Escape(label), maxGateLabel)
		out = append(out, label)
	}
	return out
}

func (r *gateRun) post(ctx context.Context, d *doc[gateCall]) error {
	c := r.g.caller(d.body.Caller)
	if err := c.peer.Deliver(ctx, d.body.Callback, d.body.Question.Body); err != nil {
		r.g.refuse(ctx, "a question could not be posted", err, &d.body)
		return &PublicError{"the question could not be put to the user"}
	}
	return nil
}

// wait waits for the answer, which any process may have taken.
func (r *gateRun) wait(ctx context.Context, until time.Time) (int, error) {
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
func (r *gateRun) answer(ctx context.Context, until time.Time) (int, error) {
	d, err := r.g.calls.get(ctx, r.key)
	if err != nil {
		return 0, err
	}
	switch q := d.body.Question; {
	case q != nil && q.Bad:
		return 0, &PublicError{"the answer to the question was not valid"}
	case q != nil && q.Selected != nil:
		return *q.Selected, nil
	case !r.g.now().Before(until):
		return 0, &PublicError{"nobody answered the question in time"}
	}
	return -1, nil
}
