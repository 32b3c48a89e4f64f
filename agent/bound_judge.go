package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// action is the way in which the loop handles a call.
type action uint8

const (
	runNow action = iota
	mustAsk
	callerRuns
	refuse
)

// judgement is the decision about a call, with its grounds.
type judgement struct {
	action  action
	text    string // result of a refused call
	verdict hold.Verdict
	ground  ground
	after   action // what follows approval of a call that must be asked about: runNow or callerRuns

	repeated bool // refused because a person has rejected the same call before
}

func (j *judgement) refuse(text string) { j.action, j.text = refuse, text }

// marker is the name under which RequireApproval appears among the rules of a ground.
const marker = "marker"

// judge decides what to do with a call. If it can't decide, it refuses the call or requires
// approval.
func (r *run) judge(ctx context.Context, call *content.FunctionCall, t Tool) judgement {
	marked := r.marked(call.Name)
	if err := r.readable(call, r.cfg.Decider != nil || marked); err != nil {
		return judgement{action: refuse, text: "Error: " + err.Error()}
	}
	var j judgement
	if r.cfg.Decider != nil {
		v, err := r.cfg.Decider.Decide(ctx, t, call)
		if err != nil {
			return judgement{action: refuse, text: textUndecided}
		}
		j.verdict = v
		j.ground.take(v)
	}

	if marked {
		j.ground.Rules = append(j.ground.Rules, marker)
	}
	switch {
	case r.cfg.Decider != nil && j.verdict.Outcome == resolve.Deny:
		j.refuse(denialText(j.verdict))
	case t == nil:
		j.refuse(notFoundText(call.Name))
	case !marked && (r.cfg.Decider == nil || j.verdict.Outcome == resolve.Allow):
		j.action = runs(t)
	case r.cfg.Holder != nil && (r.cfg.Decider == nil || j.verdict.Outcome == resolve.Allow):
		j.refuse(textMarked)
	case r.cfg.Holder == nil && j.ground.needsOthers():
		j.refuse(j.ground.cannotAsk())
	default:
		j.action, j.after = mustAsk, runs(t)
		j.ground.Definition = DefinitionDigest(t)
		// don't ask a person about a call that the function would reject
		if err := r.schemas.check(call, t); err != nil {
			j.refuse("Error: " + err.Error())
		}
	}

	return j
}

// marked reports whether any tool with the name is marked, even if another tool of that name
// would run.
func (r *run) marked(name string) bool {
	is := func(t Tool) bool { return nameOf(t) == name && NeedsApproval(t) }
	return slices.ContainsFunc(r.opt.Tools, is) || slices.ContainsFunc(r.cfg.Tools, is)
}

func runs(t Tool) action {
	if _, ok := t.(Function); ok {
		return runNow
	}
	return callerRuns
}

// take copies the basis of a verdict into the ground.
func (g *ground) take(v hold.Verdict) {
	g.Binding, g.Require = v.Binding, v.Require
	for _, reason := range v.Reasons {
		g.Rules = append(
			g.Rules,
			fmt.Sprintf("%s/%s/%s/%s", reason.Source, reason.Policy, reason.Rule, reason.Code),
		)
	}
}

// covers reports whether an approval on ground g also approves a call on the other ground: the
// other has no rule that g doesn't have, and requires nothing more.
func (g ground) covers(other ground) bool {
	for _, rule := range other.Rules {
		if !slices.Contains(g.Rules, rule) {
			return false
		}
	}
	return policy.Tighter(g.required(), other.required())
}

func (g ground) required() policy.Require {
	if g.Require == nil {
		return policy.Require{}
	}
	return *g.Require
}

// needsOthers reports whether policies require people of groups, or a reason, which the loop can't
// ask for.
func (g ground) needsOthers() bool {
	q := g.required()
	return len(q.Stages)+len(q.AnyOf) > 0 || !q.Reason.IsZero()
}

