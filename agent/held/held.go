// Package held keeps the requests of an agent's runs where people answer them: in package approval, with its inbox, command line and
// Slack, either in this process (Service) or behind the HTTP API of a server (Client).
//
// A call that needs approval becomes a request, which the run's thread refers to. People answer it wherever they like, the next run looks
// how it stands, takes its one run and goes on. The rules of the asking side hold in full: its own plan decides again, identical calls
// share a card and the one run in it, a freeze stops everything, an approval is used once and soon. Keys of Open are remembered for a day
// (approval.Config.Remember): whoever repeats Open later asks anew, so keep the Ref.
//
// Some calls need nobody when they get there: the plan on that side lets them run, or a standing approval covers them. Then Open answers
// hold.Approved with a Ref that names no request. Looking at it says approved again; claiming it presents the same call once more, and
// what has been frozen, revoked or forbidden since does not run. There is no permit behind it: that it runs once is the thread's word alone.
package held

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
)

// Identity is who asks, where there is no token that says so.
type Identity struct {
	Tenant string
	// Asker is the program, under a name as a token would have it, and whose program it is. It sees what it asked and nothing
	// else. Whom it acts for is in each call, so the principal stays empty.
	Asker approval.Asker
	Agent string // id of the agent
	Inbox string // URL of the inbox, for Held.Where; "" when there is none
}

// Service returns a holder over a service in this process. Somebody must let time act on the service (approval.Service.Tick, which
// server.Server.Run calls), or what nobody answers stays pending.
func Service(svc *approval.Service, who Identity) hold.Holder {
	return &holder{asking: &embedded{svc, who}, agent: who.Agent, inbox: who.Inbox}
}

// Client returns a holder over a server's API. The client's token needs the scope request. Held.Where points to the inbox of the same
// server.
func Client(c *client.Client, agentID string) hold.Holder {
	return &holder{asking: &remote{c, agentID}, agent: agentID, inbox: c.String()}
}

// ErrNoCall says that a verdict names no call. Markers alone can't be held: the holder needs a Decider with a plan (agent.ByPlan), whose
// verdict says what the call is in the plan's words.
var ErrNoCall = errors.New("the verdict names no call: a holder needs a decider with a plan")

// ErrNoKey says that a key is missing. Without one a repetition would be another request, or another run.
var ErrNoKey = errors.New("a holder needs a key")

// ClaimError says why a call may not run. Nothing ran and nothing may run by it. It is an agent.ErrNotClaimed. Every other error of Claim
// means that nobody could say: nothing may run either, and the same claim may be tried again.
type ClaimError struct {
	State  ClaimState
	Detail string // in words, for the agent and for people
	Err    error  // what the asking side said; nil when it was this side that refused
}

// ClaimState is what stands in the way of a claim. States may grow in number; a state never changes its meaning.
type ClaimState string

// The states of a ClaimError.
const (
	ClaimPending   ClaimState = "pending"   // nobody has decided yet, or the rules ask now: Open, with the key it had, gives the request
	ClaimDenied    ClaimState = "denied"    // a person or the rules said no
	ClaimResponded ClaimState = "responded" // a person answered instead
	ClaimExpired   ClaimState = "expired"   // not decided in time, not used in time, or approved under other rules
	ClaimCancelled ClaimState = "cancelled" // taken back
	ClaimChanged   ClaimState = "changed"   // it is another call than the one that was approved
	ClaimTaken     ClaimState = "taken"     // the one run was taken under another key
	ClaimFrozen    ClaimState = "frozen"    // the kill switch is thrown; the approval stands, for as long as it lasts
	ClaimUnknown   ClaimState = "unknown"   // no such request of this runtime and agent
)

// Error is the detail: it is told to the agent.
func (e *ClaimError) Error() string { return e.Detail }

// Is holds for agent.ErrNotClaimed.
func (e *ClaimError) Is(target error) bool { return target == agent.ErrNotClaimed }

// Unwrap returns what the asking side said.
func (e *ClaimError) Unwrap() error { return e.Err }

// asking is the side that asks people. Its refusals are the errors of package approval, wherever it is.
type asking interface {
	open(ctx context.Context, key string, v hold.Verdict) (*approval.Opened, error)
	request(ctx context.Context, id string) (*approval.Request, error)
	consume(ctx context.Context, id, key string, c *resolve.Call) (*approval.Request, error)
	cancel(ctx context.Context, id, reason string) error
}
