package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

func (h *harness) covers(call *resolve.Call) bool {
	h.t.Helper()
	out := h.open(call)
	if !out.Granted() && out.Outcome != resolve.Ask && out.Denied == "" {
		h.t.Fatalf("got %+v", out)
	}
	return out.Granted()
}

func TestGrantCoversWithinItsBounds(t *testing.T) {
	h := newHarness(t)
	offer := &approval.GrantOffer{
		MaxUses: 20,
		Bounds:  []approval.Bound{{Path: "amount", Kind: approval.AtMost}, {Path: "loss", Kind: approval.AtLeast}},
	}
	_, g := h.approved(tool("spend", `{"amount":100,"loss":-5,"to":"x","list":[1,2]}`), offer)
	if g == nil || g.MaxUses != 20 || !g.Expires.Equal(h.now().Add(time.Hour)) || !slices.Equal(g.By, []string{"cy"}) {
		t.Fatalf("got %+v", g)
	}
	for args, want := range map[string]bool{
		`{"amount":100,"loss":-5,"to":"x","list":[1,2]}`:        true,
		`{"list":[1,2],"to":"x","amount":0,"loss":0}`:           true,
		`{"amount":99.5,"loss":-4,"to":"x","list":[1,2]}`:       true,
		`{"amount":100.01,"loss":-5,"to":"x","list":[1,2]}`:     false,
		`{"amount":-1,"loss":-5,"to":"x","list":[1,2]}`:         false,
		`{"amount":1,"loss":-6,"to":"x","list":[1,2]}`:          false,
		`{"amount":1,"loss":-5,"to":"y","list":[1,2]}`:          false,
		`{"amount":1,"loss":-5,"to":"x","list":[1]}`:            false,
		`{"amount":1,"loss":-5,"to":"x","list":[2,1]}`:          false,
		`{"amount":1,"loss":-5,"to":"x","list":[1,2],"more":1}`: false,
		`{"amount":1,"loss":-5,"to":"x"}`:                       false,
		`{"amount":"1","loss":-5,"to":"x","list":[1,2]}`:        false,
		`{"amount":null,"loss":-5,"to":"x","list":[1,2]}`:       false,
		`{}`:   false,
		`null`: false,
		`{"amount":1,"loss":-5,"to":"x ","list":[1,2]}`: false,
	} {
		if got := h.covers(tool("spend", args)); got != want {
			t.Errorf("%s: covered %v", args, got)
		}
	}

	h.history()
}

// TestGrantIsPinned: a grant is tied to all properties of its call (threats 15 and 16).
func TestGrantIsPinned(t *testing.T) {
	h := newHarness(t)
	call := tool("pay", `{"n":1}`)
	call.ToolDefinition, call.Annotations = "sha256:abc", map[string]bool{"readOnlyHint": false}
	h.approved(call, &approval.GrantOffer{Session: true})
	for name, change := range otherCalls() {
		other := *call
		if change(&other); h.covers(&other) {
			t.Errorf("another %s is covered", name)
		}
	}

	if out := h.open(call, func(in *approval.OpenInput) { in.Asker = approval.Asker{Token: "other"} }); out.Granted() {
		t.Error("another runtime uses the grant")
	}
	if !h.covers(call) {
		t.Error("the call itself is not covered")
	}
	h.plans.set(t, strings.Replace(policyFile, "within: 30m", "within: 29m", 1))
	if h.covers(call) {
		t.Error("covered under other rules")
	}
	h.history()
}

// TestGrantTellsServersApart: "b/c" of server "a" and "c" of server "a/b" are two tools, although
// their targets are spelled the same.
func TestGrantTellsServersApart(t *testing.T) {
	g := approval.Grant{
		Target:  "mcp_tool a/b/c",
		Call:    resolve.Call{Kind: resolve.MCPTool, Server: "a", Tool: "b/c", Args: resolve.Raw("{}")},
		Expires: time.Unix(9, 0),
		MaxUses: 1,
	}
	other := resolve.Call{Kind: resolve.MCPTool, Server: "a/b", Tool: "c", Args: resolve.Raw("{}")}
	if !g.Covers(&g.Call, "", policy.Grants{}, time.Unix(1, 0)) || other.Target() != g.Target ||
		g.Covers(&other, "", policy.Grants{}, time.Unix(1, 0)) {
		t.Error("one server's tool is taken for another's")
	}
}