// cannotAsk returns the text that the model gets if policies require people that can't be asked
// here.
func (g ground) cannotAsk() string {
	return "Tool call not run: it needs the approval of " + g.people() + ", and nothing here can ask them."
}

// people lists the groups that must approve, with the number of people of each.
func (g ground) people() string {
	var all []string
	for _, s := range g.required().Stages {
		all = append(all, fmt.Sprintf("%d of %s", s.People, s.Group))
	}
	for _, alternatives := range g.required().AnyOf {
		all = append(all, alternatives.String())
	}
	if reason := g.required().Reason; !reason.IsZero() {
		all = append(all, "people who give "+reason.String())
	}
	return strings.Join(all, " and ")
}

// same reports whether the other ground is unchanged, so that an approval is still valid.
func (g ground) same(other ground) bool {
	return g.Binding == other.Binding && g.Definition == other.Definition && g.covers(other)
}

func denialText(v hold.Verdict) string {
	var details []string
	for _, reason := range v.Reasons {
		details = append(details, reason.Detail)
	}
	return "Tool call denied: " + strings.Join(details, "; ") + "."
}

// ask makes an approval request for a call and passes it to the holder if there is one.
func (r *run) ask(ctx context.Context, it *item, j judgement) error {
	id, err := r.requestID(it.Call.ID())
	if err != nil {
		return err
	}
	q := &content.ToolApprovalRequest{RequestID: id, Call: content.CloneCall(it.Call)}
	q.Note.Message = j.verdict.Message
	a := &ask{Request: q, Since: r.now()}
	if within := j.verdict.Within(); within > 0 {
		a.Expires = a.Since.Add(within)
		q.Note.Expires = a.Expires
	}
	if err := r.says(ctx, it, q); err != nil {
		text := "Tool call not run: nobody can be asked about it: " + err.Error() + "."
		it.settle(text)
		return r.record(ctx, it, Event{Type: "denied", Detail: text})
	}
	held, err := r.hold(ctx, a, q, j.verdict)
	if err != nil {
		return err
	}
	if err := r.record(ctx, it, Event{Type: "requested", RequestID: id}); err != nil {
		return err
	}
	r.debug("Function '%s' requires approval", it.Call.ToolName())
	it.Stage = open
	it.Asks = []*ask{a}
	it.Ground = j.ground
	it.Key = ""
	if held == nil {
		return nil
	}
	return r.takeHeld(ctx, it, a, *held)
}

// hold passes a request to the holder. It returns nil without a holder.
func (r *run) hold(
	ctx context.Context,
	a *ask,
	q *content.ToolApprovalRequest,
	v hold.Verdict,
) (*hold.Held, error) {
	if r.cfg.Holder == nil {
		return nil, nil
	}
	v.Context = q.Note.Context
	held, err := r.cfg.Holder.Open(ctx, r.t.ID+"/"+q.RequestID, v)
	if err != nil {
		return nil, fmt.Errorf("give a request to its holder: %w", err)
	}
	a.Ref, q.Note.Where = held.Ref, held.Where
	if !held.Expires.IsZero() {
		q.Note.Expires = held.Expires
	}
	return &held, nil
}

// requestID makes a request id that this thread has not used yet.
func (r *run) requestID(callID string) (string, error) {
	id, err := r.newID(callID)
	if err != nil {
		return "", fmt.Errorf("make a request id: %w", err)
	}
	unique := id
	for n := 2; r.t.knows(unique) || slices.Contains(r.made, unique); n++ {
		unique = fmt.Sprintf("%s.%d", id, n)
	}
	r.made = append(r.made, unique)
	return unique, nil
}

func (t *Thread) knows(id string) bool {
	if t.ended(id) != "" {
		return true
	}
	for it := range t.items() {
		if slices.ContainsFunc(it.Asks, func(a *ask) bool { return a.Request.InputRequestID() == id }) {
			return true
		}
	}

	return false
}
