package rap

import (
	"context"
	"time"
)

// Calls are the calls that runtimes of tenants make for people.
type Calls interface {
	// CallsOf lists those of a person of the directory: the ones that go
	// on, and those that ended a short while ago.
	CallsOf(ctx context.Context, tenant, person string) ([]AgentCalls, error)
	// Watch calls changed after a call of the tenant changed, as far as
	// this process knows, until ctx ends.
	Watch(ctx context.Context, tenant string, changed func())
}

// AgentCalls are those that one agent makes for a person, the newest
// first.
type AgentCalls struct {
	Agent string
	Calls []Watched
	More  bool // there may be others
}

// Watched is a call as its user sees it. What the agent and the tool
// write in it is cut to a few KiB each, and nothing else was done to it.
type Watched struct {
	Server    string
	Operation string
	Thread    string
	ID        string
	State     string // as runtime.CallState has it
	Question  string // reference of what people are asked now
	Result    string // once it is done
	Failed    bool   // the result is an error
	Why       string // it is the runtime's own, as runtime.Why has it
	Since     time.Time
	Ended     time.Time   // zero: it goes on
	Lost      int         // events that are not in Events
	Events    []Event     // the latest, in order
	Views     []ShownView // the latest, the newest first
}

// ShownView is a view as it is shown to people.
type ShownView struct {
	Type string
	Text string // its content, as the tool wrote it
}