// TestGrantCoversWithinPolicies: the policies at the time of use apply, too.
func TestGrantCoversWithinPolicies(t *testing.T) {
	start := time.Unix(1, 0)
	g := approval.Grant{
		Call:    resolve.Call{Kind: resolve.Tool, Args: resolve.Raw("{}")},
		Created: start,
		Expires: start.Add(time.Hour),
		MaxUses: 9,
		Uses:    3,
	}
	for _, tt := range []struct {
		bounds policy.Grants
		want   bool
	}{
		{policy.Grants{}, true},
		{policy.Grants{Forbid: true}, false},
		{policy.Grants{Session: true}, false},
		{policy.Grants{MaxUses: 3}, false},
		{policy.Grants{MaxUses: 4}, true},
		{policy.Grants{MaxAge: time.Minute}, false},
		{policy.Grants{MaxAge: time.Hour}, true},
	} {
		if got := g.Covers(&g.Call, "", tt.bounds, start); got != tt.want {
			t.Errorf("%+v: covered %v", tt.bounds, got)
		}
	}
}

func TestGrantOffers(t *testing.T) {
	h := newHarness(t)
	offer := func(call *resolve.Call, o approval.GrantOffer) (*approval.Voted, error) {
		out := h.open(call)
		if out.Request == nil {
			t.Fatalf("got %+v", out)
		}
		return h.tryVote(out.Request, "bob", approval.Approve, func(in *approval.VoteInput) { in.Grant = &o })
	}
	_, err := offer(tool("vault", `{}`), approval.GrantOffer{})
	h.fails(err, approval.ErrGrantRefused)
	unnamed := tool("visit", `{}`)
	unnamed.Session = ""
	_, err = offer(unnamed, approval.GrantOffer{})
	h.fails(err, approval.ErrGrantRefused)
	_, err = offer(&resolve.Call{Kind: resolve.MCPTool, Server: "broker", Tool: "sell"}, approval.GrantOffer{})
	h.fails(err, approval.ErrGrantRefused)
	for field, o := range map[string]approval.GrantOffer{
		"grant.max_age":   {MaxAge: 3 * time.Hour},
		"grant.max_uses":  {MaxUses: 6},
		"grant.bounds[0]": {Bounds: []approval.Bound{{Path: "n", Kind: "below"}}},
		"grant.bounds[1]": {
			Bounds: []approval.Bound{{Path: "n", Kind: approval.AtMost}, {Path: "s", Kind: approval.AtMost}},
		},
		"grant.bounds": {Bounds: slices.Repeat([]approval.Bound{{Path: "n", Kind: approval.AtMost}}, 33)},
	} {
		_, err = offer(tool("trade", `{"n":1,"s":"x"}`), o)
		h.wrongField(err, field)
	}

	_, err = offer(
		tool("trade", `{"n":1,"s":"x"}`),
		approval.GrantOffer{Bounds: []approval.Bound{{Path: "n", Kind: approval.AtLeast}}},
	)
	h.wrongField(err, "grant.bounds[0]") // this would make the bound wider

	// More than the defaults, within the limits.
	out, err := offer(tool("visit", `{}`), approval.GrantOffer{MaxAge: 20 * time.Hour, MaxUses: 500})
	if err != nil || out.Grant.Session != "s1" || out.Grant.MaxUses != 500 ||
		!out.Grant.Expires.Equal(h.now().Add(20*time.Hour)) {
		t.Errorf("got %+v, %v", out, err)
	}
	h.history()
}

