package hold

import (
	"context"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// Place identifies the agent whose people answer.
type Place struct {
	Tenant string
	Agent  string // id of the agent
	Inbox  string // URL of the inbox, for Held.Where; may be empty
}

// Service returns the people who answer through a service in this process. log is the store of the
// service. The caller must call the service's Tick and seal the ledger regularly, as
// server.Server.Run does: otherwise unanswered requests stay pending forever, and Watch, which
// reads sealed entries, reports nothing.
func Service(svc *approval.Service, log Log, at Place) People {
	return &service{svc: svc, log: log, at: at}
}

// Embedded returns the Side of one asker, for programs that use a Side directly.
func Embedded(svc *approval.Service, at Place, who approval.Asker) Side {
	return &embedded{of: &service{svc: svc, at: at}, who: who}
}

// service implements People with a service in this process.
type service struct {
	svc *approval.Service
	log Log
	at  Place
}

// As returns the requests of an asker. If the asker has no name, all methods return an error.
func (s *service) As(who approval.Asker) Requests {
	return Over(&embedded{s, who}, s.at.Agent, s.at.Inbox)
}

// Watch reports requests that may have changed until ctx ends, and returns the error of ctx.
func (s *service) Watch(ctx context.Context, changed func(ref string)) error {
	return Changes{Agent: s.at.Agent, Changed: changed}.follow(ctx, s.log, s.at.Tenant)
}

// embedded calls a service in this process, in the same way as the server does for a token.
type embedded struct {
	of  *service
	who approval.Asker
}

func (e *embedded) Open(ctx context.Context, key string, v Verdict) (*approval.Opened, error) {
	return e.of.svc.Open(ctx, approval.OpenInput{
		Tenant:  e.of.at.Tenant,
		Asker:   e.who,
		Agent:   e.of.at.Agent,
		Call:    v.Call,
		Key:     key,
		Context: v.Context,
		Within:  v.Within(),
		Ask:     v.Ask,
	})
}

func (e *embedded) Ask(ctx context.Context, key string, q Question) (*approval.Opened, error) {
	return e.of.svc.Ask(ctx, approval.AskInput{
		Tenant:   e.of.at.Tenant,
		Asker:    e.who,
		Agent:    e.of.at.Agent,
		Call:     q.Call,
		Key:      key,
		Question: q.Put(),
		Context:  q.Context,
		Within:   q.Within,
	})
}

func (e *embedded) Request(ctx context.Context, id string) (*approval.Request, error) {
	r, err := e.of.svc.Own(ctx, e.of.at.Tenant, id, e.who)
	if err == nil && r.Agent.ID != e.of.at.Agent {
		err = approval.ErrNotFound
	}

	return r, err
}

func (e *embedded) Answer(ctx context.Context, id string) (*approval.Request, error) {
	return e.of.svc.Answer(ctx, e.of.at.Tenant, id, e.who)
}

func (e *embedded) Consume(ctx context.Context, id, key string, call *resolve.Call) (*approval.Request, error) {
	if _, err := e.Request(ctx, id); err != nil {
		return nil, err
	}

	return e.of.svc.Consume(ctx, approval.ConsumeInput{
		Tenant: e.of.at.Tenant,
		ID:     id,
		Asker:  e.who,
		Call:   call,
		Key:    key,
	})
}

func (e *embedded) Cancel(ctx context.Context, id, reason string) error {
	if _, err := e.Request(ctx, id); err != nil {
		return err
	}
	_, err := e.of.svc.Cancel(ctx, e.of.at.Tenant, id, e.who.Token, reason)

	return err
}
