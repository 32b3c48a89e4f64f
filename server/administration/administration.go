// Package administration asks people to approve administrative acts that permit more:
// making a token, lifting a freeze, having a witness forget a log. An act is a call of a
// reserved agent with built-in rules (administration.policy.yaml), so it is asked about,
// approved, consumed once and recorded like any other call.
package administration

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

//go:embed agent.agf.yaml
var agentFile []byte

//go:embed administration.policy.yaml
var policyFile string

// Act is an administrative act. Its value is the name of a tool.
type Act string

// The acts that people approve.
const (
	CreateToken Act = "create_token"
	LiftFreeze  Act = "lift_freeze"
	ForgetLog   Act = "forget_log"
)

// Forgetting returns what people are shown before a witness forgets a log: its name and the
// key that signs it.
func Forgetting(log, publicKey string) map[string]any {
	return map[string]any{"log": log, "public_key": publicKey}
}

// Lifting returns what people are shown before a freeze is lifted. An empty agent means the
// freeze of all agents. An approval is only for this one freeze, because the act includes
// who froze and when. If the agent is not frozen, the error is approval.ErrNotFound.
func Lifting(freezes []approval.Freeze, agent, reason string) (map[string]any, error) {
	i := slices.IndexFunc(freezes, func(f approval.Freeze) bool { return f.Agent == agent })
	if i < 0 {
		return nil, fmt.Errorf("freeze: %w", approval.ErrNotFound)
	}
	what := "agent " + agent
	if agent == "" {
		what = "all agents"
	}

	return map[string]any{
		"agent":     agent,
		"what":      what,
		"reason":    reason,
		"frozen_by": freezes[i].By,
		"frozen_at": FrozenAt(freezes[i]),
	}, nil
}

// FrozenAt returns the time of a freeze in the form that is part of the act to lift it.
func FrozenAt(f approval.Freeze) string { return f.At.UTC().Format(time.RFC3339Nano) }

// PendingError means that people are asked about an act, and that it was not performed.
// Request it again after they have approved it.
type PendingError struct{ Request *approval.Request }

// Error names the request.
func (e *PendingError) Error() string {
	return "administrators are asked first: " + e.Request.ID + ". Do the same again once they have approved it"
}

// RefusedError means that people denied an act recently, or that the rules deny it.
type RefusedError struct {
	Request *approval.Request // nil if people were not asked
	Reason  string
}

// Error tells the reason.
func (e *RefusedError) Error() string { return "the act was denied: " + e.Reason }

// Desk asks people about acts.
type Desk struct {
	Service   *approval.Service // must use a Planner of this package
	Directory approval.Directory
	Admins    func(tenant string) string // the group of a tenant's administrators
}

// Take permits an act once, by consuming an approval of exactly this act. If there is none
// yet, it asks people and returns a *PendingError. Repeated calls with the same act and
// asker share one request.
func (d *Desk) Take(ctx context.Context, tenant string, who approval.Asker, act Act, args map[string]any) error {
	call, err := d.call(ctx, tenant, who, act, args)
	if err != nil {
		return err
	}
	opened, err := d.Service.Open(ctx, approval.OpenInput{
		Tenant: tenant,
		Asker:  who,
		Agent:  Agent,
		Call:   call,
	})
	if err != nil {
		return fmt.Errorf("ask about an act of administration: %w", err)
	}
	r := opened.Request
	switch {
	case opened.Outcome != resolve.Ask || r == nil:
		return &RefusedError{Request: r, Reason: reason(opened)}
	case r.State != approval.Approved:
		return &PendingError{Request: r}
	}

	_, err = d.Service.Consume(ctx, approval.ConsumeInput{
		Tenant: tenant,
		ID:     r.ID,
		Asker:  who,
		Call:   call,
		Key:    approval.NewKey(),
	})
	if err != nil {
		return fmt.Errorf("take the approval of an act of administration: %w", err)
	}

	return nil
}

// call returns an act as a call of the reserved agent. The directory determines whether the
// asker is an administrator.
func (d *Desk) call(
	ctx context.Context, tenant string, who approval.Asker, act Act, args map[string]any,
) (*resolve.Call, error) {
	p, known, err := d.Directory.Person(ctx, tenant, who.Person)
	if err != nil {
		return nil, fmt.Errorf("ask the directory: %w", err)
	}
	all := maps.Clone(args)
	all["administrator"] = known && p.ID == who.Person && p.Holds(d.Admins(tenant))
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write an act of administration: %w", err)
	}

	return &resolve.Call{Kind: resolve.Tool, Tool: string(act), Args: text}, nil
}

// reason returns why an act is denied.
func reason(o *approval.Opened) string {
	switch {
	case o.Request != nil && o.Request.Reason != "":
		return o.Request.Reason
	case len(o.Decision.Reasons) > 0:
		return o.Decision.Reasons[0].Detail
	}

	return "a person denied it a moment ago"
}