// TestDocumentsSpeakPlainly: documents contain durations as text, as in the API and in policies.
func TestDocumentsSpeakPlainly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := approval.Vote{Grant: &approval.GrantOffer{
			Session: rapid.Bool().Draw(t, "session"),
			MaxAge:  time.Duration(rapid.Int64Range(0, int64(9000*time.Hour)).Draw(t, "age")),
			MaxUses: rapid.IntRange(0, 9).Draw(t, "uses"),
			Bounds: rapid.SliceOfN(rapid.Just(approval.Bound{Path: "a", Kind: approval.AtMost}), 1, 2).
				Draw(t, "bounds"),
		}}
		var vote approval.Vote
		if err := json.Unmarshal(asJSON(t, in), &vote); err != nil || !reflect.DeepEqual(vote, in) {
			t.Fatalf("got %+v, %v", vote.Grant, err)
		}
	})
	for in, want := range map[string]any{
		`{"session":true,"max_uses":2,"max_age":"1h30m"}`: approval.GrantOffer{
			Session: true,
			MaxAge:  90 * time.Minute,
			MaxUses: 2,
		},
		`{"max_uses":2}`: approval.GrantOffer{MaxUses: 2},
	} {
		if got := string(asJSON(t, want)); got != in {
			t.Errorf("got %s, want %s", got, in)
		}
	}

	for _, wrong := range []string{`{"max_age":3600}`, `{"max_age":"long"}`, `[]`} {
		if err := json.Unmarshal([]byte(wrong), new(approval.GrantOffer)); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}

func asJSON(t rapid.TB, v any) []byte {
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

func TestGrantTakesAllApprovers(t *testing.T) {
	h := newHarness(t)
	both := func(args string, a, b *approval.GrantOffer) *approval.Grant {
		r := h.asked(tool("trade", args))
		h.vote(r, "ann", approval.Approve, approval.VoteCounted, func(in *approval.VoteInput) { in.Grant = a })
		return h.vote(r, "bob", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
			in.Grant = b
		}).Grant
	}
	if g := both(`{"n":1}`, &approval.GrantOffer{}, nil); g != nil {
		t.Errorf("got %+v", g)
	}
	bound := []approval.Bound{{Path: "n", Kind: approval.AtMost}}
	g := both(`{"n":2}`, &approval.GrantOffer{
		MaxUses: 4,
		Session: true,
		Bounds:  bound,
	}, &approval.GrantOffer{MaxUses: 2, MaxAge: time.Hour})
	if g.MaxUses != 2 || g.Session != "s1" || !g.Expires.Equal(h.now().Add(time.Hour)) || len(g.Bounds) != 0 ||
		!slices.Equal(g.By, []string{"ann", "bob"}) {
		t.Errorf("got %+v", g)
	}
	if g := both(
		`{"n":3}`,
		&approval.GrantOffer{MaxUses: 5, MaxAge: 2 * time.Hour},
		&approval.GrantOffer{MaxUses: 5, MaxAge: 2 * time.Hour},
	); g.MaxUses != 5 || !g.Expires.Equal(h.now().Add(2*time.Hour)) {
		t.Errorf("the policy's bounds don't hold: %+v", g)
	}
	// An offer with only an age has as many uses as the policy allows, but not more than the other
	// approver offered, who was shown one use.
	hour := &approval.GrantOffer{MaxAge: time.Hour}
	if g := both(`{"n":4}`, hour, hour); g.MaxUses != 5 || !g.Expires.Equal(h.now().Add(time.Hour)) {
		t.Errorf("an age alone: %+v", g)
	}
	if g := both(`{"n":5}`, hour, &approval.GrantOffer{Session: true}); g.MaxUses != 1 || g.Session != "s1" {
		t.Errorf("an age and a session: %+v", g)
	}
	long := &approval.GrantOffer{MaxAge: 2 * time.Hour}
	g = both(`{"n":6}`, long, &approval.GrantOffer{MaxUses: 2})
	if g.MaxUses != 2 || !g.Expires.Equal(h.now().Add(time.Hour)) {
		t.Errorf("an age and uses: %+v", g)
	}

	h.history()
}

