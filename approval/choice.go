package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/value"
)

// ask makes a question pending. Revision 0 must already be set. A question has no approval by
// timeout and no escalations, because other groups may not answer it.
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

// labels returns the choices as one JSON text. Marshal can't fail for valid strings, so the
// fallback is only for safety.
func labels(choices []string) string {
	text, err := json.Marshal(choices)
	if err != nil {
		return fmt.Sprintf("%q", choices)
	}
	return string(text)
}

// answers reports whether a verdict is an answer to this kind of request.
func (r *Request) answers(v Verdict) bool { return (r.Question != nil) == v.picks() }

// picks reports whether a verdict answers a question rather than a call.
func (v Verdict) picks() bool { return v == Choose || v == Submit || v == Dismiss }

// agrees reports whether a verdict requires that everything was shown.
func (v Verdict) agrees() bool { return v == Approve || v == Choose || v == Submit }

// takesData reports whether the answer is a text or a form, not a choice.
func (q *Question) takesData() bool { return len(q.Schema) > 0 }

// form returns the form of the question's schema. The schema was validated before the question was
// stored. If this version can't parse it, the form has no fields, so that no answer fits it.
func (q *Question) form() *form.Form {
	f, err := form.ParseKept(q.Schema)
	if err != nil {
		return &form.Form{}
	}
	return f
}

// Form returns the form that a question asks for, or nil if it asks for a choice.
func (q *Question) Form() *form.Form {
	if !q.takesData() {
		return nil
	}
	return q.form()
}

// fits returns an error if the answer does not fit the kind of the request.
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

// checkData validates a submitted answer against the schema that was shown, and replaces it with
// its canonical form. The time that this takes depends on the schema and the answer, so it is done
// before the transaction, which blocks other writers. The result stays valid because questions
// never change.
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

// holdsTo reports whether the answer was validated against the schema of this request. It returns
// true for verdicts other than Submit.
func (in *VoteInput) holdsTo(r *Request) bool {
	return in.Verdict != Submit || bytes.Equal(in.checked, r.Question.Schema)
}

// sameData reports whether two answers are equal after canonicalization, because a store may change
// the spelling of JSON.
func sameData(a, b json.RawMessage) bool {
	one, _ := value.AppendCanonicalText(nil, a, value.Limits{})
	other, _ := value.AppendCanonicalText(nil, b, value.Limits{})

	return bytes.Equal(one, other)
}

// chosen returns the index of the choice that an answer picks, or the default for a dismissal. It
// returns nil for answers to calls, texts and forms.
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

// Words describes a question without using any text of the tool.
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

// picked describes the answer. It gives only the index of a choice, because the labels are the
// tool's words.
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

// pick answers a question with a counted vote. The first vote ends the question.
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
