package approval

import (
	"slices"

	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/value"
)

// auditedQuestion is a question according to the ledger.
type auditedQuestion struct {
	fields   int // number of fields of a form; 0 for a choice
	choices  int
	standard int // the index that a dismissal picks
}

// question reads the facts of a question. It returns nil if the request is for the approval of a
// call.
func (e *auditEntry) question() *auditedQuestion {
	if !e.flag("question") {
		return nil
	}
	if fields, ok := e.Facts.Get("fields"); ok {
		q := &auditedQuestion{fields: asInt(fields)}
		if q.fields < 1 {
			e.fail("a form has fields")
		}
		return q
	}

	q := &auditedQuestion{choices: e.number("choices"), standard: e.number("default")}
	if q.choices < 1 || q.standard < 0 || q.standard >= q.choices {
		e.fail("a question has choices, and one of them is its default")
	}
	return q
}

// notOfQuestions are the event types that questions never have: a question approves nothing, is not
// edited or shared, and has no escalations.
var notOfQuestions = []string{
	EventShared,
	EventEdited,
	EventEditRefused,
	EventApproved,
	EventRequestDenied,
	EventEscalated,
	EventConsumed,
	EventPermitExpired,
	EventConsumeRefused,
}

// kind checks that an entry is possible for this kind of request.
func (r *auditedRequest) kind(e *auditEntry) {
	switch {
	case r.question == nil && e.Type == EventAnswered:
		e.fail("it is no question that could be answered by a choice")
	case r.question != nil && slices.Contains(notOfQuestions, e.Type):
		e.fail("this can't happen to a question")
	}
}

// asksUser reports whether the question goes to the user of the agent. The ledger contains the
// principal by a name and the voter by the id of a person, so the audit can't check that they are
// the same person.
func (r *auditedRequest) asksUser() bool {
	return r.question != nil && quorum.IsAnyone(r.stages)
}

// picked returns the index of the choice that an answer picks, or -1 for a text or form, whose
// answer is sealed.
func (r *auditedRequest) picked(e *auditEntry, v Verdict) int {
	if r.question.fields > 0 {
		if _, chosen := e.Facts.Get("chosen"); chosen || v == Choose {
			e.fail("a form is filled in or dismissed: nothing is chosen")
		}
		return -1
	}

	if v == Submit {
		e.fail("a choice is made or dismissed: nothing is submitted")
	}
	chosen := asInt(e.fact("chosen", value.Number))
	switch {
	case chosen < 0 || chosen >= r.question.choices:
		e.fail("there is no choice %d", chosen)
	case v == Dismiss && chosen != r.question.standard:
		e.fail("a dismissal picks the default, %d", r.question.standard)
	}

	return chosen
}

// answered checks that exactly one answer was counted, and that it matches the entry.
func (a *Auditor) answered(r *auditedRequest, e *auditEntry) {
	verdict, cause := Choose, ByChoice
	if r.question != nil && r.question.fields > 0 {
		verdict, cause = Submit, BySubmission
	}
	if e.fact("dismissed", value.Bool).Bool {
		verdict, cause = Dismiss, ByDismissal
	}
	if r.question == nil {
		return // already reported
	}
	chosen := r.picked(e, verdict)
	switch {
	case len(r.votes) != 1 || r.votes[0].person != e.Actor || r.votes[0].verdict != verdict ||
		r.votes[0].chosen != chosen:
		e.fail("there is no counted answer of %q that picks this", e.Actor)
	case e.text("cause") != string(cause):
		e.fail("a %s is not the cause of this", e.text("cause"))
	}
}
