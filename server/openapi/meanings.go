package openapi

import (
	"errors"
	"net/http"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// Meaning describes all problems with one code. It is the only table between codes and
// errors: the server uses it for its answers, and clients use it to convert a problem to an
// error.
type Meaning struct {
	Code   Code
	Status int
	Title  string
	Next   NextAction
	After  int // seconds to wait before a retry, unless the caller says

	// Err is the domain's error for the code. It is nil if the error has more than a kind
	// (a field, a limit), and if only the exchange failed.
	Err    error
	Detail string // what the server adds to the title when all it has is Err
}

// Meanings lists every code. docs/contracts/http.md shows it as a table.
func Meanings() []Meaning {
	all := rows()
	for i := range all {
		if all[i].Next == "" {
			all[i].Next = NextActionNone
		}
	}

	return all
}

// rows returns the table. Meanings sets an empty Next to NextActionNone.
func rows() []Meaning {
	return []Meaning{
		{
			Code:   CodeBadRequest,
			Status: http.StatusBadRequest,
			Title:  "the request can't be read",
		},
		{
			Code:   CodeUnauthenticated,
			Status: http.StatusUnauthorized,
			Title:  "no valid token",
		},
		{
			Code:   CodeTokenExpired,
			Status: http.StatusUnauthorized,
			Title:  "the token has expired",
		},
		{
			Code:   CodeTokenRevoked,
			Status: http.StatusUnauthorized,
			Title:  "the token was revoked",
		},
		{
			Code:   CodeMissingScope,
			Status: http.StatusForbidden,
			Title:  "the token may not do this",
		},
		{
			Code:   CodeAgentNotAllowed,
			Status: http.StatusForbidden,
			Title:  "the token may not act for this agent",
		},
		{
			Code:   CodeNoPerson,
			Status: http.StatusForbidden,
			Title:  "the token speaks for no person",
		},
		{
			Code:   CodeUnknownPerson,
			Status: http.StatusForbidden,
			Title:  "nobody is known by this name",
			Err:    approval.ErrUnknownName,
			Detail: "the directory does not know the token's person",
		},
		{
			Code:   CodeNotEligible,
			Status: http.StatusForbidden,
			Title:  "this person may not answer the request",
			Err:    approval.ErrNotEligible,
		},
		{
			Code:   CodeNotFound,
			Status: http.StatusNotFound,
			Title:  "not found",
			Err:    approval.ErrNotFound,
		},
		{
			Code:   CodeUnknownAgent,
			Status: http.StatusNotFound,
			Title:  "unknown agent",
			Err:    approval.ErrUnknownAgent,
			Detail: "no agent of this id is loaded: look at the id, and at what the server was started with",
		},
		{
			Code:   CodeMethodNotAllowed,
			Status: http.StatusMethodNotAllowed,
			Title:  "not with this method",
		},
		{
			Code:   CodePending,
			Status: http.StatusConflict,
			Title:  "nobody has decided yet",
			Next:   NextActionRetry,
			After:  5,
			Err:    approval.ErrPending,
			Detail: "wait for the request with ?wait=, then consume",
		},
		{
			Code:   CodeNotApproved,
			Status: http.StatusConflict,
			Title:  "the request was not approved",
			Err:    approval.ErrNotApproved,
		},
		{
			Code:   CodeConsumed,
			Status: http.StatusConflict,
			Title:  "the approval has been used",
			Err:    approval.ErrConsumed,
			Detail: "it ran once, and will not run again",
		},
		{
			Code:   CodeStale,
			Status: http.StatusConflict,
			Title:  "the rules changed since it was approved",
			Next:   NextActionRequest,
			Err:    approval.ErrStale,
			Detail: "open a new request for the call",
		},
		{
			Code:   CodeClosed,
			Status: http.StatusConflict,
			Title:  "the request has ended",
			Err:    approval.ErrClosed,
		},
		{
			Code:   CodeQuestion,
			Status: http.StatusConflict,
			Title:  "a question takes a choice, and approves nothing",
			Err:    approval.ErrQuestion,
			Detail: "answer it with choose or dismiss, then read the request",
		},
		{
			Code:   CodeBindingMismatch,
			Status: http.StatusConflict,
			Title:  "this is not what was shown or approved",
			Err:    approval.ErrBinding,
			Detail: "an approver may have edited the call: read the request again, and present or answer what " +
				"stands there now",
		},
		{
			Code:   CodeVersionMismatch,
			Status: http.StatusPreconditionFailed,
			Title:  "the request changed meanwhile",
			Next:   NextActionRetry,
			Err:    approval.ErrVersion,
			Detail: "read the request again, show it again, then answer with the new version",
		},
		{
			Code:   CodeTooLarge,
			Status: http.StatusRequestEntityTooLarge,
			Title:  "the body is too large",
		},
		{
			Code:   CodeUnsupportedMediaType,
			Status: http.StatusUnsupportedMediaType,
			Title:  "expected application/json",
		},
		{
			Code:   CodeInvalid,
			Status: http.StatusUnprocessableEntity,
			Title:  "a value that can't be accepted",
		},
		{
			Code:   CodeNotShown,
			Status: http.StatusUnprocessableEntity,
			Title:  "the call was not shown fully",
			Err:    approval.ErrNotShown,
			Detail: "an approval needs shown_fully: true, which only a channel that showed the whole call may say",
		},
		{
			Code:   CodeHiddenValues,
			Status: http.StatusUnprocessableEntity,
			Title:  "a policy forbids approving while it hides a value of the call",
			Err:    approval.ErrHidden,
			Detail: "deny it, or have its rules show what they hide",
		},
		{
			Code:   CodeKeyReuse,
			Status: http.StatusUnprocessableEntity,
			Title:  "the idempotency key was used for another call",
			Err:    approval.ErrKeyReuse,
			Detail: "use a new key for another call",
		},
		{
			Code:   CodeEditDenied,
			Status: http.StatusUnprocessableEntity,
			Title:  "the edited call is denied",
			Err:    approval.ErrEditDenied,
		},
		{
			Code:   CodeGrantRefused,
			Status: http.StatusUnprocessableEntity,
			Title:  "no standing approval can come out of this",
			Err:    approval.ErrGrantRefused,
		},
		{
			Code:   CodeFrozen,
			Status: http.StatusLocked,
			Title:  "frozen",
			Err:    approval.ErrFrozen,
			Detail: "the kill switch is thrown; nothing runs until it is lifted",
		},
		{
			Code:   CodeIfMatchRequired,
			Status: http.StatusPreconditionRequired,
			Title:  "an answer must say which version it answers",
		},
		{
			Code:   CodeTooMany,
			Status: http.StatusTooManyRequests,
			Title:  "too much at once",
			Next:   NextActionRetry,
			After:  10,
		},
		{
			Code:   CodeInternal,
			Status: http.StatusInternalServerError,
			Title:  "a fault of the server",
		},
		{
			Code:   CodeTampered,
			Status: http.StatusInternalServerError,
			Title:  "the database was tampered with",
			Err:    store.ErrTampered,
			Detail: "what stands in the database was not written by this service, so it is not used: its log " +
				"says what",
		},
		{
			Code:   CodeUnavailable,
			Status: http.StatusServiceUnavailable,
			Title:  "not available now",
			Next:   NextActionRetry,
			After:  2,
			Err:    store.ErrUnavailable,
			Detail: "nothing may run until the server can ask again",
		},
		{
			Code:   CodeAgentUnusable,
			Status: http.StatusServiceUnavailable,
			Title:  "the agent's files can't be used",
		},
		{
			Code:   CodeWrongHost,
			Status: http.StatusMisdirectedRequest,
			Title:  "not a name of this server",
		},
	}
}

// MeaningOf returns the meaning of a code, or the zero value for a code that this version
// doesn't know.
func MeaningOf(code Code) Meaning {
	for _, m := range Meanings() {
		if m.Code == code {
			return m
		}
	}

	return Meaning{}
}

// MeaningOfError returns the meaning of a domain error for a client. If the error is also
// about tampering, that counts first, because nothing else in it can be trusted.
func MeaningOfError(err error) (Meaning, bool) {
	if errors.Is(err, store.ErrTampered) {
		return MeaningOf(CodeTampered), true
	}
	if errors.Is(err, store.ErrNotSealed) {
		m := MeaningOf(CodeUnavailable)
		m.Detail = "an act that spends or takes away an approval must be sealed in the ledger and noted in the " +
			"watermark before it is answered, and that fails: repeat it in a moment. A freeze stops an agent at once. " +
			"/readyz and the log say why"
		return m, true
	}
	for _, m := range Meanings() {
		if m.Err != nil && errors.Is(err, m.Err) {
			return m, true
		}
	}

	return Meaning{}, false
}
