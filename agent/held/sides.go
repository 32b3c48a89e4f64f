package held

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// embedded asks through a service in this process, as the server does for a token.
type embedded struct {
	svc *approval.Service
	who Identity
}

func (e *embedded) open(ctx context.Context, key string, v hold.Verdict) (*approval.Opened, error) {
	return e.svc.Open(ctx, approval.OpenInput{
		Tenant: e.who.Tenant, Asker: e.who.Asker, Agent: e.who.Agent, Call: v.Call, Key: key, Within: v.Within(),
	})
}

func (e *embedded) request(ctx context.Context, id string) (*approval.Request, error) {
	r, err := e.svc.Own(ctx, e.who.Tenant, id, e.who.Asker)
	if err == nil && r.Agent.ID != e.who.Agent {
		err = approval.ErrNotFound
	}
	return r, err
}

func (e *embedded) consume(ctx context.Context, id, key string, c *resolve.Call) (*approval.Request, error) {
	if _, err := e.request(ctx, id); err != nil {
		return nil, err
	}
	return e.svc.Consume(ctx, approval.ConsumeInput{Tenant: e.who.Tenant, ID: id, Asker: e.who.Asker, Call: c, Key: key})
}

func (e *embedded) cancel(ctx context.Context, id, reason string) error {
	_, err := e.svc.Cancel(ctx, e.who.Tenant, id, e.who.Asker.Token, reason)
	return err
}

// remote asks through a server.
type remote struct {
	c     *client.Client
	agent string
}

func (r *remote) open(ctx context.Context, key string, v hold.Verdict) (*approval.Opened, error) {
	text, err := client.CallText(v.Call)
	if err != nil {
		return nil, err
	}
	o, err := r.c.Open(ctx, r.agent, text, client.OpenOptions{Key: key, Within: v.Within()})
	return o, known(err)
}

func (r *remote) request(ctx context.Context, id string) (*approval.Request, error) {
	out, err := r.c.Request(ctx, id)
	return out, known(err)
}

func (r *remote) consume(ctx context.Context, id, key string, c *resolve.Call) (*approval.Request, error) {
	text, err := client.CallText(c)
	if err != nil {
		return nil, err
	}
	out, err := r.c.Consume(ctx, id, text, key)
	return out, known(err)
}

func (r *remote) cancel(ctx context.Context, id, reason string) error {
	_, err := r.c.Cancel(ctx, id, reason)
	return known(err)
}

// known puts the errors of package approval beside the problems by which the API reports them.
func known(err error) error {
	for code, is := range map[openapi.Code]error{
		openapi.CodePending: approval.ErrPending, openapi.CodeNotApproved: approval.ErrNotApproved, openapi.CodeConsumed: approval.ErrConsumed,
		openapi.CodeStale: approval.ErrStale, openapi.CodeBindingMismatch: approval.ErrBinding, openapi.CodeFrozen: approval.ErrFrozen,
		openapi.CodeNotFound: approval.ErrNotFound, openapi.CodeClosed: approval.ErrClosed, openapi.CodeKeyReuse: approval.ErrKeyReuse,
		openapi.CodeUnknownAgent: approval.ErrUnknownAgent,
	} {
		if client.Code(err) == code {
			return errors.Join(is, err)
		}
	}
	return err
}
