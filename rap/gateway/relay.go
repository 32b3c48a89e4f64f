package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/wire"
)

// runClock stops a run that takes too long. It is paused while people are asked.
type runClock struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time
	timer *time.Timer
}

func newRunClock(within time.Duration, stop context.CancelCauseFunc) *runClock {
	return &runClock{
		left:  within,
		since: time.Now(),
		timer: time.AfterFunc(within, func() { stop(errTimedOut) }),
	}
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

// ask relays a question of the operation to the runtime's user. A call has one question, so ask
// fails if the rules or the operation have asked already.
func (r *operationRun) ask(ctx context.Context, prompt string, choices []string, standard int) (int, error) {
	if len(choices) == 0 || standard < 0 || standard >= len(choices) {
		return 0, errors.New("expected choices, and a default among them")
	}
	asked, err := r.pose(ctx, prompt, choices, standard)
	if err != nil {
		return 0, err
	}
	r.runner.askedUser(ctx, asked)

	r.clock.stop()
	defer r.clock.start()
	if err := r.post(ctx, asked); err != nil {
		return 0, err
	}
	return r.wait(ctx)
}

// pose stores the question, so that it can be posted.
func (r *operationRun) pose(ctx context.Context, prompt string, choices []string, standard int) (*record, error) {
	return r.runner.engine.Change(ctx, r.key, func(c *record) error {
		switch {
		case c.Part.Question != nil:
			return rap.ErrAskedAlready
		case c.State != durable.Running || c.Part.Run != r.name:
			return durable.ErrOvertaken
		}

		r.runner.decider.pose(c, &question{Session: -1, Relayed: true}, r.runner.cfg.Within, &wire.Choice{
			Prompt:  r.runner.decider.relayedPrompt(c.Part.Operation, prompt),
			Choices: relayedLabels(choices),
			Default: standard,
		})
		return nil
	})
}

// relayedPrompt returns the text of a relayed question: who asks, then the question, with
// control characters escaped.
func (d *decider) relayedPrompt(operation, prompt string) string {
	prompt, _ = cutText(prompt, maxMessage)
	lines := strings.Split(strings.ReplaceAll(prompt, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = safetext.Line(line)
	}
	return fmt.Sprintf(
		"%s asks, while %s runs:\n%s",
		safetext.Line(d.cfg.Name),
		operation,
		strings.Join(lines, "\n"),
	)
}

func relayedLabels(labels []string) []string {
	var out []string
	for _, label := range labels {
		label, _ = cutText(safetext.Line(label), maxLabel)
		out = append(out, label)
	}
	return out
}

func (r *operationRun) post(ctx context.Context, asked *record) error {
	c := r.runner.caller(asked.Part.Caller)
	if err := c.peer.Deliver(ctx, asked.Part.Callback, asked.Part.Question.Body); err != nil {
		r.runner.refuse(ctx, "a question could not be posted", err, asked)
		return &rap.PublicError{Text: "the question could not be put to the user"}
	}
	return nil
}

// wait waits for the answer, which any process may have received.
func (r *operationRun) wait(ctx context.Context) (int, error) {
	var selected int
	var failed error
	_, err := r.runner.engine.Watch(ctx, r.key, func(c *record) bool {
		var known bool
		selected, failed, known = r.answer(c.Part.Question)
		return known
	})
	return selected, errors.Join(err, failed)
}

// answer returns the answer to a question, or an error if there can't be one. known is false
// while the question is open.
func (r *operationRun) answer(q *question) (selected int, failed error, known bool) {
	switch {
	case q != nil && q.Bad:
		return 0, &rap.PublicError{Text: "the answer to the question was not valid"}, true
	case q != nil && q.Selected != nil:
		return *q.Selected, nil, true
	case q == nil || !r.runner.now().Before(q.Until):
		return 0, &rap.PublicError{Text: "nobody answered the question in time"}, true
	}

	return 0, nil, false
}
