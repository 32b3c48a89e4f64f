package approval

import (
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// Past records that a call went through a state, for rules that test past calls.
type Past struct {
	ID    string // of the request, or of the run of a call that was allowed without one
	State condition.PastState
	At    time.Time // when the call entered the state
	// Ends is set for a reservation: a call that people approved and that has not run. It is when the
	// permit expires.
	Ends  *time.Time
	Until time.Time // when no rule can count the call any more, so that it may be deleted
	// Call has the names of the call, and those arguments that rules test. At and States are not used.
	Call resolve.PastCall
	// Kept lists the paths of the arguments that rules tested when the call was recorded. Other arguments
	// are not known.
	Kept []string
}

// PastRestored is the state of the mark that a restore leaves for a tenant: calls from before it may be
// missing. Its id is empty.
const PastRestored condition.PastState = "restored"

// PastQuery selects past calls in one state. Empty fields select all. A store may return more calls
// than it selects.
type PastQuery struct {
	State condition.PastState
	From  time.Time // the calls at or after it
	Now   time.Time // reservations that have ended by then are left out
	Limit int       // the most calls that are returned

	Agent     string
	Principal string
	Session   string
	Kinds     []resolve.Kind
	// Names are globs (policy.Glob) of the names of calls or of their containers.
	Names []string
	// Target is a call of which only the calls of the same kind, container and name are selected.
	Target *resolve.PastCall
}

// Container returns the MCP server or the agent of a past call, and its name there.
func (p *Past) Container() (container, name string) {
	switch p.Call.Kind {
	case resolve.MCPTool:
		return p.Call.Server, p.Call.Tool
	case resolve.Skill:
		return p.Call.Agent, p.Call.Skill
	case resolve.Delegation:
		return p.Call.Agent, p.Call.Agent
	}

	return "", p.Call.Tool
}
