package desk

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/agent/held"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/server/openapi"
)

func question(q hold.Question) approval.Question {
	return approval.Question{Asker: q.Server, Prompt: q.Prompt, Choices: q.Choices, Default: q.Default, Groups: q.Groups}
}

// embedded asks through a service in this process, as the server does for a token.
type embedded struct {
	svc *approval.Service
	who held.Identity
}

func (e *embedded) ask(ctx context.Context, key string, q hold.Question) (*approval.Opened, error) {
	return e.svc.Ask(ctx, approval.AskInput{
		Tenant: e.who.Tenant, Agent: e.who.Agent, Asker: e.who.Asker, Key: key, Call: q.Call, Question: question(q), Within: q.Within,
	})
}

func (e *embedded) answer(ctx context.Context, id string) (*approval.Request, error) {
	return e.svc.Answer(ctx, e.who.Tenant, id, e.who.Asker)
}

func (e *embedded) cancel(ctx context.Context, id, reason string) error {
	r, err := e.svc.Own(ctx, e.who.Tenant, id, e.who.Asker)
	switch {
	case err != nil:
		return err
	case r.Agent.ID != e.who.Agent:
		return approval.ErrNotFound
	}
	_, err = e.svc.Cancel(ctx, e.who.Tenant, id, e.who.Asker.Token, reason)
	return err
}

// remote asks through a server.
type remote struct {
	c     *client.Client
	agent string
}

func (r *remote) ask(ctx context.Context, key string, q hold.Question) (*approval.Opened, error) {
	text, err := client.CallText(q.Call)
	if err != nil {
		return nil, err
	}
	return r.c.Ask(ctx, r.agent, text, question(q), client.AskOptions{Key: key, Within: q.Within})
}

func (r *remote) answer(ctx context.Context, id string) (*approval.Request, error) {
	out, err := r.c.Answer(ctx, id)
	return out, known(err)
}

// cancel doesn't read the question first: an answer that is held back would stand in the way.
func (r *remote) cancel(ctx context.Context, id, reason string) error {
	_, err := r.c.Cancel(ctx, id, reason)
	return known(err)
}

// known puts the errors of package approval beside the problems by which the API reports them.
func known(err error) error {
	switch client.Code(err) {
	case openapi.CodeNotFound:
		return errors.Join(approval.ErrNotFound, err)
	case openapi.CodeFrozen:
		return errors.Join(approval.ErrFrozen, err)
	case openapi.CodeClosed:
		return errors.Join(approval.ErrClosed, err)
	}
	return err
}
