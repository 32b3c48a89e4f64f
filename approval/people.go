package approval

import (
	"context"

	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// Person is one human with all the names that channels use for them.
type Person = people.Person

// Directory looks up people and their current groups.
type Directory interface {
	// Person returns the person with the given name (sign-in, email address, Slack user or
	// principal of a call), and false if there is none. Only people in the directory may vote.
	Person(ctx context.Context, tenant, name string) (Person, bool, error)
	// Members lists the people in a group, for notifications and figures. An empty group lists
	// every approver.
	Members(ctx context.Context, tenant, group string) ([]Person, error)
	// Owners lists the people who own an agent according to the directory.
	Owners(ctx context.Context, tenant, agent string) ([]string, error)
	// Reading returns what a person may read in addition to the requests that their groups may
	// answer, and the names of the person.
	Reading(ctx context.Context, tenant string, p Person) (people.Reading, error)
}

// Compiled is an agent with its plan.
type Compiled struct {
	Agent  Agent
	Owners []string // by the agent's file
	Plan   *resolve.Plan
}

// Planner returns the current plans of a tenant's agents.
type Planner interface {
	// Plan returns an agent's plan. It returns an error if the agent is unknown (ErrUnknownAgent),
	// broken, or has unresolved policies.
	Plan(ctx context.Context, tenant, agent string) (*Compiled, error)
	// Past returns what the rules of all agents of a tenant read of past calls.
	Past(tenant string) *PastRules
}
