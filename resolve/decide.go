package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// Decide answers one call. It allocates nothing when the answer is allow. Every problem with the call itself is in the
// decision: it denies, with a reason.
func (p *Plan) Decide(c *Call) Decision {
	g := p.find(c)
	if g.first == nil {
		return Unreadable(fmt.Errorf("%s is no kind of call, expected tool, mcp_tool, skill or delegation", quote(string(c.Kind))))
	}
	if len(p.stop) == 0 && p.silent(c, g) {
		return Decision{Outcome: Allow}
	}
	return p.explain(c, g)
}

// Unreadable is the decision for a call that can't be read.
func Unreadable(err error) Decision {
	r := Reason{Source: FromArguments, Code: UnreadableCall, Detail: err.Error(), outcome: Deny}
	return Decision{Outcome: Deny, Message: r.Detail, Reasons: []Reason{r}}
}

// silent tells whether no rule of any gate has anything to say. It only looks: reasons are made by explain.
func (p *Plan) silent(c *Call, g gates) bool {
	sc := p.scratch.Get().(*value.Scratch)
	ok := p.gateSilent(c, g.first, sc) && (g.second == nil || p.gateSilent(c, g.second, sc)) && p.restReadable(c, sc)
	p.scratch.Put(sc)
	return ok
}

func (p *Plan) gateSilent(c *Call, t *target, sc *value.Scratch) bool {
	if p.read(c, t, sc) != nil {
		return false
	}
	for i := range t.rules {
		r := &t.rules[i]
		if r.truth(sc) != condition.False && r.meets(c) {
			return false
		}
	}
	return true
}

// read scans the document that a gate's conditions rest on. Of a parent's input that is not there sc.Top is Absent.
func (p *Plan) read(c *Call, t *target, sc *value.Scratch) error {
	if t.kind == Delegation {
		if c.ParentInput == nil {
			sc.Reset()
			return nil
		}
		return t.shape.Scan(c.ParentInput, p.opt.Limits, sc)
	}
	return p.readArgs(c, t.shape, sc)
}

func (p *Plan) readArgs(c *Call, shape *value.Shape, sc *value.Scratch) error {
	switch {
	case c.Args != nil:
		return shape.Scan(c.Args, p.opt.Limits, sc)
	case c.Values != nil && p.opt.TrustValues:
		return shape.Look(c.Values, p.opt.Limits, sc)
	case c.Values != nil:
		return shape.Fill(c.Values, p.opt.Limits, sc)
	default:
		return shape.Scan(emptyObject, p.opt.Limits, sc)
	}
}

var emptyObject = []byte("{}")

// restReadable checks the documents of a call that no gate reads: they are forwarded or bound all the same.
func (p *Plan) restReadable(c *Call, sc *value.Scratch) bool {
	switch {
	case c.Kind == Delegation && (c.Args != nil || c.Values != nil):
		return p.readArgs(c, p.nothing, sc) == nil
	case c.Kind != Delegation && c.Kind != Skill && c.ParentInput != nil:
		return p.nothing.Scan(c.ParentInput, p.opt.Limits, sc) == nil
	default:
		return true
	}
}

// explain collects every reason, and what an ask needs.
func (p *Plan) explain(c *Call, g gates) Decision {
	sc := p.scratch.Get().(*value.Scratch)
	defer p.scratch.Put(sc)
	e := explanation{plan: p, call: c, gates: g, sc: sc}
	e.reasons = append(e.reasons, p.stop...)
	e.parse()
	e.gate(g.first)
	if g.second != nil {
		e.gate(g.second)
	}
	return e.decision()
}

// explanation is the work of one decision that is not a plain allow.
type explanation struct {
	plan    *Plan
	call    *Call
	gates   gates
	docs    documents
	sc      *value.Scratch
	reasons []Reason
	asked   []asked // parallel to the reasons that asked
}

// asked is a rule that asked at a gate.
type asked struct {
	rule *rule
	gate *target
}

// parse decodes the call's documents. Those that can't be read deny.
func (e *explanation) parse() {
	var err error
	if e.docs.args, err = e.plan.args(e.call); err != nil {
		e.unreadable("arguments", err)
	}
	if e.docs.parent, err = e.plan.parentInput(e.call); err != nil {
		e.unreadable("parent input", err)
	}
}

func (e *explanation) gate(t *target) {
	if e.plan.read(e.call, t, e.sc) != nil {
		return // parse has said why
	}
	for i := range t.rules {
		if r := &t.rules[i]; r.meets(e.call) {
			e.rule(t, r)
		}
	}
}

