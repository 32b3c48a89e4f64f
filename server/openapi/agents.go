package openapi

import "slices"

// SeenBy returns what somebody sees of a tenant's agents: bound are the
// ids of those that they may act for alone; none: they see all of them.
// It is the one rule of the API and of the inbox.
func (a Agents) SeenBy(bound []string) Agents {
	seen := []AgentInForce{}
	for _, one := range a.Agents {
		if len(bound) == 0 || slices.Contains(bound, one.ID) {
			seen = append(seen, one)
		}
	}
	a.Agents = seen
	if len(bound) > 0 {
		a.Loaded = withoutProblems(a.Loaded)
	}

	return a
}

// withoutProblems leaves out what is wrong with files: they may be those
// of other agents.
func withoutProblems(all []Loaded) []Loaded {
	out := slices.Clone(all)
	for i := range out {
		out[i].Problems = nil
	}

	return out
}