func TestGrantEnds(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	_, g := h.approved(tool("pay", `{}`), &approval.GrantOffer{MaxAge: time.Hour, MaxUses: 9})
	if !h.covers(tool("pay", `{}`)) {
		t.Fatal("not covered")
	}
	out := h.open(tool("pay", `{}`), key("k"))
	if again := h.open(tool("pay", `{}`), key("k")); !again.Granted() || again.Grant.Uses != out.Grant.Uses {
		t.Errorf("a repetition is a use of its own: %+v", again)
	}
	works(h.s.Revoke(ctx, "t", g.ID, "ann", "enough"))(t)
	if dead, err := h.s.Revoke(ctx, "t", g.ID, "bob", "again"); err != nil || dead.RevokedBy != "ann" {
		t.Errorf("got %+v, %v", dead, err)
	}
	for _, o := range []*approval.Opened{h.open(tool("pay", `{}`)), h.open(tool("pay", `{}`), key("k"))} {
		if o.Granted() {
			t.Error("a revoked grant lets a call run, or its remembered answer does")
		}
	}
	_, aging := h.approved(tool("pay", `{"n":2}`), &approval.GrantOffer{MaxAge: time.Minute})
	h.pass(time.Minute)
	if h.covers(tool("pay", `{"n":2}`)) || aging == nil {
		t.Error("an old grant lets a call run")
	}
	h.history()
}

// TestLateDenyEndsTheGrant: denying a request also ends the standing approval that came from it.
func TestLateDenyEndsTheGrant(t *testing.T) {
	for _, consumed := range []bool{false, true} {
		h := newHarness(t)
		r, g := h.approved(tool("pay", `{}`), &approval.GrantOffer{})
		want := approval.VoteRevoked
		if consumed {
			works(h.consume(r, tool("pay", `{}`), "k"))(t)
			want = approval.VoteConflicting
		}

		h.vote(r, "dee", approval.Deny, want)
		if got, err := h.store.Grant(context.Background(), "t", g.ID); err != nil || got.Revoked == nil ||
			got.RevokedBy != "dee" {
			t.Errorf("got %+v, %v", got, err)
		}
		if h.covers(tool("pay", `{}`)) {
			t.Error("covered after a no")
		}
		h.history()
	}
}

func TestFreezeStopsGrants(t *testing.T) {
	h := newHarness(t)
	h.approved(tool("pay", `{}`), &approval.GrantOffer{})
	h.open(tool("pay", `{}`), key("k"))
	must(t, h.s.Freeze(context.Background(), "t", "", "ann", ""))
	if out := h.open(tool("pay", `{}`), key("k")); out.Denied != "frozen" {
		t.Errorf("got %+v", out)
	}
	h.history()
}

func TestGrantUsesAtOnce(t *testing.T) {
	h := newHarness(t)
	h.approved(tool("pay", `{}`), &approval.GrantOffer{MaxUses: 7})
	granted, wg := make([]bool, 64), sync.WaitGroup{}
	for i := range granted {
		wg.Go(func() {
			out, err := h.tryOpen(tool("pay", `{}`))
			granted[i] = err == nil && out.Granted()
		})
	}

	wg.Wait()
	uses := 0
	for _, g := range granted {
		if g {
			uses++
		}
	}
	if uses != 7 {
		t.Errorf("%d of 7 uses", uses)
	}
	h.history()
}

// TestGrantOnlyNarrows: a covered call differs from the approved one only in numbers with a bound,
// which are between zero and the approved number. The reference implementation compares decoded
// values.
func TestGrantOnlyNarrows(t *testing.T) {
	now := time.Unix(1, 0)
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom(
			[]string{"0", "-0", "1", "1.0", "5", "-5", "5e0", "9007199254740993", "9007199254740992", "0.1", "1e300"},
		)
		leaf := rapid.OneOf(number, rapid.SampledFrom([]string{`""`, `"5"`, "true", "false", "null", `"a"`}))
		object := func(name string) string {
			var b strings.Builder
			for i, k := range []string{"a", "b", "a.b", "c"} {
				if i > 0 {
					b.WriteByte(',')
				}
				switch v := leaf.Draw(t, name+k); rapid.IntRange(0, 3).Draw(t, "shape") {
				case 0:
					fmt.Fprintf(&b, `%q:{"b":%s}`, k, v)
				case 1:
					fmt.Fprintf(&b, `%q:[%s]`, k, v)
				default:
					fmt.Fprintf(&b, `%q:%s`, k, v)
				}
			}

			return "{" + b.String() + "}"
		}
		approved := object("approved")
		call := approved
		if rapid.Bool().Draw(t, "another") {
			call = object("call")
		} else if from := number.Draw(t, "from"); true { // close to the approved number
			call = strings.ReplaceAll(approved, ":"+from, ":"+number.Draw(t, "to"))
		}
		var bounds []approval.Bound
		for _, p := range []string{"a", "a.b", "b.0", "c", "b.b"} {
			if kind := rapid.SampledFrom([]approval.BoundKind{
				"",
				approval.AtMost,
				approval.AtLeast,
			}).Draw(t, p); kind != "" {
				bounds = append(bounds, approval.Bound{Path: p, Kind: kind})
			}
		}

		g := approval.Grant{
			Call:    resolve.Call{Kind: resolve.Tool, Tool: "x", Args: resolve.Raw(approved)},
			Bounds:  bounds,
			Expires: now.Add(1),
			MaxUses: 1,
		}
		got := g.Covers(&resolve.Call{
			Kind: resolve.Tool,
			Tool: "x",
			Args: resolve.Raw(call),
		}, "", allowing(bounds), now)
		_, err := value.Parse([]byte(call), value.DefaultLimits())
		want := err == nil && mayBe(t, approved, call, bounds)
		if got != want {
			t.Fatalf("covered %v, want %v\napproved %s\ncall     %s\nbounds %v", got, want, approved, call, bounds)
		}

		seen[got]++
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("one-sided: %v", seen)
	}
}

