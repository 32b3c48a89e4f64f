package approval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// checkOffer returns an error if the request may not lead to a standing approval with these bounds.
func (r *Request) checkOffer(o *GrantOffer, cfg Config) error {
	g := r.Grants
	switch {
	case g.Forbid:
		return fmt.Errorf("%w: a policy forbids it", ErrGrantRefused)
	case r.Current().Call.ToolDefinition == "" && r.Current().Call.Kind == resolve.MCPTool:
		return fmt.Errorf(
			"%w: the call of an MCP tool came without the digest of the tool's definition, which a grant is pinned to",
			ErrGrantRefused,
		)
	case (o.Session || g.Session) && r.Current().Call.Session == "":
		return fmt.Errorf("%w: it would be for one session, and the call names none", ErrGrantRefused)
	case o.MaxAge < 0 || o.MaxAge > most(g.MaxAge, cfg.MaxGrantAge):
		return &InputError{"grant.max_age", "at most " + most(g.MaxAge, cfg.MaxGrantAge).String()}
	case o.MaxUses < 0 || o.MaxUses > most(g.MaxUses, cfg.MaxUses):
		return &InputError{
			"grant.max_uses",
			"at most " + strconv.Itoa(most(g.MaxUses, cfg.MaxUses)),
		}
	}

	for i, b := range o.Bounds {
		if !g.Varies(b.Path, b.Kind) {
			return &InputError{fmt.Sprintf("grant.bounds[%d]", i), varying(g.Bounds)}
		}
		if !b.number() && r.Arguments().Hides(splitPath(b.Path)...) {
			return &InputError{fmt.Sprintf("grant.bounds[%d]", i), "an argument that is shown to the approver"}
		}
	}

	return r.checkBounds(o.Bounds)
}

// varying describes which arguments may differ under a standing approval.
func varying(bounds []policy.Bound) string {
	if len(bounds) == 0 {
		return "no bounds: not every rule that asks lets an argument vary (require.grants.bounds of a policy, " +
			"grants of decisions.yaml for the agent's own file)"
	}
	words := make([]string, len(bounds))
	for i, b := range bounds {
		words[i] = string(b.Kind) + " for " + strconv.Quote(b.Path)
	}

	return "what all the rules that ask let vary: " + strings.Join(words, ", ")
}

// most returns the smaller of a policy's limit (0: none) and the service's own limit.
func most[T ~int | ~int64](policy, own T) T {
	if policy == 0 {
		return own
	}
	return min(policy, own)
}

// limited returns the offer with its age and uses set to the values that its approver was shown.
// Otherwise, joining two offers could let one offer widen what the other left out. An offer that
// sets only an age has as many uses as the policies and the service allow.
func (o GrantOffer) limited(g policy.Grants, cfg Config) GrantOffer {
	mostUses := most(g.MaxUses, cfg.MaxUses)
	uses := cfg.GrantUses
	if o.MaxAge > 0 {
		uses = mostUses
	}
	o.MaxUses = min(cmp.Or(o.MaxUses, uses), mostUses)
	o.MaxAge = min(cmp.Or(o.MaxAge, cfg.GrantAge), most(g.MaxAge, cfg.MaxGrantAge))
	return o
}

// mostBounds limits the number of bounds in one offer.
const mostBounds = 32

func (r *Request) checkBounds(bounds []Bound) error {
	if len(bounds) > mostBounds {
		return &InputError{"grant.bounds", fmt.Sprintf("at most %d", mostBounds)}
	}
	doc, err := value.Parse(r.Current().Call.Args, value.DefaultLimits())
	if err != nil {
		return fmt.Errorf("%w: the arguments can't be read", ErrGrantRefused)
	}
	for i, b := range bounds {
		v, _ := doc.Lookup(b.Path)
		if expected := b.check(&v); expected != "" {
			return &InputError{fmt.Sprintf("grant.bounds[%d]", i), expected}
		}
	}
	isOpen := func(m value.Member) bool {
		return slices.Contains(r.Current().Ignored, m.Key) ||
			slices.Contains(bounds, Bound{Path: m.Key, Kind: AnyText})
	}
	if i := slices.IndexFunc(bounds, func(b Bound) bool { return b.Kind == AnyText }); i >= 0 &&
		!slices.ContainsFunc(doc.Members, func(m value.Member) bool { return !isOpen(m) }) {
		return &InputError{
			fmt.Sprintf("grant.bounds[%d]", i),
			"an argument that is compared: any_text for all of them would cover every call of the tool",
		}
	}

	return nil
}

