// Package model is the neutral form of the benchmark: rules, calls, and the plain evaluator
// that every engine must agree with. Each engine gets a translation of it. This package knows
// no engine.
//
// The rules of fairness (see README.md): an engine returns all matching rules, a missing
// argument matches nothing, numbers are integers, and an argument always has the type that its
// matchers expect.
package model

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Op is the test of one matcher.
type Op uint8

// The tests of the standard's args_match.
const (
	Eq Op = iota
	Ne
	Gt
	Gte
	Lt
	Lte
	In
	NotIn
	Pattern
)

// Matcher tests one argument. Key is a path with dots ("order.amount").
type Matcher struct {
	Key    string
	Op     Op
	Num    int64    // of Gt, Gte, Lt, Lte, and of Eq and Ne unless Text is set
	Text   string   // of Eq and Ne
	List   []string // of In and NotIn
	Regexp Regexp   // of Pattern
}

// Regexp is a pattern, with alternatives for engines without regular expressions.
type Regexp struct {
	Source         string
	Prefix, Suffix string // Literal: the pattern means only "begins with Prefix and ends with Suffix"
	Literal        bool
	Like           string // for Cedar: gives the same answer on every generated call
}

// Begins returns the pattern ^text, as an author would write it.
func Begins(text string) Regexp {
	return Regexp{
		Source:  "^" + regexp.QuoteMeta(text),
		Prefix:  text,
		Literal: true,
		Like:    text + "*",
	}
}

// Ends returns the pattern text$.
func Ends(text string) Regexp {
	return Regexp{
		Source:  regexp.QuoteMeta(text) + "$",
		Suffix:  text,
		Literal: true,
		Like:    "*" + text,
	}
}

// Group is a conjunction of matchers.
type Group []Matcher

// Rule requires approval if its selector admits the agent and the tool, and any of its groups
// matches.
type Rule struct {
	ID     string
	Tool   string  // "" admits every tool
	Labels []Label // the agent must have all of them
	Agent  bool    // in the agent file; otherwise a governance policy of its own
	Groups []Group
}

// Label is one label of an agent.
type Label struct{ Key, Value string }

// Agent makes the calls. Its labels are known before the first call.
type Agent struct {
	Labels []Label
	Tools  []string
}

// Call is one tool call in the two forms that engines start from.
type Call struct {
	Tool string
	Raw  []byte         // JSON arguments as they arrive
	Args map[string]any // Raw as encoding/json decodes it
}

// Workload is an agent, its rules, and the calls to decide.
type Workload struct {
	Name  string // a, b, c, d, d10k
	Title string
	Agent Agent
	Rules []Rule
	Calls []Call
}

// Relevant returns the rules whose selector admits the agent and the tool, in order. A host
// would pass these to an engine that can't narrow by itself.
func (w *Workload) Relevant(tool string) []Rule {
	var out []Rule
	for _, r := range w.Rules {
		if r.Admits(&w.Agent, tool) {
			out = append(out, r)
		}
	}
	return out
}

// Reference returns the sorted ids of all rules that match the call. Every engine must give
// this answer.
func (w *Workload) Reference(c *Call) []string {
	var ids []string
	for i := range w.Rules {
		if w.Rules[i].Admits(&w.Agent, c.Tool) && w.Rules[i].Matches(c.Args) {
			ids = append(ids, w.Rules[i].ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Admits reports whether the rule's selector admits the agent and the tool.
func (r *Rule) Admits(a *Agent, tool string) bool {
	if r.Tool != "" && r.Tool != tool {
		return false
	}
	for _, l := range r.Labels {
		if !slices.Contains(a.Labels, l) {
			return false
		}
	}
	return true
}

// Matches reports whether any group matches the arguments.
func (r *Rule) Matches(args map[string]any) bool {
	for _, g := range r.Groups {
		if g.matches(args) {
			return true
		}
	}
	return false
}

func (g Group) matches(args map[string]any) bool {
	for i := range g {
		if !g[i].matches(args) {
			return false
		}
	}
	return true
}

func (m *Matcher) matches(args map[string]any) bool {
	v, ok := Lookup(args, m.Key)
	if !ok {
		return false
	}
	switch m.Op {
	case Eq:
		return v == m.operand()
	case Ne:
		return v != m.operand()
	case In:
		return slices.Contains(m.List, v.(string))
	case NotIn:
		return !slices.Contains(m.List, v.(string))
	case Pattern:
		return regexp.MustCompile(m.Regexp.Source).MatchString(v.(string))
	default:
		return m.compare(v.(float64))
	}
}

func (m *Matcher) operand() any {
	if m.Text != "" {
		return m.Text
	}
	return float64(m.Num)
}

func (m *Matcher) compare(n float64) bool {
	switch limit := float64(m.Num); m.Op {
	case Gt:
		return n > limit
	case Gte:
		return n >= limit
	case Lt:
		return n < limit
	default:
		return n <= limit
	}
}

// Lookup returns the value at a path with dots.
func Lookup(args map[string]any, path string) (any, bool) {
	head, rest, nested := strings.Cut(path, ".")
	v, ok := args[head]
	if !nested || !ok {
		return v, ok
	}
	inner, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	return Lookup(inner, rest)
}

// Ragged returns the workload with calls that lack arguments: every third key, from a start
// that differs between calls. It checks that a missing argument matches nothing.
func (w *Workload) Ragged() *Workload {
	out := *w
	out.Calls = nil
	for i := range w.Calls {
		args := without(w.Calls[i].Args, i)
		raw, err := json.Marshal(args)
		if err != nil {
			panic(err) // decoded JSON can always be encoded
		}
		out.Calls = append(out.Calls, NewCall(w.Calls[i].Tool, string(raw)))
	}

	return &out
}

// without drops a third of the keys at every depth, and different keys for a different n.
func without(args map[string]any, n int) map[string]any {
	out := map[string]any{}
	for i, k := range slices.Sorted(maps.Keys(args)) {
		inner, nested := args[k].(map[string]any)
		switch {
		case (i+n)%3 == 0:
		case nested:
			out[k] = without(inner, n/3)
		default:
			out[k] = args[k]
		}
	}

	return out
}
