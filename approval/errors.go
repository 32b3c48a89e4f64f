package approval

import "errors"

// What stops a caller. All of them mean: nothing ran, nothing may run
// by this.
var (
	ErrUnknownAgent = errors.New("unknown agent")
	ErrVersion      = errors.New("the request changed meanwhile")          // read it again
	ErrBinding      = errors.New("this is not what was shown or approved") // the digest is another
	ErrNotShown     = errors.New("the call was not shown fully")
	ErrHidden       = errors.New("a policy forbids approving while it hides a value of the call")
	ErrPending      = errors.New("nobody has decided yet")
	ErrNotApproved  = errors.New("the request was not approved") // denied, expired or cancelled: see the request
	ErrConsumed     = errors.New("the approval has been used")
	ErrStale        = errors.New("the rules changed since it was approved") // ask again
	ErrFrozen       = errors.New("frozen")
	ErrKeyReuse     = errors.New("the idempotency key was used for another call")
	ErrClosed       = errors.New("the request has ended")
	ErrEditDenied   = errors.New("the edited call is denied") // the decision says why
	ErrGrantRefused = errors.New("no standing approval can come out of this")
	ErrNotEligible  = errors.New("not eligible to answer this request")
	// no edit, no permit, no standing approval
	ErrQuestion    = errors.New("a question takes a choice, and approves nothing")
	ErrUnknownName = errors.New("nobody is known by this name")
)

// AnswerError says which fields of an answer to a question are wrong.
type AnswerError struct{ err error } // form.Problems

// Error names every field.
func (e *AnswerError) Error() string { return e.err.Error() }

// Unwrap returns the form.Problems.
func (e *AnswerError) Unwrap() error { return e.err }

// InputError says which field of an input is wrong and what was expected.
type InputError struct {
	Field    string
	Expected string
}

// Error names the field.
func (e *InputError) Error() string { return e.Field + ": expected " + e.Expected }