// grant returns the standing approval that all counted approvals offer, with the strictest of their
// bounds. It returns nil if one of them offers none.
func (r *Request) grant(id string, counted []string, now time.Time, cfg Config) *Grant {
	var all *GrantOffer
	for _, v := range r.Votes {
		if v.Verdict != Approve || !r.Counts(&v) || !slices.Contains(counted, v.Person) {
			continue
		}
		if v.Grant == nil {
			return nil
		}
		all = all.join(v.Grant.limited(r.Grants, cfg), r.Current().Call.Args)
	}

	if all == nil || r.Grants.Forbid {
		return nil
	}
	call := r.Current().Call
	g := &Grant{
		ID:            id,
		Tenant:        r.Tenant,
		Agent:         r.Agent.ID,
		Target:        call.Target(),
		Call:          call,
		Plan:          r.Current().Plan,
		Bounds:        all.Bounds,
		Ignored:       r.Current().Ignored,
		Examples:      r.Examples(all.Bounds),
		Request:       r.ID,
		By:            counted,
		Created:       now,
		Runtimes:      append([]string{r.Requester.Runtime}, r.Requester.Also...),
		RuntimePeople: append([]string{r.Requester.Person}, r.Requester.AlsoOf...),
		Redact:        r.Redact,
		Rules:         rulesOf(&r.Current().Decision),
		Stages:        r.Stages,
		AnyOf:         r.AnyOf,
		Expires:       now.Add(all.MaxAge),
		MaxUses:       all.MaxUses,
	}
	if all.Session || r.Grants.Session {
		g.Session = call.Session
	}
	r.GrantID = id
	return g
}

// join returns the strictest combination of two offers for the approved arguments: of the bounds,
// those that both offers cover. A nil offer changes nothing.
func (o *GrantOffer) join(p GrantOffer, args resolve.Raw) *GrantOffer {
	if o == nil {
		return &p
	}
	out := GrantOffer{
		Session: o.Session || p.Session,
		MaxAge:  min(o.MaxAge, p.MaxAge),
		MaxUses: min(o.MaxUses, p.MaxUses),
	}
	doc, err := value.Parse(args, value.DefaultLimits())
	if err != nil {
		return &out
	}
	both := func(bounds, others []Bound) {
		for _, b := range bounds {
			approved, _ := doc.Lookup(b.Path)
			if !slices.Contains(out.Bounds, b) && slices.ContainsFunc(others, func(x Bound) bool {
				return b.tighter(x, &approved)
			}) {
				out.Bounds = append(out.Bounds, b)
			}
		}
	}
	both(o.Bounds, p.Bounds)
	both(p.Bounds, o.Bounds)

	return &out
}

// Live reports whether the grant can still be used.
func (g *Grant) Live(now time.Time) bool {
	return g.Revoked == nil && g.standing().Live(now)
}

// standing returns what the grant has in common with standing approvals of other kinds. Rules are
// compared by fulfils, with the people who approved.
func (g *Grant) standing() Standing {
	return Standing{Basis: basisOf(&g.Call, g.Plan), Expires: g.Expires, Uses: g.Uses, MaxUses: g.MaxUses}
}

// basisOf returns what a call under a grant has in common with the approved one. It has each name on its
// own, not the Target: "a/b" of server "c" and "b" of server "c/a" have the same Target.
func basisOf(c *resolve.Call, plan string) []string {
	return []string{plan, string(c.Kind), c.Tool, c.Server, c.Agent, c.Skill, c.Principal, c.ToolDefinition}
}

// Covers reports whether the grant lets a call run. plan is the version of the plan that asks about
// the call, and bounds are the limits that the asking policies set for grants.
func (g *Grant) Covers(c *resolve.Call, plan string, bounds policy.Grants, now time.Time) bool {
	a := &g.Call
	same := g.Revoked == nil && g.standing().Covers(basisOf(c, plan), nil, now) &&
		a.Remote == c.Remote &&
		maps.Equal(a.Annotations, c.Annotations) &&
		(g.Session == "" || g.Session == c.Session)
	return same && g.within(bounds) && sameJSON(a.ParentInput, c.ParentInput) &&
		(g.numbersOnly() || sameDirectory(a.Workspace, c.Workspace)) &&
		narrows(a.Args, c.Args, g.leeway(c.Workspace))
}

