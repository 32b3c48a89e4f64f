package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	maxLabel    = 1 << 10 // bytes of a label that are shown
	maxReplaced = 20      // replaced questions of one call
	maxRefused  = 20      // refused questions of one call in the ledger, which is never pruned
)

// takeChoice stores a question of a tool, so that people are asked.
func (h *callbackHandler) takeChoice(ctx context.Context, c *call, m *wire.Choice) error {
	if err := h.checkChoice(c, m); err != nil {
		return h.refuseChoice(ctx, c, err)
	}
	now, err := h.engine.Change(ctx, c.Key, func(c *call) error { return h.addChoice(c, m) })
	switch {
	case errors.Is(err, durable.ErrUnchanged): // a repetition of the question
		return nil
	case err != nil:
		return h.refuseChoice(ctx, c, err)
	}

	q := now.Part.Choice
	h.note(ctx, "rap_choice_asked", now, map[string]any{"question": q.Number, "choices": len(q.Labels)})
	return nil
}

func (h *callbackHandler) refuseChoice(ctx context.Context, c *call, err error) error {
	if _, ok := errors.AsType[*refusal](err); !ok {
		return err
	}
	now, lost := h.engine.Change(ctx, c.Key, func(c *call) error {
		if c.Part.Refused >= maxRefused {
			return durable.ErrUnchanged
		}
		c.Part.Refused++
		return nil
	})
	if lost == nil {
		h.note(ctx, "rap_choice_refused", now, nil)
	}

	return err
}

// checkChoice checks the limits of a question, and that its response_url is on an origin of its
// tool server.
func (h *callbackHandler) checkChoice(c *call, m *wire.Choice) error {
	s := h.servers[c.Part.Server]
	switch {
	case s == nil:
		return &refusal{http.StatusNotFound, "its tool server is not registered any more"}
	case len(m.Choices) > h.cfg.MaxChoices:
		reason := fmt.Sprintf("%d choices, at most %d are shown", len(m.Choices), h.cfg.MaxChoices)
		return &refusal{http.StatusBadRequest, reason}
	}

	if err := s.peer.Check(m.ResponseURL); err != nil {
		return &refusal{http.StatusBadRequest, "response_url: " + plainError(err)}
	}

	return nil
}

// addChoice makes m the current question of a call, with a number of our own. It replaces a
// question that is still open. After an answer it is refused, so that an answer is never used
// for another question.
func (h *callbackHandler) addChoice(c *call, m *wire.Choice) error {
	p := &c.Part
	digest := choiceDigest(m)
	switch {
	case p.Choice != nil && (p.Choice.Digest == digest || slices.Contains(p.Replaced, digest)):
		return durable.ErrUnchanged
	case c.Over():
		return &refusal{http.StatusGone, "the call has ended"}
	case p.Choice != nil && p.Choice.State != choiceOpen:
		return &refusal{http.StatusConflict, "another question of this call was answered"}
	case len(p.Replaced) >= maxReplaced:
		return &refusal{http.StatusConflict, "the question was changed too often"}
	}

	if p.Choice != nil {
		p.Replaced = append(p.Replaced, p.Choice.Digest)
	}
	noteReceived(c)
	p.Choices++
	p.Choice = &toolChoice{
		Number:  p.Choices,
		Digest:  digest,
		Prompt:  h.shownPrompt(m.Prompt),
		Labels:  shownLabels(m.Choices),
		Default: m.Default,
		URL:     m.ResponseURL,
		State:   choiceOpen,
	}
	c.AskQuestion(h.now().Add(h.cfg.ChoiceWithin))
	return nil
}

// choiceDigest identifies a question of a call by what the user sees and where the answer is
// sent, not by its encoding.
func choiceDigest(m *wire.Choice) string {
	same := wire.Choice{
		GroupID:     m.GroupID,
		ID:          m.ID,
		Prompt:      m.Prompt,
		Choices:     m.Choices,
		Default:     m.Default,
		ResponseURL: m.ResponseURL,
	}
	return durable.Hash(string(same.Append(nil)))
}

// shownPrompt escapes control and invisible characters, and shortens a text that is too long.
func (h *callbackHandler) shownPrompt(text string) string {
	head := firstBytes(text, h.cfg.MaxPrompt)
	lines := strings.Split(strings.ReplaceAll(head, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = diag.Printable(line)
	}
	return cut(strings.Join(lines, "\n"), h.cfg.MaxPrompt, len(text))
}

func shownLabels(labels []string) []string {
	out := make([]string, len(labels))
	for i, label := range labels {
		out[i] = cut(diag.Printable(firstBytes(label, maxLabel)), maxLabel, len(label))
	}
	return out
}

// cut shortens a text to be shown and adds a note with the original length in bytes.
func cut(shown string, most, whole int) string {
	if len(shown) <= most && whole <= most {
		return shown
	}
	return fmt.Sprintf("%s… (cut: it has %d bytes)", firstBytes(shown, most), whole)
}

// firstBytes returns at most the given number of bytes, without splitting a character.
func firstBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// answeredChoice applies the answer to a tool's question. The answer is stored before it is
// posted. A question that ends without an answer ends the call, and nothing is posted.
func (d *decider) answeredChoice(c *call, a hold.Answer) *durable.Ending {
	q := c.Part.Choice
	switch {
	case a.State == hold.Chosen && a.Selected >= 0 && a.Selected < len(q.Labels):
		q.Selected = a.Selected
	case a.State == hold.Dismissed:
		q.Selected = q.Default
	case a.State == hold.Denied:
		return &durable.Ending{
			Why:    whyNotPut,
			Reason: withReason("its question was not put to anybody", a.Reason),
		}
	default:
		return &durable.Ending{Why: whyUnanswered, Reason: withReason("nobody answered its question", a.Reason)}
	}

	q.State = choiceAnswered
	q.By = a.By
	clearSignIn(c)
	c.Message = &durable.Attempt{}
	return nil
}
