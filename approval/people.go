package approval

import (
	"context"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/resolve"
)

// Person is one human, whatever name a channel knows them by.
type Person = people.Person

// Directory knows people and their groups as of now.
type Directory interface {
	// Person resolves any name of a human (sign-in, mail, Slack user,
	// principal of a call) to the one person; false when nobody is
	// known by it. Only people whom the directory knows may vote.
	Person(ctx context.Context, tenant, name string) (Person, bool, error)
	// Members lists who is in a group, for notifications and for
	// figures; group "" lists every approver.
	Members(ctx context.Context, tenant, group string) ([]Person, error)
	// Owners lists the people who own an agent by the directory.
	Owners(ctx context.Context, tenant, agent string) ([]string, error)
	// Reading returns what a person may read, beside what their groups
	// may answer, and by which names they are known.
	Reading(ctx context.Context, tenant string, p Person) (people.Reading, error)
}

// Compiled is an agent with its plan.
type Compiled struct {
	Agent  Agent
	Owners []string // by the agent's file
	Plan   *resolve.Plan
}

// Planner holds the plans of a tenant's agents as of now.
type Planner interface {
	// Plan returns an agent's plan. An agent that is unknown, broken or
	// has unresolved policies is an error that says so (errors.Is
	// ErrUnknownAgent for the first).
	Plan(ctx context.Context, tenant, agent string) (*Compiled, error)
}