// within reports whether the grant is within the policies' limits at the time of use.
func (g *Grant) within(b policy.Grants) bool {
	return !b.Forbid && (!b.Session || g.Session != "") &&
		(b.MaxAge == 0 || g.Expires.Sub(g.Created) <= b.MaxAge) &&
		(b.MaxUses == 0 || g.Uses < b.MaxUses) &&
		!slices.ContainsFunc(g.Bounds, func(x Bound) bool {
			return !b.Varies(x.Path, x.Kind)
		})
}

// fulfils reports whether the grant's approval fulfilled everything that the rules and stages
// require.
func (g *Grant) fulfils(rules Rules, stages []policy.Stage, anyOf []policy.AnyOf) bool {
	return len(g.Rules) > 0 && g.Rules.include(rules) && policy.TighterPeople(
		policy.Require{Stages: g.Stages, AnyOf: g.AnyOf}, policy.Require{Stages: stages, AnyOf: anyOf},
	)
}

func sameJSON(a, b resolve.Raw) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return narrows(a, b, leeway{})
}

// numbersOnly reports whether all bounds are for numbers.
func (g *Grant) numbersOnly() bool {
	return !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return !b.number() })
}

// sameDirectory reports whether two calls are made in the same directory of the same workspace.
// Paths and command lines mean something else in another one.
func sameDirectory(a, b *resolve.Workspace) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Root == b.Root && cmp.Or(a.Directory, a.Root) == cmp.Or(b.Directory, b.Root) && a.Unknown == b.Unknown
}

// leeway lists the differences that are allowed between the approved arguments and those of a call.
type leeway struct {
	bounds    []Bound
	ignored   []string
	workspace *resolve.Workspace // of the call; nil if unknown
}

func (g *Grant) leeway(w *resolve.Workspace) leeway { return leeway{g.Bounds, g.Ignored, w} }

// narrows reports whether the arguments of a call equal the approved ones, except for values within
// a bound, and for ignored arguments, which may be any text, null or missing. No other argument may
// be added or left out. It returns false if the arguments can't be parsed.
func narrows(approved, call resolve.Raw, may leeway) bool {
	a, errA := value.Parse(approved, value.DefaultLimits())
	b, errB := value.Parse(call, value.DefaultLimits())
	if errA != nil || errB != nil {
		return false
	}
	places := make([][]string, len(may.bounds))
	for i, bound := range may.bounds {
		places[i] = splitPath(bound.Path)
		if _, literal := a.Get(bound.Path); literal {
			places[i] = []string{bound.Path}
		}
	}

	d := differ{tell: func(at []string, from, to *value.Value) bool {
		if len(at) == 1 && slices.Contains(may.ignored, at[0]) {
			return isNote(from) && isNote(to)
		}
		for i, bound := range may.bounds {
			if slices.Equal(places[i], at) && bound.covers(from, to, may.workspace) {
				return true
			}
		}

		return false
	}}

	return d.compare(&a, &b)
}

// isNote reports whether a value is a text, null or missing. An ignored argument of any other type
// may have parts that act.
func isNote(v *value.Value) bool {
	return v.Kind == value.String || v.Kind == value.Null || v.Kind == value.Absent
}

// inBound reports whether a number is between zero and the approved one.
func inBound(kind BoundKind, approved, got value.Num) bool {
	zero := value.IntNum(0)
	switch kind {
	case AtMost:
		return got.Cmp(zero) >= 0 && got.Cmp(approved) <= 0
	case AtLeast:
		return got.Cmp(zero) <= 0 && got.Cmp(approved) >= 0
	}

	return false
}

// created returns the event that the standing approval was made by answers to the request.
func (g *Grant) created(r *Request) (Event, error) {
	created := g.event(EventGrantCreated, r.By, map[string]any{
		"by": list(g.By),
		"bounds": facts(g.Bounds, func(b Bound) any {
			return map[string]any{"path": b.Path, "kind": string(b.Kind)}
		}),
		"ignored":   list(g.Ignored),
		"binding":   r.Binding(),
		"principal": g.Call.Principal,
		"rules":     g.Rules.facts(),
		"stages":    stageFacts(g.Stages),
	})
	if len(g.AnyOf) > 0 {
		created.Facts["any_of"] = anyOfFacts(g.AnyOf)
	}
	if !g.numbersOnly() { // the values of bounds repeat arguments, so they are sealed like these
		text, err := json.Marshal(g.Bounds)
		if err != nil {
			return created, fmt.Errorf("write the bounds: %w", err)
		}
		created = created.sealing("bounds", string(text))
	}

	return created, nil
}
