package approval

import "errors"

// The errors that callers get. After each of them nothing has run, and nothing may run.
var (
	ErrUnknownAgent = errors.New("unknown agent")
	ErrVersion      = errors.New("the request changed meanwhile")          // read it again
	ErrBinding      = errors.New("this is not what was shown or approved") // the digest differs
	ErrNotShown     = errors.New("the call was not shown fully")
	ErrHidden       = errors.New("a policy forbids approving while it hides a value of the call")
	ErrPending      = errors.New("nobody has decided yet")
	ErrNotApproved  = errors.New("the request was not approved") // denied, expired or cancelled; see its State
	ErrConsumed     = errors.New("the approval has been used")
	ErrStale        = errors.New("the rules changed since it was approved") // the caller must ask again
	ErrFrozen       = errors.New("frozen")
	ErrKeyReuse     = errors.New("the idempotency key was used for another call")
	ErrClosed       = errors.New("the request has ended")
	ErrEditDenied   = errors.New("the edited call is denied") // the decision contains the reasons
	ErrGrantRefused = errors.New("no standing approval can come out of this")
	ErrNotEligible  = errors.New("not eligible to answer this request")
	// returned for edits, permits and standing approvals
	ErrQuestion    = errors.New("a question takes a choice, and approves nothing")
	ErrUnknownName = errors.New("nobody is known by this name")
)

// AnswerError reports which fields of an answer to a question are wrong.
type AnswerError struct{ err error } // form.Problems

// Error names every wrong field.
func (e *AnswerError) Error() string { return e.err.Error() }

// Unwrap returns the form.Problems.
func (e *AnswerError) Unwrap() error { return e.err }

// InputError reports which field of an input is wrong and what was expected.
type InputError struct {
	Field    string
	Expected string
}

// Error names the field.
func (e *InputError) Error() string { return e.Field + ": expected " + e.Expected }
