package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	maxLabel    = 1 << 10 // bytes of a label that are shown
	maxReplaced = 20      // questions of one call that gave way to another
	maxRefused  = 20      // of one call that the ledger hears of: nothing leaves it again
)

// takeChoice keeps a question of a tool: people are asked once it is kept (U12, U13).
func (r *Runtime) takeChoice(ctx context.Context, c *outCall, m *wire.Choice) error {
	if err := r.checkChoice(c, m); err != nil {
		return r.refuseChoice(ctx, c, err)
	}
	now, err := r.updateLocked(ctx, c.Key, func(c *outCall) error { return r.addChoice(c, m) })
	switch {
	case errors.Is(err, errMoved): // the same question again (R19)
		return nil
	case err != nil:
		return r.refuseChoice(ctx, c, err)
	}
	r.note(ctx, "rap_choice_asked", now, map[string]any{"question": now.Choice.Number, "choices": len(now.Choice.Labels)})
	return nil
}

func (r *Runtime) refuseChoice(ctx context.Context, c *outCall, err error) error {
	if _, ok := errors.AsType[*refusal](err); !ok {
		return err
	}
	now, lost := r.updateLocked(ctx, c.Key, func(c *outCall) error {
		if c.Refused >= maxRefused {
			return errMoved
		}
		c.Refused++
		return nil
	})
	if lost == nil {
		r.note(ctx, "rap_choice_refused", now, nil)
	}
	return err
}

// checkChoice holds a question to our bounds, and its response_url to the origins of its tool server (R15).
func (r *Runtime) checkChoice(c *outCall, m *wire.Choice) error {
	s := r.servers[c.Server]
	switch {
	case s == nil:
		return &refusal{http.StatusNotFound, "its tool server is not registered any more"}
	case len(m.Choices) > r.cfg.MaxChoices:
		return &refusal{http.StatusBadRequest, fmt.Sprintf("%d choices, at most %d are shown", len(m.Choices), r.cfg.MaxChoices)}
	}
	if err := s.peer.Check(m.ResponseURL); err != nil {
		return &refusal{http.StatusBadRequest, "response_url: " + plainError(err)}
	}
	return nil
}

// addChoice makes a question the call's own, under a number that the protocol doesn't have. While one is open another takes its place (R20); after
// an answer none does: a kept answer is never used again (R21, U19).
func (r *Runtime) addChoice(c *outCall, m *wire.Choice) error {
	digest := choiceDigest(m)
	switch {
	case c.Choice != nil && (c.Choice.Digest == digest || slices.Contains(c.Replaced, digest)):
		return errMoved
	case c.State == CallDone:
		return &refusal{http.StatusGone, "the call has ended"}
	case c.Choice != nil && c.Choice.State != choiceOpen:
		return &refusal{http.StatusConflict, "another question of this call was answered"}
	case len(c.Replaced) >= maxReplaced:
		return &refusal{http.StatusConflict, "the question was changed too often"}
	}
	if c.Choice != nil {
		c.withdraw(r.now())
		c.Replaced = append(c.Replaced, c.Choice.Digest)
	}
	now := r.now()
	c.heard(now)
	c.Choices++
	c.Choice = &toolChoice{
		Number: c.Choices, Digest: digest, Prompt: r.shownPrompt(m.Prompt), Labels: shownLabels(m.Choices), Default: m.Default, URL: m.ResponseURL,
		State: choiceOpen, Key: askKey(c.Token, "choice", c.Choices), Deadline: now.Add(r.cfg.ChoiceWithin), Next: now,
	}
	return nil
}

// heard notes that the tool has the call, whatever became of the ack: it is not sent again (R5, R7), and people who are asked whether it may be need
// not answer.
func (c *outCall) heard(now time.Time) {
	switch {
	case c.State == CallAsking && c.left():
		c.withdraw(now)
	case c.State != CallSending:
		return
	}
	c.State, c.Send.Lease = CallPending, time.Time{}
}

// choiceDigest tells questions of one call apart. What counts is what the user sees and where the answer goes, not how it was written.
func choiceDigest(m *wire.Choice) string {
	same := wire.Choice{GroupID: m.GroupID, ID: m.ID, Prompt: m.Prompt, Choices: m.Choices, Default: m.Default, ResponseURL: m.ResponseURL}
	return kept.Hash(string(same.Append(nil)))
}

