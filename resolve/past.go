package resolve

import (
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// MostPast is the largest number of past calls that a decision looks at. If a call has more, tests of
// the past calls are unknown.
const MostPast = 10_000

// PastCall is a call that was made before the one that is decided. Kind says which names are read, as
// in Call.
type PastCall struct {
	At        time.Time // of all the states
	States    []condition.PastState
	AgentID   string // metadata.id; empty stands for the agent that makes the call that is decided
	Principal string
	Session   string
	Kind      Kind
	Tool      string
	Server    string
	Agent     string
	Skill     string
	// ServerRef is the server_ref of the MCP server, if it is known. Otherwise it is looked up in the
	// file of the deciding agent, for its own calls.
	ServerRef string
	Args      Raw // nil stands for the empty object
}

// HistoryQuery describes the past calls that a test of the history reads. A superset of these calls
// gives the same decision.
type HistoryQuery struct {
	Test  *condition.History
	State condition.PastState
	// From is the beginning of the interval. Calls at that instant count if FromIncluded is set.
	From         time.Time
	FromIncluded bool
	// Keys are the values that past calls must have, as PastCall.Key returns them. If Test.Of is nil,
	// one of them has By "target".
	Keys []HistoryKey
}

// HistoryKey is a value by which past calls are grouped.
type HistoryKey struct {
	By    string // "agent", "principal", "session", "target" or "args.PATH"
	Value string
}

// Histories returns what the rules that meet a call read of the past calls. It returns nil if they
// read nothing. A test whose group values the call lacks is unknown whatever happened, and left out.
func (p *Plan) Histories(c *Call) []HistoryQuery {
	t := p.find(c)
	if t == nil || !t.pasts || c.At.IsZero() {
		return nil
	}
	this := p.past(c)
	args, given := p.values(c)
	var out []HistoryQuery
	for i := range t.rules {
		r := &t.rules[i]
		if r.when == nil || !r.meets(c) {
			continue
		}
		for _, test := range r.when.PastTests() {
			q := HistoryQuery{Test: test.History, State: test.State}
			q.From, q.FromIncluded = test.Start(c.At)
			by := test.By
			if test.Of == nil && !slices.Contains(by, "target") {
				by = append(slices.Clip(by), "target")
			}
			known := true
			for _, key := range by {
				text, found := this.key(key, args, given)
				known = known && found == condition.True
				q.Keys = append(q.Keys, HistoryKey{By: key, Value: text})
			}
			if known {
				out = append(out, q)
			}
		}
	}
	return out
}

// Past returns a call of this agent as a past call, without states.
func (p *Plan) Past(c *Call) PastCall {
	out := p.past(c)
	if s := mcpServer(p.agent, c.Server); c.Kind == MCPTool && s != nil {
		out.ServerRef = s.ServerRef
	}
	return out
}

func (p *Plan) past(c *Call) PastCall {
	return PastCall{
		At: c.At, AgentID: p.agent.Metadata.ID, Principal: c.Principal, Session: c.Session,
		Kind: c.Kind, Tool: c.Tool, Server: c.Server, Agent: c.Agent, Skill: c.Skill, Args: c.Args,
	}
}

// values is like PastCall.values for the call that is decided.
func (p *Plan) values(c *Call) (value.Value, condition.Truth) {
	if c.Kind != Delegation && c.Args == nil && c.Values != nil {
		v, err := value.FromGo(c.Values, p.opt.Limits)
		if err != nil {
			return value.Value{}, condition.Unknown
		}
		return v, condition.True
	}
	this := p.past(c)
	return this.values()
}

// Recorded reports whether a rule of this plan may count a past call as one that ran, succeeded or
// failed. The call may be one of another agent; Past makes it from a call.
func (p *Plan) Recorded(past *PastCall) bool {
	return slices.ContainsFunc(p.Policies(), func(pol *policy.Policy) bool {
		return slices.ContainsFunc(pol.Rules, func(r policy.Rule) bool { return p.counts(&r, past) })
	})
}

// counts reports whether a test of a rule selects a past call.
func (p *Plan) counts(r *policy.Rule, past *PastCall) bool {
	if r.When == nil {
		return false
	}
	called := p.calledBefore(past)
	for i := range r.When.Groups {
		for _, m := range r.When.Groups[i].Matchers {
			h := m.History
			if h == nil || !slices.Contains(runs[:], h.State) {
				continue
			}
			match := &r.Match
			if h.Of != nil {
				match = matchOf(h.Of)
			}
			if slices.ContainsFunc(called, match.Target) {
				return true
			}
		}
	}
	return false
}

// runs are the states of calls that people may not have been asked about.
var runs = [...]condition.PastState{condition.PastRan, condition.PastSucceeded, condition.PastFailed}

func matchOf(of *condition.PastCalls) *policy.Match {
	m := &policy.Match{Targets: of.Targets, Servers: of.Servers, ServerRefs: of.ServerRefs}
	for _, kind := range of.Kinds {
		m.Kinds = append(m.Kinds, Kind(kind))
	}
	return m
}

// calledBefore returns what a selector can match of a past call. A skill call is a delegation too, and
// a delegation may have been to a local or a remote agent.
func (p *Plan) calledBefore(past *PastCall) []policy.Called {
	switch past.Kind {
	case MCPTool:
		ref := past.ServerRef
		own := past.AgentID == "" || past.AgentID == p.agent.Metadata.ID
		if s := mcpServer(p.agent, past.Server); ref == "" && own && s != nil {
			ref = s.ServerRef
		}
		return []policy.Called{{Kind: MCPTool, Target: past.Tool, Server: past.Server, ServerRef: ref}}
	case Skill:
		return []policy.Called{
			{Kind: Skill, Target: past.Skill, Server: past.Agent},
			{Kind: Delegation, Target: past.Agent, Server: past.Agent},
		}
	case Delegation:
		return []policy.Called{
			{Kind: Delegation, Target: past.Agent},
			{Kind: Delegation, Target: past.Agent, Server: past.Agent},
		}
	default:
		return []policy.Called{{Kind: past.Kind, Target: past.Tool}}
	}
}

// Key returns the value by which a past call is grouped. It returns False if the call lacks it, so that
// it is in no group, and Unknown if that can't be said, so that it may be in every group.
func (past *PastCall) Key(by string) (string, condition.Truth) {
	args, given := past.values()
	return past.key(by, args, given)
}

// values returns the arguments. It returns False for a call without arguments, which a delegation is,
// and Unknown if they can't be read.
func (past *PastCall) values() (value.Value, condition.Truth) {
	switch {
	case past.Kind == Delegation:
		return value.Value{}, condition.False
	case past.Args == nil:
		return value.Value{Kind: value.Object}, condition.True
	}
	v, err := value.Parse(past.Args, value.Limits{MaxBytes: 1 << 30})
	if err != nil || v.Kind != value.Object {
		return value.Value{}, condition.Unknown
	}
	return v, condition.True
}

func (past *PastCall) key(by string, args value.Value, given condition.Truth) (string, condition.Truth) {
	text := ""
	switch by {
	case "agent":
		text = past.AgentID
	case "principal":
		text = past.Principal
	case "session":
		text = past.Session
	case "target":
		text = past.target()
	default:
		v, found := argumentOf(args, given, strings.TrimPrefix(by, "args."))
		if found == condition.True {
			text = string(v.AppendCanonical(nil))
		}
		return text, found
	}
	if text == "" {
		return "", condition.False
	}
	return text, condition.True
}

// target identifies kind, server or agent, and name.
func (past *PastCall) target() string {
	c := Call{Kind: past.Kind, Tool: past.Tool, Server: past.Server, Agent: past.Agent, Skill: past.Skill}
	parts := []string{string(c.Kind), c.Server, c.Tool}
	switch c.Kind {
	case Tool:
		parts[1] = ""
	case Skill:
		parts = []string{string(c.Kind), c.Agent, c.Skill}
	case Delegation:
		parts = []string{string(c.Kind), c.Agent, ""}
	}
	return strings.Join(parts, "\x00")
}

// argumentOf reads an argument as the keys of conditions are read: the literal key, or else the path.
// It returns False if it is missing or null, and Unknown if both exist and differ.
func argumentOf(args value.Value, given condition.Truth, path string) (value.Value, condition.Truth) {
	if given != condition.True {
		return value.Value{}, given
	}
	v, literal := args.Get(path)
	if strings.Contains(path, ".") {
		nested, found := args.Get(strings.Split(path, ".")...)
		if literal && found && !slices.Equal(v.AppendCanonical(nil), nested.AppendCanonical(nil)) {
			return value.Value{}, condition.Unknown
		}
		if !literal {
			v, literal = nested, found
		}
	}
	if !literal || v.Kind == value.Null {
		return value.Value{}, condition.False
	}
	return v, condition.True
}
