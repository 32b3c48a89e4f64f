package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve/shellfacts"
	"github.com/assent-dev/assent/value"
)

// Decide decides one call. It allocates nothing if the answer is allow. A problem with the call
// itself is not returned as an error: the decision denies and has a reason.
func (p *Plan) Decide(c *Call) Decision {
	t := p.find(c)
	if t == nil {
		return p.Unreadable(
			fmt.Errorf(
				"%s is no kind of call, expected tool, mcp_tool, skill or delegation",
				quote(string(c.Kind)),
			),
		)
	}

	if len(p.stop) == 0 && p.silent(c, t) {
		return Decision{Outcome: Allow, Configuration: p.opt.Configuration}
	}
	return p.explain(c, t)
}

// DecideAt decides a call at a moment, whatever moment and past calls the call itself names: those of a
// caller can't be believed, so tests of past calls are unknown.
func (p *Plan) DecideAt(c *Call, at time.Time) Decision {
	one := *c
	one.At, one.History, one.HistoryKnown = at, nil, false

	return p.Decide(&one)
}

// Unreadable returns the decision for a call that can't be read.
func Unreadable(err error) Decision {
	r := Reason{
		Source:  FromArguments,
		Code:    UnreadableCall,
		Detail:  err.Error(),
		outcome: Deny,
	}
	return Decision{
		Outcome: Deny,
		Message: r.Detail,
		Reasons: []Reason{r},
	}
}

// Unreadable returns the decision for a call that can't be read, under this plan's configuration.
func (p *Plan) Unreadable(err error) Decision {
	d := Unreadable(err)
	d.Configuration = p.opt.Configuration

	return d
}

// silent reports whether no rule asks or denies. It evaluates the rules without building reasons;
// explain does that.
func (p *Plan) silent(c *Call, t *target) bool {
	v := p.views.Get().(*condition.View)
	v.At, v.Declared, v.Past = c.At, c.Declared, p.history(c, t)
	ok := p.readArgs(c, t, &v.Args) == nil && p.readParent(c, t, &v.Parent) == nil && t.silent(c, v)
	p.release(v)
	return ok
}

// release keeps a view for another call.
func (p *Plan) release(v *condition.View) {
	v.Past = nil
	p.views.Put(v)
}

func (t *target) silent(c *Call, v *condition.View) bool {
	for i := range t.rules {
		r := &t.rules[i]
		if !r.silent(v) && r.meets(c) {
			return false
		}
	}

	return true
}

// readArgs scans the arguments. Arguments that no rule reads are checked too, because they are
// forwarded and bound.
func (p *Plan) readArgs(c *Call, t *target, sc *value.Scratch) error {
	switch {
	case t.derived != nil:
		_, err := p.readDerived(c, t, sc)
		return err
	case c.Args != nil:
		return t.args.Scan(c.Args, t.limits, sc)
	case c.Values != nil && p.opt.TrustValues:
		return t.args.Look(c.Values, t.limits, sc)
	case c.Values != nil:
		return t.args.Fill(c.Values, t.limits, sc)
	default:
		return t.args.Scan(emptyObject, t.limits, sc)
	}
}

var emptyObject = []byte("{}")

// readParent scans the parent's input. If there is none, sc.Top is Absent.
func (p *Plan) readParent(c *Call, t *target, sc *value.Scratch) error {
	if c.ParentInput == nil {
		if sc.Top != value.Absent {
			sc.Reset()
		}
		return nil
	}

	return t.parent.Scan(c.ParentInput, p.parentLimits(), sc)
}

// argumentLimits returns the limits for the arguments of a call. Keys that differ only in case are
// refused, unless the owner lists the target in CaseSensitive.
func (p *Plan) argumentLimits(called place) value.Limits {
	if called.kind == Delegation {
		called.container = "" // one alias, whether local or remote
	}
	lim := p.opt.Limits
	lim.FoldKeys = !p.caseSensitive[called]
	return lim
}

// parentLimits bounds a parent's input.
func (p *Plan) parentLimits() value.Limits {
	lim := p.opt.Limits
	lim.FoldKeys = true
	return lim
}

// explain collects every reason, and the message and requirements of an ask.
func (p *Plan) explain(c *Call, t *target) Decision {
	v := p.views.Get().(*condition.View)
	v.At, v.Declared, v.Past = c.At, c.Declared, p.history(c, t)
	defer p.release(v)
	e := explanation{plan: p, call: c, target: t, view: v}
	e.reasons = append(e.reasons, p.stop...)
	e.parse()
	for i := range t.rules {
		if r := &t.rules[i]; r.meets(c) && e.readable(&t.gates[r.gate]) {
			e.rule(r)
		}
	}
	return e.decision()
}

// explanation is the work of one decision that is not a plain allow.
type explanation struct {
	plan    *Plan
	call    *Call
	target  *target
	docs    documents
	view    *condition.View
	noArgs  bool              // the arguments can't be read
	noInput bool              // the parent's input can't be read
	facts   *shellfacts.Facts // of the arguments; nil if there are none
	reasons []Reason
	asked   []*rule
}

