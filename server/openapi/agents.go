package openapi

import "slices"

// SeenBy returns the part of a tenant's agents that a caller may see. If bound is not
// empty, it has the ids of the only agents that the caller may act for, and the files are
// returned without their problems. Otherwise everything is returned. The API and the inbox
// both use it.
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

// withoutProblems removes the problems of files, because they may be about other agents'
// files.
func withoutProblems(all []Loaded) []Loaded {
	out := slices.Clone(all)
	for i := range out {
		out[i].Problems = nil
	}

	return out
}
