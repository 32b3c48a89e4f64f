package posture

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Edit groups the changes that one edit of the files causes, such as another
// bound in a rule of a policy.
type Edit struct {
	Verdict Verdict `json:"verdict"` // of these changes alone
	// EditedRule is nil if the changes are about one target or about agents,
	// and no rule causes them.
	*EditedRule
	// Changes are indexes into Report.Changes, in its order.
	Changes []int `json:"changes"`

	danger int // of the most dangerous change
}

// EditedRule is a rule of a policy, an approval of an agent's file, or
// decisions.yaml, that differs between the two sides.
type EditedRule struct {
	Policy string `json:"policy,omitempty"` // policy_ref
	// Rule is the id of the rule, the place of an approval in the agent's
	// file, or decisions.yaml.
	Rule  string    `json:"rule"`
	Parts []Part    `json:"parts"`
	Old   *Position `json:"old,omitempty"`
	New   *Position `json:"new,omitempty"`

	source resolve.Source
	denies bool // on either side
}

// Part is one difference in an edited rule. Aspect is a field of the rule.
type Part struct {
	Aspect string `json:"aspect"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// The aspects of edited rules, besides those of approvals and the fields of
// policy.Match.
const (
	aspectRule      = "rule" // absent, or what it does
	aspectCondition = "condition"
	aspectConfig    = "decisions.yaml"
)

// name identifies a rule within a report: its texts on both sides, so that
// two policies with the same names stay apart.
func (r *EditedRule) name() string {
	return fmt.Sprintln(r.source, r.Policy, r.Rule, r.Parts, positionText(r.Old), positionText(r.New))
}

func positionText(p *Position) string {
	if p == nil {
		return ""
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// editsOf groups changes by the rules that cause them, the most dangerous
// group first. A change that several rules cause together is in several.
func editsOf(changes []Change) []Edit {
	at := map[string]int{}
	out := []Edit{}
	add := func(key string, rule *EditedRule, i int) {
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, Edit{EditedRule: rule})
		}
		out[n].Changes = append(out[n].Changes, i)
	}
	for i := range changes {
		if len(changes[i].edited) == 0 {
			add(changes[i].subject(), nil, i)
		}
		for _, rule := range changes[i].edited {
			add(rule.name(), rule, i)
		}
	}

	for i := range out {
		e := &out[i]
		var group []Change
		e.danger = changes[e.Changes[0]].Danger()
		for _, n := range e.Changes {
			group = append(group, changes[n])
			e.danger = min(e.danger, changes[n].Danger())
		}
		e.Verdict = verdictOf(group)
	}
	slices.SortStableFunc(out, func(a, b Edit) int { return cmp.Compare(a.danger, b.danger) })

	return out
}

// subject is the same for changes that no rule causes and that people read
// together: those of one target, or the same one of several agents.
func (c *Change) subject() string {
	if c.Kind == "agent" && c.Aspect != agentAspect {
		return strings.Join([]string{"agent", c.Aspect, c.From, c.To, positionText(c.Old), positionText(c.New)}, " ")
	}
	return strings.Join([]string{"target", c.AgentID, c.Kind, c.Server, c.Agent, c.Tool, c.Skill}, " ")
}

// Danger returns the rank of a change for display: loosening changes come first, and among them
// changes of who may answer and of what is no longer asked. Lower is more dangerous.
func (c *Change) Danger() int {
	n := 4 * slices.Index([]Effect{Loosens, Undecided, Tightens, Changes}, c.Effect)
	switch {
	case c.Aspect == aspectPeople || c.Aspect == aspectOwners:
		return n
	case c.Aspect == outcomeAspect && c.To == resolve.Allow.String():
		return n + 1
	case c.Aspect == outcomeAspect:
		return n + 2
	}
	return n + 3
}

// ruleKey identifies a rule on both sides.
type ruleKey struct {
	source       resolve.Source
	layer        int // of the agent whose file has it; 0 for a policy's
	policy, rule string
	repeated     int // how many with these names are before it
}

// gatesByRule maps rules to their gates, for the gates of a side that match the pair's calls. The
// gate for undeclared calls has no rule.
func (p pair) gatesByRule(s side) map[ruleKey]*resolve.Gate {
	out := map[ruleKey]*resolve.Gate{}
	for i := range s.target.Gates {
		g := &s.target.Gates[i]
		key := ruleKey{source: g.Source, policy: g.Policy, rule: g.Rule}
		switch g.Source {
		case resolve.FromPolicy:
		case resolve.FromAgent, resolve.FromServer:
			key.layer = g.Layer
		default:
			continue
		}
		for out[key] != nil {
			key.repeated++
		}
		out[key] = g
	}

	return out
}

// edits lists the rules of the pair's target that differ between the sides.
// If only the readings of decisions.yaml differ, that is the edit.
func (p pair) edits() []*EditedRule {
	old, new := p.gatesByRule(p.old), p.gatesByRule(p.new)
	all := maps.Clone(old)
	maps.Copy(all, new)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b ruleKey) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.rule, b.rule), cmp.Compare(a.source, b.source),
			cmp.Compare(a.layer, b.layer), cmp.Compare(a.repeated, b.repeated))
	})
	var out []*EditedRule
	for _, key := range keys {
		was := ruleOf(p.comparer.old, key, old[key])
		is := ruleOf(p.comparer.new, key, new[key])
		parts := p.parts(was, is)
		if len(parts) == 0 || old[key] != nil && new[key] != nil && !slices.ContainsFunc(parts, decides) {
			continue
		}
		out = append(out, &EditedRule{
			Policy: key.policy,
			Rule:   key.rule,
			Parts:  parts,
			Old:    was.position(),
			New:    is.position(),
			source: key.source,
			denies: was.denies() || is.denies(),
		})
	}
	if c := p.comparer.configEdit; c != nil && (len(out) == 0 || p.old.sem != p.new.sem) {
		out = append(out, c)
	}

	return out
}

// decides reports whether a part can change the decision for a target that the rule matches on both
// sides. A change of the other targets that it matches can't.
func decides(p Part) bool {
	return !slices.Contains([]string{"kinds", "targets", "servers", "server_refs"}, p.Aspect)
}

// demands reports whether a part can change the requirements for calls that the rule asks about on
// both sides.
func demands(p Part) bool {
	meets := []string{aspectCondition, "annotations", "takes", "except", "unknown"}
	return decides(p) && !slices.Contains(meets, p.Aspect)
}

func (r *ruleText) denies() bool { return r != nil && r.gate.Outcome == resolve.Deny }

// causing returns the edits that cause another decision: of rules that are a reason on one side
// only or have other requirements, and of decisions.yaml if it can affect which rules are reasons.
// If there is no such edit, it returns all edits.
func (p pair) causing(old, new resolve.Decision) []*EditedRule {
	config := p.comparer.configEdit
	if (old.Outcome == resolve.Deny) != (new.Outcome == resolve.Deny) {
		return p.causingDenial(config)
	}
	reasons := slices.Concat(old.Reasons, new.Reasons)
	var out []*EditedRule
	for _, e := range p.edited {
		isReason := func(r resolve.Reason) bool {
			return r.Source == e.source && r.Policy == e.Policy && r.Rule == e.Rule
		}
		was, is := slices.ContainsFunc(old.Reasons, isReason), slices.ContainsFunc(new.Reasons, isReason)
		if was != is || was && slices.ContainsFunc(e.Parts, demands) {
			out = append(out, e)
		}
	}
	unknown := slices.ContainsFunc(reasons, func(r resolve.Reason) bool { return r.Code == resolve.ConditionUnknown })
	patterns := p.old.sem.Anchor != p.new.sem.Anchor || p.old.sem.Trim != p.new.sem.Trim
	if slices.Contains(p.edited, config) && (unknown || patterns || len(out) == 0) {
		out = append(out, config)
	}
	if len(out) == 0 {
		return p.edited
	}
	return out
}

// causingDenial returns the edits that decide whether a call is denied: of rules that deny, or of
// decisions.yaml if it sets the outcome of undeclared calls. Otherwise it returns none, because the
// declarations of the agent are the cause.
func (p pair) causingDenial(config *EditedRule) []*EditedRule {
	out := slices.DeleteFunc(slices.Clone(p.edited), func(e *EditedRule) bool { return !e.denies })
	if len(out) > 0 || config == nil {
		return out
	}
	undeclared := func(s side) bool {
		return slices.ContainsFunc(s.target.Gates,
			func(g resolve.Gate) bool { return g.Source == resolve.FromActionSpace })
	}
	lists := slices.ContainsFunc(config.Parts, func(q Part) bool { return q.Aspect == "empty_allow_list" })
	if lists || undeclared(p.old) && undeclared(p.new) {
		out = append(out, config)
	}

	return out
}

// mostApportioned limits the number of edits of a target for which the cause of a change is
// determined. If there are more, all of them are named.
const mostApportioned = 8

// apportioned returns the edits that make gates of a side ask about calls
// that the gates of the other side, silent, don't ask about.
func (p pair) apportioned(s, other side, asking []int, silent []condition.Gate) []*EditedRule {
	if len(p.edited) < 2 || len(p.edited) > mostApportioned {
		return p.edited
	}
	found := func(list, silent []condition.Gate) bool {
		cell, ok := p.cmp.Gap(p.world, list, silent)
		return len(list) > 0 && (!ok || cell != nil)
	}
	// These are the gates as the other side's decisions.yaml reads them. The calls that they ask
	// about beyond the silent gates are caused by the rule, the others by decisions.yaml.
	reread := func(list []int) []condition.Gate {
		gates := s.gates(list)
		for i := range gates {
			gates[i].Sem = other.sem
		}
		return gates
	}
	var out []*EditedRule
	for _, e := range p.edited {
		own := slices.DeleteFunc(slices.Clone(asking), func(i int) bool {
			g := &s.target.Gates[i]
			return g.Source != e.source || g.Policy != e.Policy || g.Rule != e.Rule
		})
		config := e == p.comparer.configEdit
		if !config && found(reread(own), silent) ||
			config && found(s.gates(asking), slices.Concat(silent, reread(asking))) {
			out = append(out, e)
		}
	}

	return out
}

// addEdits adds the edits of an equal change.
func (c *Change) addEdits(other []*EditedRule) {
	for _, e := range other {
		if !slices.Contains(c.edited, e) {
			c.edited = append(slices.Clip(c.edited), e)
		}
	}
}

// editedConfig collects the changes of decisions.yaml in one edit.
func (c *comparer) editedConfig() {
	edit := &EditedRule{Rule: aspectConfig, Old: configPosition(c.old), New: configPosition(c.new)}
	for i := range c.changes {
		one := &c.changes[i]
		ownersChoice := slices.Contains(
			[]string{
				aspectSemantics, aspectTrusted, aspectCase, aspectDerived, aspectIgnored, aspectRegistry,
			}, one.Aspect,
		) || one.Aspect == aspectLimit && (strings.HasPrefix(one.From, limitPermitAge) ||
			strings.HasPrefix(one.From, limitRegistryKeep))
		if !ownersChoice {
			continue
		}
		name, from, labelled := strings.Cut(one.From, ": ")
		_, to, _ := strings.Cut(one.To, ": ")
		if !labelled {
			name, from, to = one.Aspect, one.From, one.To
		}
		edit.Parts = append(edit.Parts, Part{name, from, to})
		one.edited = []*EditedRule{edit}
	}
	if len(edit.Parts) > 0 {
		c.configEdit = edit
	}
}

func configPosition(s Side) *Position {
	if s.Config == "" {
		return nil
	}
	return &Position{File: s.Config}
}

// ruleText is the content of a rule on one side. It is nil if the side lacks the rule.
type ruleText struct {
	match   *policy.Match
	gate    resolve.Gate
	applies bool // the rule meets the target
}

// ruleOf returns a rule of a side: from its gate, or from the policy if the rule does not match the
// target.
func ruleOf(s Side, key ruleKey, gate *resolve.Gate) *ruleText {
	if key.source != resolve.FromPolicy {
		if gate == nil {
			return nil
		}
		return &ruleText{gate: *gate, applies: true}
	}
	for _, pol := range s.Plan.Policies() {
		if pol.Ref != key.policy {
			continue
		}
		for i := range pol.Rules {
			if pol.Rules[i].ID == key.rule {
				return textOfRule(pol, &pol.Rules[i], gate != nil)
			}
		}
	}

	return nil
}

// textOfRule returns a rule as written in its file, without the effect of decisions.yaml.
func textOfRule(pol *policy.Policy, r *policy.Rule, applies bool) *ruleText {
	out := &ruleText{
		match:   &r.Match,
		applies: applies,
		gate: resolve.Gate{
			Source:  resolve.FromPolicy,
			File:    pol.Doc.File,
			Range:   r.Range,
			Outcome: resolve.Ask,
			Require: &r.Require,
		},
	}
	out.gate.When, out.gate.Certain = r.Condition(), r.Unknown == policy.DoubtAsks
	if r.Denies {
		out.gate.Outcome, out.gate.When = resolve.Deny, r.When
	}
	if a := r.Approval; a != nil && a.Template != nil {
		out.gate.Template = a.Template.Text
	}

	return out
}

func (r *ruleText) position() *Position {
	if r == nil {
		return nil
	}
	at := r.gate.Range.Start
	return &Position{File: r.gate.File, Line: at.Line, Column: at.Column}
}

// does describes the effect of a rule.
func (r *ruleText) does() string {
	switch {
	case r == nil:
		return "absent"
	case r.gate.Outcome == resolve.Deny && r.gate.When != nil:
		return "denies " + conditionText(r.gate.When)
	case r.gate.Outcome == resolve.Deny:
		return "denies"
	}
	return "asks for " + conditionText(r.gate.When)
}

// parts lists the differences between two versions of a rule. It returns none if both match the
// target and are equal.
func (p pair) parts(was, is *ruleText) []Part {
	if was == nil && is == nil {
		return nil
	}
	if was == nil || is == nil {
		return []Part{{aspectRule, was.does(), is.does()}}
	}
	var out []Part
	add := func(aspect, from, to string) {
		if from != to {
			out = append(out, Part{aspect, from, to})
		}
	}
	old, new := &was.gate, &is.gate
	if was.match != nil && is.match != nil {
		fields := reflect.TypeFor[policy.Match]()
		a, b := reflect.ValueOf(*was.match), reflect.ValueOf(*is.match)
		for i := range fields.NumField() {
			add(fields.Field(i).Tag.Get("doc"), fieldText(a.Field(i)), fieldText(b.Field(i)))
		}
	}
	if old.Outcome != new.Outcome {
		add(aspectRule, was.does(), is.does())
	} else if whenKey(old.When) != whenKey(new.When) {
		from, to := conditionDifference(old.When, new.When)
		add(aspectCondition, from, to)
	}
	if old.Certain != new.Certain {
		doubt := map[bool]string{true: string(policy.DoubtAsks), false: string(policy.DoubtDenies)}
		add("unknown", doubt[old.Certain], doubt[new.Certain])
	}
	before, after := Protection{Require: valueOf(old.Require)}, Protection{Require: valueOf(new.Require)}
	for _, a := range demandAspects() {
		if a.compare(before, after) != Same {
			add(a.Name, a.show(before), a.show(after))
		}
	}
	if p.templateKey(old.Template) != p.templateKey(new.Template) {
		add(messageAspect, textOf(resolve.Demand{Template: old.Template}),
			textOf(resolve.Demand{Template: new.Template}))
	}

	return out
}
