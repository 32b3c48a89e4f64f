package hold

import (
	"context"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// Place is whose people answer.
type Place struct {
	Tenant string
	Agent  string // id of the agent
	Inbox  string // URL of the inbox, for Held.Where; "" when there is none
}

// Service returns the people behind a service in this process; log is
// its store. Whoever runs the service must let time act on it and seal
// the ledger, which server.Server.Run does: what nobody answers stays
// pending otherwise, and Watch reads sealed entries.
func Service(svc *approval.Service, log Log, at Place) People {
	return &service{svc: svc, log: log, at: at}
}

// Embedded is the side of one asker, for a program that asks by a Side
// itself.
func Embedded(svc *approval.Service, at Place, who approval.Asker) Side {
	return &embedded{of: &service{svc: svc, at: at}, who: who}
}

// service is the People of a service in this process.
type service struct {
	svc *approval.Service
	log Log
	at  Place
}

// As returns the requests of an asker. An asker without a name is
// refused by all that it does.
func (s *service) As(who approval.Asker) Requests {
	return Over(&embedded{s, who}, s.at.Agent, s.at.Inbox)
}

// Watch says what may have changed, until ctx ends, whose error it returns.
func (s *service) Watch(ctx context.Context, changed func(ref string)) error {
	return Changes{Agent: s.at.Agent, Changed: changed}.follow(ctx, s.log, s.at.Tenant)
}

// embedded asks through a service in this process, as the server does
// for a token.
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