// shownPrompt spells out what could act on a screen or hide on it, and cuts what is too long to be read (R33).
func (r *Runtime) shownPrompt(text string) string {
	head := firstBytes(text, r.cfg.MaxPrompt)
	lines := strings.Split(strings.ReplaceAll(head, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = diag.Printable(line)
	}
	return cut(strings.Join(lines, "\n"), r.cfg.MaxPrompt, len(text))
}

func shownLabels(labels []string) []string {
	out := make([]string, len(labels))
	for i, label := range labels {
		out[i] = cut(diag.Printable(firstBytes(label, maxLabel)), maxLabel, len(label))
	}
	return out
}

// cut shortens what is shown of a text of some bytes, and says so.
func cut(shown string, most, whole int) string {
	if len(shown) <= most && whole <= most {
		return shown
	}
	return fmt.Sprintf("%s… (cut: it has %d bytes)", firstBytes(shown, most), whole)
}

// firstBytes are whole characters.
func firstBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// sameChoice guards a change that rests on how the desk has a question.
func sameChoice(seen *outCall) func(*outCall) error {
	return func(c *outCall) error {
		if c.State == CallDone || !c.asking() || c.Choices != seen.Choices {
			return errMoved
		}
		return nil
	}
}

// seekAnswer puts the tool's question to people, or looks what they said.
func (r *Runtime) seekAnswer(ctx context.Context, c *outCall) error {
	if r.cfg.People == nil {
		return r.unanswered(ctx, c, "there is nobody to whom its question could be put")
	}
	over := !r.now().Before(c.Choice.Deadline)
	if c.Choice.Ref == "" {
		if over {
			return r.unanswered(ctx, c, "its question could not be put to anybody in time")
		}
		return r.putQuestion(ctx, c)
	}
	a, err := r.desk(c).Answer(ctx, c.Choice.Ref)
	switch {
	case errors.Is(err, hold.ErrNoRequest):
		return r.unanswered(ctx, c, "nobody knows its question any more")
	case (err != nil || a.State == hold.AnswerOpen) && over:
		return r.unanswered(ctx, c, "nobody answered its question in time")
	case err != nil:
		return r.putOffChoice(ctx, c, err)
	}
	return r.takeAnswer(ctx, c, a)
}

func (r *Runtime) putQuestion(ctx context.Context, c *outCall) error {
	q := c.Choice
	within := min(q.Deadline.Sub(r.now()), c.Deadline.Sub(r.now()))
	ref, err := r.desk(c).Ask(ctx, q.Key, hold.Question{
		Call: r.planCall(c), Server: c.Server, Prompt: q.Prompt, Choices: q.Labels, Default: q.Default, Groups: r.groups(c.Server), Within: within,
	})
	if err == nil && ref == "" {
		err = errNoRef
	}
	if err != nil {
		return r.putOffChoice(ctx, c, fmt.Errorf("put the question: %w", err))
	}
	if err := r.remember(ctx, ref, c.Key); err != nil {
		return err
	}
	guard := sameChoice(c)
	_, err = r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.Choice.Ref, c.Choice.Next, c.Tries = ref, r.now(), 0 // look at once: it may stand answered
		return nil
	})
	if errors.Is(err, errMoved) {
		r.cancelAtDesk(ctx, c, ref)
	}
	return err
}

func (r *Runtime) putOffChoice(ctx context.Context, c *outCall, cause error) error {
	r.log.Warn("a question waits: "+plainError(cause), "call", callName(c.Key))
	guard := sameChoice(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.Tries++
		c.Choice.Next = r.now().Add(pause(c.Tries - 1))
		return nil
	})
	return err
}

// takeAnswer goes by what the desk says. An end without an answer is never posted: the call is over (4.3.8).
func (r *Runtime) takeAnswer(ctx context.Context, c *outCall, a hold.Answer) error {
	switch {
	case a.State == hold.AnswerOpen:
		return r.lookLater(ctx, c)
	case a.State == hold.AnswerChosen && a.Selected >= 0 && a.Selected < len(c.Choice.Labels):
		return r.answered(ctx, c, a.Selected, a.By)
	case a.State == hold.AnswerDismissed:
		return r.answered(ctx, c, c.Choice.Default, a.By)
	case a.State == hold.AnswerDenied:
		how := ending{WhyDenied, withReason("its question was not put to anybody", a.Reason), true}
		return r.end(ctx, c, how, sameChoice(c))
	}
	return r.unanswered(ctx, c, withReason("nobody answered its question", a.Reason))
}

func (r *Runtime) unanswered(ctx context.Context, c *outCall, text string) error {
	return r.end(ctx, c, ending{WhyUnanswered, text, true}, sameChoice(c))
}

