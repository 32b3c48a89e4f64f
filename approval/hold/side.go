package hold

import (
	"context"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// Side asks people for one asker and one agent. Every implementation returns the errors of package
// approval.
type Side interface {
	Open(ctx context.Context, key string, v Verdict) (*approval.Opened, error)
	Ask(ctx context.Context, key string, q Question) (*approval.Opened, error)
	Request(ctx context.Context, id string) (*approval.Request, error)

	// Answer is like approval.Service.Answer: it also returns the question with ErrPending and
	// ErrNotApproved.
	Answer(ctx context.Context, id string) (*approval.Request, error)
	Consume(ctx context.Context, id, key string, call *resolve.Call) (*approval.Request, error)
	Cancel(ctx context.Context, id, reason string) error
}

// Put converts the question to the type of package approval.
func (q Question) Put() approval.Question {
	return approval.Question{
		Asker:   q.Server,
		Prompt:  q.Prompt,
		Choices: q.Choices,
		Default: q.Default,
		Schema:  q.Schema,
		Groups:  q.Groups,
	}
}
