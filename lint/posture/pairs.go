package posture

import (
	"cmp"
	"maps"
	"slices"
)

// CompareAll compares the agents of two versions, which are given by the paths of their files. It
// pairs agents with the same path, and moved agents whose id is unique. An agent without a
// counterpart is compared with nil. If each version has exactly one agent, these are compared
// regardless of their names.
func CompareAll(old, new map[string]*Side) Report {
	var changes []Change
	for _, p := range pairs(old, new) {
		changes = append(changes, Compare(p.old, p.new)...)
	}
	report := NewReport(changes)
	if files := (Compared{filesOf(old), filesOf(new)}); len(files.Old)+len(files.New) > 0 {
		report.Compared = &files
	}

	return report
}

// filesOf lists the files that the agents of a side were read from.
func filesOf(side map[string]*Side) []string {
	all := map[string]bool{}
	for _, s := range side {
		for _, file := range s.Files {
			all[file] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(all))...)
}

// pairs matches the agents of two versions by metadata.id, or by path if several agents share an
// id. A file whose agent has a new id counts as the same agent. If both versions have exactly one
// agent, these two are a pair. Agents without a counterpart are returned alone.
func pairs(old, new map[string]*Side) []agentPair {
	if len(old) == 1 && len(new) == 1 {
		for a := range old {
			for b := range new {
				return []agentPair{{a, old[a], new[b]}}
			}
		}
	}

	p := pairing{old: old, new: new, gone: maps.Clone(old), fresh: maps.Clone(new)}
	for _, rel := range slices.Sorted(maps.Keys(old)) {
		if b := new[rel]; b != nil && idOf(b) == idOf(old[rel]) {
			p.put(rel, rel)
		}
	}
	before, after := byID(old), byID(new)
	for _, rel := range slices.Sorted(maps.Keys(p.gone)) {
		id := idOf(old[rel])
		if there := after[id]; len(before[id]) == 1 && len(there) == 1 {
			p.put(rel, there[0])
		}
	}

	for _, rel := range slices.Sorted(maps.Keys(p.gone)) {
		if p.fresh[rel] != nil {
			p.put(rel, rel)
		}
	}

	return p.rest()
}

// agentPair is one agent on both sides. A side is nil if it lacks the agent.
type agentPair struct {
	rel      string // its path on the old side, or on the new one
	old, new *Side
}

// pairing holds the agents that are not paired yet, and the pairs that were found.
type pairing struct {
	old, new    map[string]*Side
	gone, fresh map[string]*Side
	out         []agentPair
}

func (p *pairing) put(from, to string) {
	p.out = append(p.out, agentPair{from, p.old[from], p.new[to]})
	delete(p.gone, from)
	delete(p.fresh, to)
}

// rest adds the agents that only one side has, and sorts the pairs.
func (p *pairing) rest() []agentPair {
	for rel, side := range p.gone {
		p.out = append(p.out, agentPair{rel: rel, old: side})
	}
	for rel, side := range p.fresh {
		p.out = append(p.out, agentPair{rel: rel, new: side})
	}
	slices.SortStableFunc(p.out, func(a, b agentPair) int {
		alone := cmp.Compare(index(a.old == nil), index(b.old == nil))
		return cmp.Or(alone, cmp.Compare(a.rel, b.rel))
	})

	return p.out
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func idOf(s *Side) string { return s.Plan.Agent().Metadata.ID }

// byID lists the paths of a version by the ids of their agents.
func byID(version map[string]*Side) map[string][]string {
	out := map[string][]string{}
	for path, s := range version {
		out[idOf(s)] = append(out[idOf(s)], path)
	}
	return out
}
