package approval

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/assent-dev/assent/policy"
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
		r.Stages = []policy.Stage{anyone()}
	}
	if r.Within == 0 {
		r.Within = cfg.Within
	}
	r.Deadline = now.Add(r.Within)
	r.Scheduled = scheduled(now, r.Deadline, nil)
	r.schedule()
	q := r.Question
	e := r.opened(map[string]any{
		"question": true,
		"asker":    q.Asker,
		"choices":  len(q.Choices),
		"default":  q.Default,
	})
	return []Event{e.sealing("prompt", q.Prompt).sealing("labels", labels(q.Choices))}
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
func (v Verdict) picks() bool { return v == Choose || v == Dismiss }

// fits holds an answer to the kind of the request.
func (in *VoteInput) fits(r *Request) error {
	switch {
	case r.Question == nil && !r.answers(in.Verdict):
		return &InputError{"verdict", "approve, deny or respond: this asks for the approval of a call"}
	case r.Question != nil && !r.answers(in.Verdict):
		return &InputError{"verdict", "choose or dismiss: this is a question of a tool, which approves nothing"}
	case in.Choice != nil && *in.Choice >= len(r.Question.Choices):
		return &InputError{"choice", fmt.Sprintf("the index of a choice, 0 to %d", len(r.Question.Choices)-1)}
	}

	return nil
}

// chosen is what an answer picks: the index of a choice, or the default
// for a dismissal; nil for answers to calls.
func (in *VoteInput) chosen(r *Request) *int {
	switch in.Verdict {
	case Choose:
		index := *in.Choice
		return &index
	case Dismiss:
		index := r.Question.Default
		return &index
	}

	return nil
}

// words tell of a question without a word of the tool's.
func (q *Question) words() string {
	return firstRunes(q.Asker+" asks for a choice, one of "+strconv.Itoa(len(q.Choices)), 200)
}

// picked tells what was chosen, by its place: the labels are the tool's
// words.
func (r *Request) picked() string {
	text := fmt.Sprintf("choice [%d] of %d", *r.Chosen, len(r.Question.Choices))
	if r.Cause == ByDismissal {
		text += ", the default, since the question was dismissed"
	}
	return text
}

// pick answers a question with a counted vote: the first one ends it.
func (r *Request) pick(v Vote, now time.Time) Event {
	cause := ByChoice
	if v.Verdict == Dismiss {
		cause = ByDismissal
	}
	r.Chosen = v.Chosen
	r.close(Answered, cause, v.Person, v.Reason, now)
	e := r.event(EventAnswered, v.Person, map[string]any{"chosen": *v.Chosen, "dismissed": v.Verdict == Dismiss})
	return e.sealing("reason", v.Reason)
}
