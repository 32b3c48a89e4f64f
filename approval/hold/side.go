package hold

import (
	"context"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// Side is the side that asks people, for one asker and one agent. Its
// refusals are the errors of package approval, wherever it runs.
type Side interface {
	Open(ctx context.Context, key string, v Verdict) (*approval.Opened, error)
	Ask(ctx context.Context, key string, q Question) (*approval.Opened, error)
	Request(ctx context.Context, id string) (*approval.Request, error)

	// Answer is approval.Service.Answer: the question comes with
	// ErrPending and ErrNotApproved too.
	Answer(ctx context.Context, id string) (*approval.Request, error)
	Consume(ctx context.Context, id, key string, call *resolve.Call) (*approval.Request, error)
	Cancel(ctx context.Context, id, reason string) error
}

// Put is the question as package approval has it.
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
