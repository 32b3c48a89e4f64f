// Package administration has people approve the acts of administrators
// that widen what may happen: making a token, lifting a freeze, having a
// witness forget a log. An act
// is a call of a reserved agent, whose rules are built in
// (administration.policy.yaml), so it is asked about, approved,
// consumed once and recorded like any other call.
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

// Act is something that an administrator does, by the name of its tool.
type Act string

// The acts that people approve.
const (
	CreateToken Act = "create_token"
	LiftFreeze  Act = "lift_freeze"
	ForgetLog   Act = "forget_log"
)

// Forgetting is what people are shown before a witness forgets a log:
// its name and the key that signs it.
func Forgetting(log, publicKey string) map[string]any {
	return map[string]any{"log": log, "public_key": publicKey}
}

// Lifting is what people are shown of a freeze that is to be lifted;
// agent "" means that of all agents. An approval is for this very freeze:
// who froze and when are part of the act. If the agent is not frozen, the
// error is approval.ErrNotFound.
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

// FrozenAt writes the time of a freeze as the act to lift it has it.
func FrozenAt(f approval.Freeze) string { return f.At.UTC().Format(time.RFC3339Nano) }

// PendingError says that people are asked about an act, which did not
// happen. Ask for it again once they have approved it.
type PendingError struct{ Request *approval.Request }

// Error names the request.
func (e *PendingError) Error() string {
	return "administrators are asked first: " + e.Request.ID + ". Do the same again once they have approved it"
}

// RefusedError says that people denied an act a moment ago, or that the
// rules deny it.
type RefusedError struct {
	Request *approval.Request // nil where nobody was asked
	Reason  string
}

// Error tells the reason.
func (e *RefusedError) Error() string { return "the act was denied: " + e.Reason }

// Desk asks people about acts.
type Desk struct {
	Service   *approval.Service // over a Planner of this package
	Directory approval.Directory
	Admins    func(tenant string) string // the group of a tenant's administrators
}

// Take lets an act happen once: it takes the one run of an approval
// that people have given to this very act. Where nobody has approved it
// yet it asks, and returns a *PendingError. The same act by the same
// asker is one request.
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

// call is an act as a call of the reserved agent. Whether an
// administrator asks is for the directory to say.
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

// reason says why an act is denied.
func reason(o *approval.Opened) string {
	switch {
	case o.Request != nil && o.Request.Reason != "":
		return o.Request.Reason
	case len(o.Decision.Reasons) > 0:
		return o.Decision.Reasons[0].Detail
	}

	return "a person denied it a moment ago"
}
