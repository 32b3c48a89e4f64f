package main

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// keep returns a function that explains why a fix must not be applied: it changes which calls are
// asked about, or may do so.
func (m *mender) keep(in *input) func(before, after []byte) string {
	if m.flags.unsafe {
		return func(_, _ []byte) string { return "" }
	}
	return func(before, after []byte) string {
		report, err := m.compare(in, before, after)
		if err != nil {
			return fmt.Sprintf("what it changes can't be told (%v), see --unsafe", err)
		}
		return objection(report.Verdict)
	}
}

// objection returns the text for a verdict.
func objection(v posture.Verdict) string {
	switch v {
	case posture.Equivalent:
		return ""
	case posture.VerdictTightens:
		return "more would be asked, see --unsafe"
	case posture.VerdictLoosens:
		return "less would be asked, see --unsafe"
	case posture.Mixed:
		return "some would be asked more and some less, see --unsafe"
	}

	return "what it changes can't be told, see --unsafe"
}

// compare reports what a changed text of a file changes for the agents of the run.
func (m *mender) compare(in *input, before, after []byte) (posture.Report, error) {
	if in.kind == agentKind {
		return m.under(m.opt.Registry).agents(in.path, before, after)
	}
	agents := 0
	var all []posture.Change
	for i := range m.inputs {
		if m.inputs[i].kind != agentKind {
			continue
		}
		changes, err := m.underPolicy(&m.inputs[i], in.path, before, after)
		if err != nil {
			return posture.Report{}, err
		}
		agents++
		all = append(all, changes...)
	}

	if agents == 0 {
		return posture.Report{}, errors.New("no agent is given with the policy")
	}
	return posture.NewReport(all), nil
}

// underPolicy compares an agent under two texts of one policy.
func (m *mender) underPolicy(agent *input, file string, before, after []byte) ([]posture.Change, error) {
	src := agent.src
	if src == nil {
		var err error
		if src, err = term.ReadFile(agent.path, m.In); err != nil {
			return nil, err
		}
	}

	var sides [2]*posture.Side
	for i, text := range [][]byte{before, after} {
		pol, _ := policy.Parse(file, text)
		if pol == nil {
			return nil, errors.New("the policy does not load")
		}
		side, err := m.under(with(m.opt.Registry, pol)).side(agent.path, src)
		if err != nil {
			return nil, err
		}
		sides[i] = side
	}

	return posture.Compare(sides[0], sides[1]), nil
}

// under returns a comparison with the policies of a registry.
func (m *mender) under(registry policy.Registry) comparison {
	return comparison{owner: m.opt.Owner, registry: registry}
}

// comparison holds what two texts of an agent are compared with.
type comparison struct {
	owner    resolve.Options
	registry policy.Registry // nil: policies are not known
}

// agents compares two texts of an agent.
func (c comparison) agents(file string, before, after []byte) (posture.Report, error) {
	known := c.registry != nil
	if !known {
		c.registry = unknown{}
	}
	old, err := c.side(file, before)
	if err != nil {
		return posture.Report{}, err
	}
	changed, err := c.side(file, after)
	if err != nil {
		return posture.Report{}, err
	}
	if !known && !reflect.DeepEqual(selected(old), selected(changed)) {
		return posture.Report{}, errors.New("policies may select by what is changed, and none were given")
	}

	return posture.NewReport(posture.Compare(old, changed)), nil
}

// selected returns the metadata by which policies select an agent.
func selected(s *posture.Side) schema.Metadata {
	data := s.Plan.Agent().Metadata
	data.Range = diag.Range{}
	return data
}

// side compiles one text of an agent.
func (c comparison) side(file string, src []byte) (*posture.Side, error) {
	agent, _ := schema.Parse(file, src)
	if agent == nil {
		return nil, errors.New("the agent does not load")
	}
	plan, err := resolve.Compile(agent, c.registry, c.owner)
	if err != nil {
		return nil, err
	}
	return &posture.Side{Plan: plan}, nil
}

// with returns a registry in which a policy replaces the one of the same name.
func with(known policy.Registry, pol *policy.Policy) policy.Registry {
	all := []*policy.Policy{pol}
	if set, ok := known.(*policy.Set); ok && set != nil {
		for _, other := range set.Policies() {
			if other.Ref != pol.Ref {
				all = append(all, other)
			}
		}
	}

	set, _ := policy.NewSet(all...)
	return set
}

// unknown is the registry for checking an agent without policies. It has every policy that is
// named, and all of them are empty. Policies depend only on the agent's metadata and its possible
// calls, and both are compared.
type unknown struct{}

func (unknown) Policy(ref string) (*policy.Policy, bool) { return &policy.Policy{Ref: ref}, true }

func (unknown) Implicit() []*policy.Policy { return nil }

func (unknown) Err() error { return nil }
