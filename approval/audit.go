package approval

import (
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Problem is a ledger entry that contradicts the rules of this package.
type Problem struct {
	Index   int64  `json:"index"`
	Type    string `json:"type"`    // of the entry
	Subject string `json:"subject"` // request or grant
	Text    string `json:"text"`    // what is wrong
}

// String returns the entry followed by the text.
func (p Problem) String() string {
	return fmt.Sprintf("entry %d: %s %s: %s", p.Index, p.Type, p.Subject, p.Text)
}

// AuditSummary counts the contents of a ledger.
type AuditSummary struct {
	Entries   int64         `json:"entries"`
	Requests  int           `json:"requests"`
	States    map[State]int `json:"states"` // requests by the state they are in at the end
	Votes     int           `json:"votes"`  // counted
	Grants    int           `json:"grants"`
	GrantUses int           `json:"grant_uses"`
	Problems  int           `json:"problems"`
}

// Auditor reads the ledger of one tenant from its first entry and checks its events against the
// rules of this package. The Merkle tree proves that the ledger was not changed; the Auditor checks
// that the recorded events could happen. It needs only public facts, so it can audit redacted
// ledgers too. With the sealed arguments of calls it also checks that each call that ran under a
// standing approval was within its bounds. It can't detect that a person voted under another name of
// theirs. The zero Auditor is ready to use. It keeps a few hundred bytes per request, and the
// arguments of requests that may still run and of standing approvals.
type Auditor struct {
	entries  int64
	votes    int
	uses     int
	requests map[string]*auditedRequest
	grants   map[string]*auditedGrant
	problems []Problem
	found    []Problem // problems of the current entry
}

// Problems returns all problems, in order.
func (a *Auditor) Problems() []Problem { return slices.Clone(a.problems) }

// Summary counts what was added so far.
func (a *Auditor) Summary() AuditSummary {
	s := AuditSummary{
		Entries:   a.entries,
		Requests:  len(a.requests),
		States:    map[State]int{},
		Votes:     a.votes,
		Grants:    len(a.grants),
		GrantUses: a.uses,
		Problems:  len(a.problems),
	}
	for _, r := range a.requests {
		s.States[r.state]++
	}
	return s
}

// Add checks the next entry and returns its problems. Entries that are not about requests or grants
// are only counted.
func (a *Auditor) Add(index int64, l ledger.Leaf) []Problem { return a.AddOpened(index, l, nil) }

// AddOpened is Add for an entry with its openings, which the caller has verified. They may be missing.
func (a *Auditor) AddOpened(index int64, l ledger.Leaf, openings ledger.Openings) []Problem {
	if a.requests == nil {
		a.requests, a.grants = map[string]*auditedRequest{}, map[string]*auditedGrant{}
	}
	a.entries++
	a.found = nil
	e := &auditEntry{
		Leaf:     l,
		openings: openings,
		fail: func(format string, args ...any) {
			a.found = append(a.found, Problem{index, l.Type, l.Subject, fmt.Sprintf(format, args...)})
		},
	}
	switch {
	case l.Type == EventOpened:
		a.opened(e)
	case aboutGrants[l.Type]:
		a.grant(e)
	case l.Type == EventRestored:
		a.restored(e)
	default:
		if check := aboutRequests[l.Type]; check != nil {
			a.request(e, check)
		}
	}

	a.problems = append(a.problems, a.found...)
	return a.found
}

// auditEntry reads the facts of an entry. A missing fact is a problem.
type auditEntry struct {
	ledger.Leaf
	openings ledger.Openings
	fail     func(format string, args ...any)
}

func (e *auditEntry) fact(name string, kind value.Kind) value.Value {
	v, ok := e.Facts.Get(name)
	if !ok || v.Kind != kind {
		e.fail("the fact %q is missing, or no %s", name, kind)
		return value.Value{}
	}
	return v
}

func (e *auditEntry) text(name string) string { return e.fact(name, value.String).Text }

// sealed returns a sealed text. It returns an empty string if the entry has none, or if it was
// redacted.
func (e *auditEntry) sealed(name string) string { return e.openings[name].Value }

func (e *auditEntry) number(name string) int { return asInt(e.fact(name, value.Number)) }

func (e *auditEntry) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, e.text(name))
	if err != nil {
		e.fail("the fact %q is no time", name)
	}
	return t
}

// flag returns a boolean fact. It returns false if the fact is missing, because old entries don't
// have it.
func (e *auditEntry) flag(name string) bool { return member(e.Facts, name).Bool }

// member returns the value of a key, or an absent value if there is none.
func member(v value.Value, key string) value.Value {
	found, _ := v.Get(key)

	return found
}

func (e *auditEntry) list(name string) []value.Value { return e.fact(name, value.Array).Items }

func (e *auditEntry) texts(name string) []string { return asTexts(e.list(name)) }

func (e *auditEntry) stages() []policy.Stage {
	_, alternatives := e.Facts.Get("any_of")
	return e.stagesOf(e.list("stages"), alternatives)
}

// anyOf returns the alternatives next to the stages.
func (e *auditEntry) anyOf() []policy.AnyOf {
	if _, told := e.Facts.Get("any_of"); !told {
		return nil
	}
	var out []policy.AnyOf
	for _, list := range e.list("any_of") {
		var alternatives policy.AnyOf
		for _, stages := range list.Items {
			alternatives = append(alternatives, e.stagesOf(stages.Items, false))
		}
		if len(alternatives) == 0 {
			e.fail("a list of alternatives has none, so nothing fulfils it")
		}
		out = append(out, alternatives)
	}

	return out
}

func (e *auditEntry) stagesOf(list []value.Value, mayBeEmpty bool) []policy.Stage {
	var out []policy.Stage
	for _, v := range list {
		out = append(out, policy.Stage{
			Group:    member(v, "group").Text,
			People:   asInt(member(v, "people")),
			StandIns: e.standIns(member(v, "stand_ins")),
		})
	}

	if len(out) == 0 && !mayBeEmpty || slices.ContainsFunc(out, func(s policy.Stage) bool { return s.People < 1 }) {
		e.fail("nobody need agree: every request has stages, each with at least one person")
	}
	return out
}

func (e *auditEntry) standIns(list value.Value) []policy.StandIn {
	var out []policy.StandIn
	for _, v := range list.Items {
		group, after := member(v, "group").Text, asInt(member(v, "after_ms"))
		if group == "" || after < 0 {
			e.fail("a stand-in has a group, and a time after which it counts")
			continue
		}
		out = append(out, policy.StandIn{Group: group, After: time.Duration(after) * time.Millisecond})
	}

	return out
}

// rules returns the rules that asked.
func (e *auditEntry) rules() Rules {
	var out Rules
	for _, v := range e.list("rules") {
		named := Rule{
			Source: resolve.Source(member(v, "source").Text),
			Policy: member(v, "policy").Text,
			Rule:   member(v, "rule").Text,
		}
		if !slices.Contains(out, named) {
			out = append(out, named)
		}
	}

	return out
}

func asTexts(items []value.Value) []string {
	out := make([]string, len(items))
	for i, v := range items {
		out[i] = v.Text
	}
	return out
}

// asInt returns a number as an int, or -1 if it is not a small non-negative integer.
func asInt(v value.Value) int {
	n := 0
	if v.Kind != value.Number {
		return -1
	}
	for _, c := range v.Num.Canonical() {
		if c < '0' || c > '9' || n > 1<<40 {
			return -1
		}
		n = n*10 + int(c-'0')
	}

	return n
}
