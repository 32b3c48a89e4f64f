package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/approval/quorum"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// ask makes a question pending. Its revision 0 is set. Silence never
// answers it, and nobody is called in: it is not theirs.
func (r *Request) ask(now time.Time, cfg Config) []Event {
	r.State = Pending
	r.Created = now
	r.OnTimeout = policy.TimeoutDeny
	for _, g := range r.Question.Groups {
		r.Stages = append(r.Stages, policy.Stage{Group: g, People: 1})
	}
	if r.asksUser() {
		r.Stages = []policy.Stage{quorum.Anyone()}
	}
	if r.Within == 0 {
		r.Within = cfg.Within
	}
	r.Deadline = now.Add(r.Within)
	r.Scheduled = scheduled(now, r.Deadline, nil)
	r.schedule()
	q := r.Question
	facts := map[string]any{"question": true, "asker": q.Asker}
	if q.takesData() {
		facts["fields"] = len(q.form().Fields)
		return []Event{
			r.opened(facts).sealing("prompt", q.Prompt).sealing("schema", string(q.Schema)),
		}
	}

	facts["choices"], facts["default"] = len(q.Choices), q.Default
	return []Event{r.opened(facts).sealing("prompt", q.Prompt).sealing("labels", labels(q.Choices))}
}

// labels writes the choices as one text; each is a valid string, so it
// has a form.
func labels(choices []string) string {
	text, err := json.Marshal(choices)
	if err != nil {
		return fmt.Sprintf("%q", choices)
	}
	return string(text)
}

// answers reports whether a verdict is an answer to this kind of request.
func (r *Request) answers(v Verdict) bool { return (r.Question != nil) == v.picks() }

// picks tells answers to questions from answers to calls.
func (v Verdict) picks() bool { return v == Choose || v == Submit || v == Dismiss }

// agrees reports whether a verdict takes that everything was shown.
func (v Verdict) agrees() bool { return v == Approve || v == Choose || v == Submit }

// takesData reports whether the answer is a text or a form, not a choice.
func (q *Question) takesData() bool { return len(q.Schema) > 0 }

// form is what the question's schema asks for. It was read before the
// question was kept; one that this version can't read has no fields, so
// that no answer fits it.
func (q *Question) form() *form.Form {
	f, err := form.ParseKept(q.Schema)
	if err != nil {
		return &form.Form{}
	}
	return f
}

// Form is what a question for a text or a form asks for; nil where it
// asks for a choice.
func (q *Question) Form() *form.Form {
	if !q.takesData() {
		return nil
	}
	return q.form()
}

// fits holds an answer to the kind of the request.
func (in *VoteInput) fits(r *Request) error {
	switch {
	case r.Question == nil && !r.answers(in.Verdict):
		return &InputError{
			"verdict",
			"approve, deny or respond: this asks for the approval of a call",
		}
	case r.Question == nil:
		return nil
	case r.Question.takesData() && in.Verdict != Submit && in.Verdict != Dismiss:
		return &InputError{"verdict", "submit or dismiss: this question takes a text or a form"}
	case !r.Question.takesData() && !in.Verdict.picks():
		return &InputError{
			"verdict",
			"choose or dismiss: this is a question of a tool, which approves nothing",
		}
	case !r.Question.takesData() && in.Verdict == Submit:
		return &InputError{"verdict", "choose or dismiss: this question takes a choice"}
	case in.Choice != nil && *in.Choice >= len(r.Question.Choices):
		return &InputError{
			"choice",
			fmt.Sprintf("the index of a choice, 0 to %d", len(r.Question.Choices)-1),
		}
	}

	return nil
}

// checkData holds a submitted answer to the schema that was shown, and
// replaces it by its canonical form. The work depends on the schema's
// author and on the answer, so it is done before the transaction, which
// keeps other writers waiting. A question never changes.
func (s *Service) checkData(ctx context.Context, in *VoteInput) error {
	if in.Verdict != Submit {
		return nil
	}
	r, err := s.Request(ctx, in.Tenant, in.ID)
	if err != nil {
		return err
	}
	if err := in.fits(r); err != nil {
		return err
	}
	data, err := r.Question.form().Check(in.Data)
	if err != nil {
		return &AnswerError{err}
	}
	in.Data, in.checked = data, r.Question.Schema

	return nil
}

// holdsTo reports whether the answer was held to the schema of this
// request. Only a submitted answer is.
func (in *VoteInput) holdsTo(r *Request) bool {
	return in.Verdict != Submit || bytes.Equal(in.checked, r.Question.Schema)
}

// sameData reports whether two answers are the same, however a store
// spelt them.
func sameData(a, b json.RawMessage) bool {
	one, _ := value.AppendCanonicalText(nil, a, value.Limits{})
	other, _ := value.AppendCanonicalText(nil, b, value.Limits{})

	return bytes.Equal(one, other)
}

// chosen is what an answer picks: the index of a choice, or the default
// for a dismissal; nil for answers to calls, and for texts and forms.
func (in *VoteInput) chosen(r *Request) *int {
	switch {
	case in.Verdict == Choose:
		index := *in.Choice
		return &index
	case in.Verdict == Dismiss && !r.Question.takesData():
		index := r.Question.Default
		return &index
	}

	return nil
}

// Words tell of a question without a word of the tool's.
func (q *Question) Words() string {
	switch f := q.Form(); {
	case f == nil:
	case f.FreeText():
		return firstRunes(q.Asker+" asks for a text", 200)
	case len(f.Fields) == 0:
		return firstRunes(q.Asker+" asks for a plain yes", 200)
	default:
		return firstRunes(q.Asker+" asks for "+strconv.Itoa(len(f.Fields))+" things in a form", 200)
	}

	return firstRunes(q.Asker+" asks for a choice, one of "+strconv.Itoa(len(q.Choices)), 200)
}

// picked tells what was chosen, by its place: the labels are the tool's
// words.
func (r *Request) picked() string {
	switch {
	case r.Question.takesData() && r.Cause == ByDismissal:
		return "dismissed, without an answer"
	case r.Question.takesData():
		return "what was submitted is kept with the request"
	}

	text := fmt.Sprintf("choice [%d] of %d", *r.Chosen, len(r.Question.Choices))
	if r.Cause == ByDismissal {
		text += ", the default, since the question was dismissed"
	}
	return text
}

// pick answers a question with a counted vote: the first one ends it.
func (r *Request) pick(v Vote, now time.Time) Event {
	causes := map[Verdict]Cause{Choose: ByChoice, Submit: BySubmission, Dismiss: ByDismissal}
	r.Chosen, r.Data = v.Chosen, v.Data
	r.close(Answered, causes[v.Verdict], v.Person, v.Reason, now)
	facts := map[string]any{"dismissed": v.Verdict == Dismiss}
	if v.Chosen != nil {
		facts["chosen"] = *v.Chosen
	}
	return r.event(EventAnswered, v.Person, facts).sealing("reason", v.Reason).sealing("data", string(r.Data))
}