func (r *Runtime) lookLater(ctx context.Context, c *outCall) error {
	guard := sameChoice(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.Tries, c.Choice.Next = 0, r.now().Add(lookAgain)
		return nil
	})
	return err
}

// answered keeps the one answer of a question. It is kept before it is posted; a second one finds the question closed (R23).
func (r *Runtime) answered(ctx context.Context, c *outCall, selected int, by string) error {
	guard := sameChoice(c)
	now, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		q := c.Choice
		q.State, q.Selected, q.By, q.Post = choiceAnswered, selected, by, errand{Next: r.now()}
		return nil
	})
	if err == nil {
		r.forget(ctx, now.Choice.Ref)
	}
	return err
}

// deliver begins the next attempt to post an answer: the same bytes to the same URL each time (U15, U17, R8).
func (r *Runtime) deliver(ctx context.Context, seen *outCall) error {
	s := r.servers[seen.Server]
	if s == nil {
		return r.undelivered(ctx, seen, errors.New("its tool server is not registered any more"))
	}
	if !seen.Choice.Post.Lease.IsZero() { // whoever made the last attempt is gone
		if _, more := s.peer.Pause(seen.Choice.Post.Attempts); !more {
			return r.undelivered(ctx, seen, errors.New("the attempts are spent"))
		}
	}
	guard := sameDelivery(seen)
	var now *outCall
	keep := func() (err error) {
		now, err = r.update(ctx, seen.Key, func(c *outCall) error {
			if err := guard(c); err != nil {
				return err
			}
			c.Choice.Post.begin(r.now(), s.lease())
			return nil
		})
		return err
	}
	return r.fly(seen.Key, keep, func(ctx context.Context) { r.post(ctx, now) })
}

// sameDelivery guards a change of an answer that is on its way.
func sameDelivery(seen *outCall) func(*outCall) error {
	return func(c *outCall) error {
		if c.State == CallDone || !c.answering() || c.Choices != seen.Choices || c.Choice.Post.Attempts != seen.Choice.Post.Attempts {
			return errMoved
		}
		return nil
	}
}

// post makes an attempt that was kept. Without its place in the ledger no answer leaves.
func (r *Runtime) post(ctx context.Context, c *outCall) {
	s, q := r.servers[c.Server], c.Choice
	err := r.record(ctx, "rap_choice_answered", c, map[string]any{"question": q.Number, "selected": q.Selected, "attempt": q.Post.Attempts, "answered_by": q.By})
	lost := err != nil
	if !lost {
		err = s.peer.Post(ctx, q.URL, wire.Answer{ID: c.Wire.ID, Selected: q.Selected}.Append(nil))
	}
	after, done := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer done()
	wait, more := s.peer.Pause(q.Post.Attempts)
	switch {
	case err == nil:
		r.settle(r.delivered(after, c), c)
	case lost:
		r.settle(r.redeliver(after, c, q.Post.Attempts-1, pause(0)), c)
	case more && again(err):
		r.settle(r.redeliver(after, c, q.Post.Attempts, wait), c)
	default:
		r.settle(r.undelivered(after, c, err), c)
	}
}

func (r *Runtime) delivered(ctx context.Context, c *outCall) error {
	r.note(ctx, "rap_choice_delivered", c, map[string]any{"question": c.Choice.Number, "answered_by": c.Choice.By})
	return r.moveDelivery(ctx, c, func(c *outCall) { c.Choice.State = choiceDelivered })
}

func (r *Runtime) redeliver(ctx context.Context, c *outCall, attempts int, wait time.Duration) error {
	return r.moveDelivery(ctx, c, func(c *outCall) {
		c.Choice.Post = errand{Attempts: attempts, Next: r.now().Add(wait)}
	})
}

// undelivered gives an answer up. The call stays pending until its result or its deadline (R9, R10); nothing is invoked again.
func (r *Runtime) undelivered(ctx context.Context, c *outCall, cause error) error {
	r.log.Warn("an answer could not be delivered", "call", callName(c.Key), "error", plainError(cause))
	return r.moveDelivery(ctx, c, func(c *outCall) {
		c.Choice.State = choiceFailed
		c.Told.Trouble = "the answer could not be delivered to the tool: " + plainError(cause)
	})
}

func (r *Runtime) moveDelivery(ctx context.Context, seen *outCall, change func(*outCall)) error {
	guard := sameDelivery(seen)
	_, err := r.update(ctx, seen.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		change(c)
		return nil
	})
	return err
}
