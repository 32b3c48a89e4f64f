// Package desk brings what a rap.Runtime or rap.Gateway asks before the people of assent: approvals of calls and questions of tools become
// requests of package approval, either in this process (Service) or behind the HTTP API of a server (Client). People answer them in the inbox, on
// the command line, in Slack.
//
// A question is answered by a person or not at all: its deadline, its withdrawal and a freeze are never an answer. While the kill switch is
// thrown an answer is held back and the question looks open; Watch tells when that ends.
package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/agent/held"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
)

// Place is whose people answer.
type Place struct {
	Tenant string
	Agent  string // id of the agent
	Inbox  string // URL of the inbox, for hold.Held.Where; "" when there is none
}

// Service returns a desk over a service in this process; log is its store. Somebody must let time act on the service and seal the ledger, which
// server.Server.Run does: Watch reads sealed entries.
func Service(svc *approval.Service, log Ledger, at Place) hold.People {
	return &service{svc: svc, log: log, at: at}
}

// service is a rap.Desk over a service in this process.
type service struct {
	svc *approval.Service
	log Ledger
	at  Place
}

// As returns the desk as an asker has it. An asker without a name is refused by all that it does.
func (s *service) As(who approval.Asker) hold.Requests {
	as := held.Identity{Tenant: s.at.Tenant, Asker: who, Agent: s.at.Agent, Inbox: s.at.Inbox}

	return &desk{Holder: held.Service(s.svc, as), asks: &embedded{s.svc, as}, agent: as.Agent}
}

// Watch tells what may stand differently now, until ctx ends, whose error it returns.
func (s *service) Watch(ctx context.Context, changed func(ref string)) error {
	return watchLedger(ctx, s.log, s.at.Tenant, news{s.at.Agent, changed})
}

// Client returns a desk over a server's API. The server knows askers by their tokens alone, so each asker has a client of its own, by the name of its
// Asker.Token, whose token was made for the asker's person; others are refused. The tokens need the scope request. Where one has the scope read too,
// Watch follows the server's stream of events; else it looks every few seconds. A token that reads everything also reads answers that a freeze holds
// back, so the scope request alone is the safer choice.
func Client(agentID string, clients map[string]*client.Client) hold.People {
	return &clientDesk{agent: agentID, clients: clients, poll: pollEvery}
}

// clientDesk is a rap.Desk over a server.
type clientDesk struct {
	agent   string
	clients map[string]*client.Client // by the token of the asker
	poll    time.Duration
}

// As returns the desk as an asker has it. One without a client is refused by all that it does.
func (d *clientDesk) As(who approval.Asker) hold.Requests {
	c := d.clients[who.Token]
	if c == nil {
		return nobody{fmt.Errorf("ask as %q: there is no token of the server for it", who.Token)}
	}

	return &desk{Holder: held.Client(c, d.agent), asks: &remote{c, d.agent}, agent: d.agent}
}

// Watch tells what may stand differently now, until ctx ends, whose error it returns.
func (d *clientDesk) Watch(ctx context.Context, changed func(ref string)) error {
	var all sync.WaitGroup
	for _, c := range d.clients {
		all.Go(func() { watchServer(ctx, c, d.poll, news{d.agent, changed}) })
	}
	changed("")
	<-ctx.Done()
	all.Wait()

	return ctx.Err()
}

// desk is the desk of one asker, over whoever asks people.
type desk struct {
	hold.Holder
	asks  asks
	agent string // id
}

// asks is the side that puts questions to people. Its refusals are the errors of package approval, wherever it is.
type asks interface {
	ask(ctx context.Context, key string, q hold.Question) (*approval.Opened, error)
	answer(ctx context.Context, id string) (*approval.Request, error) // as approval.Service.Answer
	cancel(ctx context.Context, id, reason string) error
}

// Ask puts a question to people. What is never put to anybody gets a reference too, which Answer says AnswerDenied of.
func (d *desk) Ask(ctx context.Context, key string, q hold.Question) (string, error) {
	switch {
	case key == "":
		return "", held.ErrNoKey
	case q.Call == nil:
		return "", held.ErrNoCall
	}
	if err := readable(q); err != nil {
		return "", fmt.Errorf("put a question: %w", err)
	}
	o, err := d.asks.ask(ctx, questionKey(key), q)
	switch {
	case err != nil:
		return "", fmt.Errorf("put a question: %w", err)
	case o.Outcome == approval.OpenDeny:
		return deniedPrefix + deniedReason(o), nil
	case o.Outcome == approval.OpenPending && o.Request != nil && approval.QuestionID(o.Request.ID):
		return o.Request.ID, nil
	}
	return "", fmt.Errorf("put a question: an answer that makes no sense: %q without what belongs to it", o.Outcome)
}