// parse reads the call's documents and scans them for the rules. A document that can't be read
// denies the call.
func (e *explanation) parse() {
	var noArgs, noInput error
	if e.docs.args, noArgs = e.plan.args(e.call, e.target); noArgs != nil {
		e.unreadable("arguments", noArgs)
	}
	if e.docs.parent, noInput = e.plan.parentInput(e.call); noInput != nil {
		e.unreadable("parent input", noInput)
	}
	e.noArgs = e.scan(noArgs == nil)
	e.noInput = e.plan.readParent(e.call, e.target, &e.view.Parent) != nil
}

// scan scans the arguments and reports whether they can't be read. sound is true if the JSON itself
// is valid.
func (e *explanation) scan(sound bool) bool {
	if e.target.derived == nil {
		return e.plan.readArgs(e.call, e.target, &e.view.Args) != nil
	}
	facts, err := e.plan.readDerived(e.call, e.target, &e.view.Args)
	if err != nil && sound {
		e.unreadable("arguments", err)
	}
	e.facts = facts

	return err != nil
}

// readable reports whether the document that a gate tests can be read. If it can't, the call is
// denied and the rules of that gate are skipped.
func (e *explanation) readable(gate *place) bool {
	if gate.kind == Delegation {
		return !e.noInput
	}
	return !e.noArgs
}

func (e *explanation) unreadable(document string, err error) {
	e.reasons = append(e.reasons, Reason{
		Source:  FromArguments,
		Code:    UnreadableArguments,
		Detail:  document + ": " + err.Error(),
		outcome: Deny,
	})
}

func (e *explanation) rule(r *rule) {
	reason := Reason{
		Source:      r.source,
		Policy:      r.policy,
		Rule:        r.id,
		Code:        r.code,
		Detail:      r.detail,
		outcome:     Ask,
		File:        r.file,
		Line:        r.at.Start.Line,
		Column:      r.at.Start.Column,
		Description: r.about,
	}
	if r.silent(e.view) {
		return
	}
	if r.tests {
		truth, seen := r.when.Explain(e.view)
		reason.Matchers = matchers(seen)
		switch tested := describe(seen) + e.derivedDetail(seen); {
		case r.code == "":
			reason.Code, reason.Detail = conditionCode(truth), tested
		case truth == condition.Unknown && tested != "": // of a denial
			reason.Detail = r.detail + " (" + tested + ")"
		}
	}
	if e.plan.says(r) == Deny {
		reason.outcome = Deny
	} else {
		if r.code == NotDeclared || r.code == NotAllowed {
			reason.Code = AskedUndeclared
		}
		e.asked = append(e.asked, r)
	}

	e.reasons = append(e.reasons, reason)
}

// denies reports whether an unconditional rule with this code denies.
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

// describe returns one sentence about the matchers that made the condition true or unknown: what
// each tested, and the class of the value.
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
		return b // nothing was seen, or the reason contains it already
	}
	return append(append(append(b, " ("...), o.Seen...), ')')
}

func matchers(seen []condition.Observation) []Matcher {
	out := make([]Matcher, len(seen))
	for i, o := range seen {
		out[i] = Matcher{
			Group:  o.Group,
			Key:    o.Key,
			Test:   o.Test,
			Truth:  o.Truth.String(),
			Why:    o.Why,
			Seen:   o.Seen,
			Line:   o.Range.Start.Line,
			Column: o.Range.Start.Column,

			History: o.Figures,
		}
	}

	return out
}

// decision returns the answer, which is never allow: explain runs only if some rule was not silent.
// If no reason is left, because the caller changed the arguments in the meantime, the decision
// asks.
func (e *explanation) decision() Decision {
	slices.SortStableFunc(e.reasons, func(a, b Reason) int { return cmp.Compare(a.outcome, b.outcome) })
	d := Decision{Outcome: Ask, Reasons: e.reasons, Configuration: e.plan.opt.Configuration}
	for _, r := range e.reasons {
		d.Outcome = min(d.Outcome, r.outcome)
	}
	switch d.Outcome {
	case Deny:
		d.Message = e.reasons[0].Detail
	case Ask:
		text, from := e.message()
		d.Message = text.Text
		d.MissingVariables = text.Missing
		d.MessageFrom = from
		d.Require = e.require()
		d.Binding = e.plan.bind(e.call, e.docs).String()
	}

	return d
}

// require joins the requirements of the rules that ask. If one of them has none, no argument may
// vary under a standing approval. A rule of an agent's file has none unless the owner names arguments in
// Options.Grants.
func (e *explanation) require() *policy.Require {
	var joined *policy.Require
	varies := true
	for _, r := range e.asked {
		if r.require == nil {
			varies = false
			continue
		}
		next := *r.require
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
