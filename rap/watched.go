package rap

import (
	"context"
	"time"
)

// Calls gives access to the calls that runtimes of tenants make for people.
type Calls interface {
	// CallsOf lists the calls made for a person of the directory: those in progress, and those
	// that ended recently.
	CallsOf(ctx context.Context, tenant, person string) ([]AgentCalls, error)
	// Watch calls changed after a call of the tenant changed in this process, until ctx ends.
	Watch(ctx context.Context, tenant string, changed func())
}

// AgentCalls are the calls that one agent makes for a person, the newest first.
type AgentCalls struct {
	Agent string
	Calls []Watched
	More  bool // there may be others
}

// Watched is a call as its user sees it. Texts of the agent and the tool are shortened to a few
// KiB each and otherwise unchanged: they are untrusted.
type Watched struct {
	Server    string
	Operation string
	Thread    string
	ID        string
	State     string // a runtime.CallState
	Question  string // reference of the open request to people
	Result    string // set once done
	Failed    bool   // the result is an error
	Why       string // the runtime.Why of a synthetic outcome
	Since     time.Time
	Ended     time.Time   // zero while it is in progress
	Lost      int         // number of events that are not in Events
	Events    []Event     // the latest, in order
	Views     []ShownView // the latest, the newest first
}

// ShownView is a view as it is shown to people.
type ShownView struct {
	Type string
	Text string // its content, as the tool sent it
}