// readable refuses texts that one of the ways to people would mend, and so change.
func readable(q hold.Question) error {
	for _, text := range append([]string{q.Server, q.Prompt}, append(q.Choices, q.Groups...)...) {
		if !utf8.ValidString(text) {
			return errors.New("its words are not UTF-8")
		}
	}
	return nil
}

// questionKey keeps the keys of questions apart from those of approvals, in a form that every way carries.
func questionKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "question-" + hex.EncodeToString(sum[:])
}

// deniedPrefix begins the references of questions that nobody was asked; the reason follows.
const deniedPrefix = "denied:"

func deniedReason(o *approval.Opened) string {
	switch {
	case o.Decision.Message != "":
		return o.Decision.Message
	case len(o.Decision.Reasons) > 0:
		return o.Decision.Reasons[0].Detail
	}
	return "the rules deny the call"
}

// Answer tells how a question stands.
func (d *desk) Answer(ctx context.Context, ref string) (hold.Answer, error) {
	if reason, ok := strings.CutPrefix(ref, deniedPrefix); ok {
		return hold.Answer{State: hold.AnswerDenied, Reason: reason}, nil
	}
	if !approval.QuestionID(ref) {
		return hold.Answer{}, fmt.Errorf("%q is no question: %w", ref, hold.ErrNoRequest)
	}
	r, err := d.asks.answer(ctx, ref)
	if r != nil && r.Agent.ID != d.agent || errors.Is(err, approval.ErrNotFound) {
		return hold.Answer{}, fmt.Errorf("look at the question %s: %w", ref, hold.ErrNoRequest)
	}
	switch {
	case errors.Is(err, approval.ErrFrozen):
		return hold.Answer{State: hold.AnswerOpen, Reason: "the agent is frozen by its operators: no answer is given out"}, nil
	case err != nil && !errors.Is(err, approval.ErrPending) && !errors.Is(err, approval.ErrNotApproved), r == nil:
		return hold.Answer{}, fmt.Errorf("look at the question %s: %w", ref, err)
	}
	return stands(r)
}

// stands maps a request. What is unknown is no answer.
func stands(r *approval.Request) (hold.Answer, error) {
	switch r.State {
	case approval.Pending:
		return hold.Answer{State: hold.AnswerOpen}, nil
	case approval.Expired:
		return hold.Answer{State: hold.AnswerExpired, Reason: "nobody answered in time"}, nil
	case approval.Cancelled:
		return hold.Answer{State: hold.AnswerCancelled, Reason: orElse(r.Reason, "the question was withdrawn")}, nil
	}
	if r.State != approval.Answered || r.Question == nil || r.Chosen == nil || *r.Chosen < 0 || *r.Chosen >= len(r.Question.Choices) {
		return hold.Answer{}, fmt.Errorf("look at the question %s: it is %s, which is no end of a question", r.ID, r.State)
	}
	state := hold.AnswerChosen
	if r.Cause == approval.ByDismissal {
		state = hold.AnswerDismissed
	}
	return hold.Answer{State: state, Selected: *r.Chosen, By: r.By}, nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Cancel withdraws a request, be it a question or an approval. What has ended stays as it is; hold.ErrNoRequest says that nobody knows it.
func (d *desk) Cancel(ctx context.Context, ref, reason string) error {
	if strings.HasPrefix(ref, deniedPrefix) {
		return nil // nobody was asked
	}
	cancel := d.Holder.Cancel
	if approval.QuestionID(ref) {
		cancel = d.asks.cancel
	}
	err := cancel(ctx, ref, reason)
	switch {
	case err == nil || errors.Is(err, approval.ErrClosed):
		return nil
	case errors.Is(err, approval.ErrNotFound):
		return errors.Join(hold.ErrNoRequest, err)
	}
	return fmt.Errorf("withdraw %s: %w", ref, err)
}