// mayBe flattens both documents and compares them path by path.
func mayBe(t *rapid.T, approved, call string, bounds []approval.Bound) bool {
	a, b := flat(t, approved), flat(t, call)
	if len(a) != len(b) {
		return false
	}
	doc := parsed(t, approved)
	zero := value.IntNum(0)
	for place, v := range a {
		w, ok := b[place]
		if !ok || v.Kind != w.Kind {
			return false
		}
		if string(v.AppendCanonical(nil)) == string(w.AppendCanonical(nil)) {
			continue
		}
		fits := func(bound approval.Bound) bool {
			path := strings.Split(bound.Path, ".")
			if _, literal := doc.Get(bound.Path); literal {
				path = []string{bound.Path}
			}
			if strings.Join(path, "\x00") != place || v.Kind != value.Number {
				return false
			}
			if bound.Kind == approval.AtMost {
				return w.Num.Cmp(zero) >= 0 && w.Num.Cmp(v.Num) <= 0
			}
			return w.Num.Cmp(zero) <= 0 && w.Num.Cmp(v.Num) >= 0
		}
		if !slices.ContainsFunc(bounds, fits) {
			return false
		}
	}

	return true
}

func parsed(t *rapid.T, text string) value.Value {
	v, err := value.Parse([]byte(text), value.DefaultLimits())
	if err != nil {
		t.Fatal(err, text)
	}
	return v
}

// flat returns the values of a document by path, and for containers only their kind.
func flat(t *rapid.T, text string) map[string]value.Value {
	out := map[string]value.Value{}
	var walk func(at []string, v value.Value)
	walk = func(at []string, v value.Value) {
		here := strings.Join(at, "\x00")
		switch v.Kind {
		case value.Object:
			out[here] = value.Value{Kind: value.Object}
			for _, m := range v.Members {
				walk(append(slices.Clone(at), m.Key), m.Value)
			}
		case value.Array:
			out[here] = value.Value{Kind: value.Array}
			for i, item := range v.Items {
				walk(append(slices.Clone(at), fmt.Sprint(i)), item)
			}
		default:
			out[here] = v
		}
	}
	walk(nil, parsed(t, text))
	return out
}

// TestAGrantCoversNoCallThatAnotherRuleAsksAbout: a standing approval does not cover a call for
// which a rule asks that had not asked when it was given.
func TestAGrantCoversNoCallThatAnotherRuleAsksAbout(t *testing.T) {
	h := newHarness(t)
	offer := &approval.GrantOffer{MaxUses: 9, Bounds: []approval.Bound{{Path: "days", Kind: approval.AtMost}}}
	_, g := h.approved(tool("purge", `{"days":365}`), offer)
	if g == nil || len(g.Rules) != 1 || g.Rules[0].Rule != "purge" {
		t.Fatalf("got %+v", g)
	}
	if !h.covers(tool("purge", `{"days":30}`)) {
		t.Error("a call that the same rule alone asks about is not covered")
	}
	out := h.open(tool("purge", `{"days":1}`))
	if out.Outcome != resolve.Ask || out.Request.Stages[0].Group != "risk" || out.Request.Stages[0].People != 2 {
		t.Errorf("two of risk are not asked: %+v", out)
	}
	h.history()
}

