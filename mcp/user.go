package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/resolve"
)

// Ask selects who is asked about a call. If a rule names other people, needs several of them,
// escalates or hides arguments, a user's answer alone is never enough: the rule's approvers are
// asked then.
type Ask string

// The values of Ask.
const (
	AskApprovers Ask = ""     // whom the rules name, or anybody who may approve
	AskUser      Ask = "user" // the principal of the caller
	AskBoth      Ask = "both" // approvers, and then the principal
)

// User reads the questions to the principals of callers, and takes the answers that they give in
// their clients.
type User interface {
	// Question returns a pending question of this asker, as every channel shows it.
	Question(ctx context.Context, who approval.Asker, ref string) (*approval.Request, error)

	// Answer answers such a question as the asker's principal, by the index of a choice. It returns
	// an error if the answer doesn't count.
	Answer(ctx context.Context, who approval.Asker, r *approval.Request, choice int) error
}

// ServiceUser returns a User for a service in this process.
func ServiceUser(s *approval.Service, tenant string) User {
	return &serviceUser{service: s, tenant: tenant}
}

type serviceUser struct {
	service *approval.Service
	tenant  string
}

// Question implements [User].
func (u *serviceUser) Question(ctx context.Context, who approval.Asker, ref string) (*approval.Request, error) {
	r, err := u.service.Answer(ctx, u.tenant, ref, who)
	if errors.Is(err, approval.ErrPending) {
		return r, nil
	}
	if err == nil {
		err = approval.ErrClosed
	}
	return nil, err
}

// Channel is the channel of answers that users give in an MCP client. Only the client vouches that
// a person gave the answer.
const Channel = "mcp"

// Answer implements [User]. The service applies the same rules as to answers of every other
// channel.
func (u *serviceUser) Answer(ctx context.Context, who approval.Asker, r *approval.Request, choice int) error {
	out, err := u.service.Vote(ctx, approval.VoteInput{
		Tenant:  u.tenant,
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  who.Principal,
		Verdict: approval.Choose,
		Choice:  &choice,
		Channel: Channel,
		Token:   who.Token,
		Full:    true,
	})
	if err == nil && out.Outcome != approval.VoteAnswered {
		err = errors.New(out.Detail)
	}
	return err
}

// The choices of a question to a user.
const (
	choiceApprove = 0
	choiceDeny    = 1
)

// wantsUser reports whether the principal is the next to be asked about a call.
func (k *keeper) wantsUser(c *record, v hold.Verdict) bool {
	switch {
	case v.Outcome != resolve.Ask || c.Part.User != "":
		return false
	case k.cfg.Ask == AskBoth:
		return c.Approval != nil
	}

	return k.cfg.Ask == AskUser && c.Approval == nil && hold.UserMay(v.Require) == ""
}

// askUser asks the principal.
func (k *keeper) askUser(c *record, v hold.Verdict) durable.Ruling {
	c.Part.Annotations, c.Part.Declared = v.Call.Annotations, v.Call.Declared
	c.Part.InPlace = hold.UserMay(v.Require) == ""
	within := v.Within()
	if within == 0 {
		within = k.cfg.Within
	}
	return durable.Ruling{Do: durable.Question, Within: within}
}

// question builds the question for the principal.
func (k *keeper) question(c *record) hold.Question {
	owner := k.whoAsked(c)
	t := &tool{
		server:      c.Part.Server,
		name:        c.Part.Tool,
		definition:  c.Part.Definition,
		annotations: c.Part.Annotations,
		declared:    c.Part.Declared,
	}
	return hold.Question{
		Call:    t.call(owner, c.Args()),
		Server:  "assent",
		Prompt:  textMayRun,
		Choices: []string{"Approve", "Deny"},
		Default: choiceDeny,
	}
}

const textMayRun = "May this call run once?"

// userAnswered applies the answer of the principal, whichever channel it came by. Only the first
// choice lets the call run.
func (k *keeper) userAnswered(c *record, a hold.Answer) *durable.Ending {
	switch a.State {
	case hold.Chosen:
		if a.Selected == choiceApprove {
			c.Part.User = a.By
			c.Deadline = time.Time{}
			return nil
		}
	case hold.Expired:
		return &durable.Ending{Why: durable.Expired, Reason: a.Reason}
	case hold.Cancelled:
		return &durable.Ending{Why: durable.Withdrawn, Reason: a.Reason}
	case hold.Denied: // by the rules, without asking
		return &durable.Ending{Why: durable.Refused, Reason: a.Reason}
	}

	return &durable.Ending{Why: durable.Denied, Reason: a.Reason, By: a.By}
}

// isGranted reports whether everyone who was asked about a call so far has agreed.
func isGranted(c *record) bool { return c.Ask == nil && (c.Approval != nil || c.Part.User != "") }