func (e *explanation) unreadable(document string, err error) {
	e.reasons = append(e.reasons, Reason{
		Source: FromArguments, Code: UnreadableArguments, Detail: document + ": " + err.Error(), outcome: Deny,
	})
}

func (e *explanation) rule(t *target, r *rule) {
	reason := Reason{
		Source: r.source, Policy: r.policy, Rule: r.id, Code: r.code, Detail: r.detail, outcome: Ask,
		File: r.file, Line: r.at.Start.Line, Column: r.at.Start.Column, Description: r.about,
	}
	if r.truth(e.sc) == condition.False {
		return
	}
	if r.when != nil {
		truth, seen := r.explain(e.sc)
		reason.Code, reason.Matchers = conditionCode(truth), matchers(seen)
		reason.Detail = describe(seen)
	}
	if e.plan.denies(r.code) {
		reason.outcome = Deny
	} else {
		e.asked = append(e.asked, asked{r, t})
	}
	e.reasons = append(e.reasons, reason)
}

// denies tells whether an unconditional rule with this code denies.
func (p *Plan) denies(code Code) bool {
	switch code {
	case Denied:
		return true
	case NotDeclared, NotAllowed:
		return p.opt.Semantics.Undeclared == UndeclaredDeny
	default:
		return false
	}
}

func conditionCode(t condition.Truth) Code {
	if t == condition.True {
		return ConditionTrue
	}
	return ConditionUnknown
}

// describe puts the matchers that spoke into one sentence: what each tested, and the class of what it saw.
func describe(seen []condition.Observation) string {
	b := make([]byte, 0, 128*len(seen))
	for i := range seen {
		if i > 0 {
			b = append(b, "; "...)
		}
		b = appendObserved(b, &seen[i])
	}
	return string(b)
}

func appendObserved(b []byte, o *condition.Observation) []byte {
	if o.Key == "" {
		return append(b, "a group without tests holds for every call"...)
	}
	b = append(b, o.Key...)
	if o.Test != "" {
		b = append(append(b, ' '), o.Test...)
	}
	if o.Truth == condition.Unknown {
		b = append(append(b, " can't be told: "...), strings.ReplaceAll(o.Why, "_", " ")...)
	} else {
		b = append(b, " is true"...)
	}
	if o.Seen == "" || strings.HasPrefix(o.Why, o.Seen) {
		return b // nothing was seen, or the reason says it already
	}
	return append(append(append(b, " ("...), o.Seen...), ')')
}

func matchers(seen []condition.Observation) []Matcher {
	out := make([]Matcher, len(seen))
	for i, o := range seen {
		out[i] = Matcher{
			Group: o.Group, Key: o.Key, Test: o.Test, Truth: o.Truth.String(), Why: o.Why, Seen: o.Seen,
			Line: o.Range.Start.Line, Column: o.Range.Start.Column,
		}
	}
	return out
}

// decision turns the reasons into the answer, which is never allow: whoever explains has found the call not silent, and
// when the reason is gone, since the caller changed the arguments meanwhile, it asks.
func (e *explanation) decision() Decision {
	slices.SortStableFunc(e.reasons, func(a, b Reason) int { return cmp.Compare(a.outcome, b.outcome) })
	d := Decision{Outcome: Ask, Reasons: e.reasons}
	for _, r := range e.reasons {
		d.Outcome = min(d.Outcome, r.outcome)
	}
	switch d.Outcome {
	case Deny:
		d.Message = e.reasons[0].Detail
	case Ask:
		text, from := e.message()
		d.Message, d.MissingVariables, d.MessageFrom = text.Text, text.Missing, from
		d.Require = e.require()
		d.Binding = e.plan.bind(e.call, e.docs).String()
	}
	return d
}

// require joins what the rules that ask demand. The agent's own rules can't say which arguments may vary under a standing
// approval, so where one of them asks none may.
func (e *explanation) require() *policy.Require {
	var joined *policy.Require
	varies := true
	for _, a := range e.asked {
		if a.rule.require == nil {
			varies = false
			continue
		}
		next := *a.rule.require
		if joined != nil {
			next = joined.Join(next)
		}
		joined = &next
	}
	if joined == nil || joined.IsZero() {
		return nil
	}
	if !varies && len(joined.Grants.Bounds) > 0 {
		strict := *joined
		strict.Grants.Bounds = []policy.Bound{}
		joined = &strict
	}

	return joined
}