// TestAGrantCoversNoCallOfItsApprovers: a standing approval never covers calls of the people who
// approved it.
func TestAGrantCoversNoCallOfItsApprovers(t *testing.T) {
	h := newHarness(t)
	h.approved(tool("pay", `{}`), &approval.GrantOffer{MaxUses: 9})
	if !h.covers(tool("pay", `{}`)) {
		t.Fatal("not covered")
	}
	h.people.set(func(d *directory) { d.owners = []string{"cy"} }) // cy, who approved it, owns the agent now
	if h.covers(tool("pay", `{}`)) {
		t.Error("an owner of the agent stands behind its call")
	}
	h.history()
}

// TestTheAuditorFindsAGrantThatOutranARule: the auditor recomputes which rules and stages a
// standing approval fulfilled.
func TestTheAuditorFindsAGrantThatOutranARule(t *testing.T) {
	h := newHarness(t)
	offer := &approval.GrantOffer{MaxUses: 9, Bounds: []approval.Bound{{Path: "days", Kind: approval.AtMost}}}
	h.approved(tool("purge", `{"days":365}`), offer)
	h.covers(tool("purge", `{"days":30}`))
	h.history()
	entries := h.leaves()
	used := entries[len(entries)-1]

	for name, change := range map[string]func(map[string]any){
		"another rule": func(f map[string]any) {
			f["rules"] = append(f["rules"].([]any), map[string]any{"source": "policy", "policy": "p", "rule": "new"})
		},
		"more people": func(f map[string]any) {
			f["stages"] = []any{map[string]any{"group": "support", "people": 2}}
		},
		"other people": func(f map[string]any) {
			f["stages"] = []any{map[string]any{"group": "risk", "people": 1}}
		},
		"an approver's call": func(f map[string]any) { f["person"] = "cy" },
		"an approver's tool": func(f map[string]any) { f["owners"] = []any{"cy"} },
	} {
		before := maps.Clone(facts(used))
		change(facts(used))
		if a := audit(t, entries); len(a.Problems()) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
		used["facts"] = before
	}

	if a := audit(t, entries); len(a.Problems()) != 0 {
		t.Errorf("what happened is refused: %v", a.Problems())
	}
}

// TestBoundsAreWhatTheRulesName: an argument may only vary if every rule that asks allows it.
func TestBoundsAreWhatTheRulesName(t *testing.T) {
	h := newHarness(t)
	for name, offered := range map[string][]approval.Bound{
		"an argument that no rule names": {{Path: "amount", Kind: approval.AtMost}},
		"the other direction":            {{Path: "days", Kind: approval.AtLeast}},
	} {
		r := h.asked(tool("purge", `{"days":`+strconv.Itoa(100+len(name))+`,"amount":1}`))
		_, err := h.tryVote(r, "cy", approval.Approve, func(in *approval.VoteInput) {
			in.Grant = &approval.GrantOffer{MaxUses: 2, Bounds: offered}
		})
		h.wrongField(err, "grant.bounds[0]")
	}

	agents := h.asked(tool("pay", `{"days":1}`)) // the agent's own file asks, which can't allow variations
	_, err := h.tryVote(agents, "cy", approval.Approve, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 2, Bounds: []approval.Bound{{Path: "days", Kind: approval.AtMost}}}
	})
	h.wrongField(err, "grant.bounds[0]")
	h.history()
}

// TestAGrantIsForOneUseUnlessMoreIsSaid: a standing approval is for one use within an hour unless
// its approver offers more.
func TestAGrantIsForOneUseUnlessMoreIsSaid(t *testing.T) {
	h := newHarness(t)
	_, g := h.approved(tool("pay", `{}`), &approval.GrantOffer{Session: true})
	if g.MaxUses != 1 || !g.Expires.Equal(h.now().Add(time.Hour)) {
		t.Errorf("got %+v", g)
	}
	h.history()
}
