package inbox

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
)

// question is a tool's question, ready to be shown. Prompt and labels are the tool's own texts, so
// pages must mark them as quoted.
type question struct {
	Asker   string // registered name of the tool server
	Prompt  safetext.Shown
	Choices []choice
	Default choice // the choice that a dismissal picks
	Whom    string // who may answer
	Flags   safetext.Flags
	Hidden  bool    // the texts could repeat values that a policy hides, so lists omit them
	Picked  *choice // the choice that was picked, if it was answered
	Alone   string  // description in our words for a question without a call; else empty
	Form    *asked  // the form to fill in; nil for a choice
	At      time.Time
}

// choice is one label with its number. Only the number matters for the answer, because labels may
// be empty or equal.
type choice struct {
	Index   int
	Label   safetext.Shown
	Note    string // the page's own note about the label
	Default bool
	Picked  bool
}

// Name returns a short form of the choice.
func (c choice) Name() string {
	return strings.TrimSpace(fmt.Sprintf("[%d] %s", c.Index, c.Label.Spoken()))
}

// The limits for a question on a page that does not show all of it. Labels are never cut there, so
// that people see all of a label before they pick it.
const (
	longPrompt  = 2000 // characters
	briefPrompt = 300  // on lists
	briefLabel  = 80
)

// questionBrief returns a question as lists show it: the beginning of its prompt, the number of
// choices, and the picked choice. It returns nil for approvals of calls.
func (v *visit) questionBrief(r *approval.Request) *question {
	return v.question(r, briefPrompt, func(c choice) bool { return c.Picked })
}

// questionWhole returns a question with all of its labels. limit is the number of characters of the
// prompt that are shown; 0 means all.
func (v *visit) questionWhole(r *approval.Request, limit int) *question {
	return v.question(r, limit, func(choice) bool { return true })
}

func (v *visit) question(r *approval.Request, limit int, labelled func(choice) bool) *question {
	q := r.Question
	if q == nil {
		return nil
	}
	out := &question{
		Asker:  q.Asker,
		Whom:   v.whom(r),
		Flags:  safetext.Flags{},
		Hidden: len(r.Redact) > 0,
	}
	out.Prompt = safetext.Inspect(q.Prompt, safetext.Form{Lines: true, Limit: limit})
	out.Flags.Add(out.Prompt.Flags)
	if r.Current().Call.Kind == "" {
		out.Alone = q.Words()
	}
	out.At = *cmp.Or(r.Decided, r.Closed, &r.Created)
	if out.Form = askedOf(r, nil, nil); out.Form != nil {
		out.Form.flag(out.Flags)
		return out
	}
	out.Choices = choices(r, labelled)
	for i, c := range out.Choices {
		out.Flags.Add(c.Label.Flags)
		if c.Default {
			out.Default = c
		}
		if c.Picked {
			out.Picked = &out.Choices[i]
		}
	}

	return out
}

// wordsOf returns the problems in a tool's texts, as far as the budget allows.
func wordsOf(q *approval.Question, b *budget) safetext.Flags {
	out := safetext.Flags{}
	texts := append([]string{q.Prompt}, q.Choices...)
	if len(q.Schema) > 0 {
		texts = append(texts, string(q.Schema))
	}
	for _, text := range texts {
		if b.spent() {
			break
		}
		out.Add(safetext.Inspect(text, safetext.Form{Lines: true, Spend: b.spend}).Flags)
	}

	return out
}

// choices lists all choices. Only those for which labelled returns true have their labels.
func choices(r *approval.Request, labelled func(choice) bool) []choice {
	q := r.Question
	out := make([]choice, len(q.Choices))
	first := map[string]int{}
	for i, label := range q.Choices {
		out[i] = choice{
			Index:   i,
			Default: i == q.Default,
			Picked:  r.Chosen != nil && *r.Chosen == i,
		}
		if labelled(out[i]) {
			out[i].Label = safetext.Inspect(label, safetext.Form{})
		}
		before, twice := first[label]
		switch {
		case r.Pruned():
			out[i].Note = "(no longer kept)"
		case label == "":
			out[i].Note = "(empty)"
		case strings.TrimSpace(label) == "":
			out[i].Note = "(blank)"
		case twice:
			out[i].Note = fmt.Sprintf("(the same words as [%d])", before)
		}

		if !twice {
			first[label] = i
		}
	}

	return out
}

// named returns a choice for use in a sentence.
func named(q *approval.Question, index int) string {
	if index < 0 || index >= len(q.Choices) {
		return fmt.Sprintf("[%d]", index)
	}
	label := q.Choices[index]
	if head, cut := safetext.Head(label, briefLabel); cut {
		label = head + "…"
	}
	return fmt.Sprintf("[%d] “%s”", index, label)
}

// whom describes who may answer a question.
func (v *visit) whom(r *approval.Request) string {
	switch {
	case r.OnlyUser():
		return v.called(r.Requester.Principal) + ", for whom the agent acts"
	case len(r.Question.Groups) == 0:
		return "any approver"
	}

	return "somebody of " + strings.Join(r.Question.Groups, ", ")
}

// outcomeOfAnswer describes the result of the answer to a question.
func outcomeOfAnswer(r *approval.Request) said {
	m := saying("good", "Answered.")
	switch {
	case r.Question == nil:
		return m
	case r.Chosen == nil && r.Cause == approval.ByDismissal:
		m.Lines[0] = "Dismissed: " + r.Question.Asker + " gets no answer."
		return m
	case r.Chosen == nil:
		m.Lines[0] = "Answered: " + r.Question.Asker + " gets what you wrote."
		return m
	}

	m.Lines[0] = "Answered: the tool is told " + named(r.Question, *r.Chosen) + "."
	if r.Cause == approval.ByDismissal {
		m.Lines[0] = "Dismissed: the tool is told its default, " + named(r.Question, *r.Chosen) + "."
	}
	return m
}
