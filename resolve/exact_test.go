package resolve_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// TestEveryServerOfOneReferenceCounts checks that servers of child and parent are matched by
// reference, at any position in their lists, and that all of the parent's servers with that
// reference apply.
func TestEveryServerOfOneReferenceCounts(t *testing.T) {
	const other, child = "{alias: other, server_ref: o}", "{alias: mine, server_ref: shared}"
	own := func(servers ...string) string {
		return "action_space: {mcp_servers: [" + strings.Join(servers, ", ") + "]}\n"
	}
	call := &resolve.Call{Kind: resolve.MCPTool, Server: "mine", Tool: "x"}
	for _, parents := range [][]string{
		{"{alias: a, server_ref: shared, approval: true}", "{alias: b, server_ref: shared}", other},
		{other, "{alias: b, server_ref: shared}", "{alias: a, server_ref: shared, approval: true}"},
	} {
		parent := plan(t, resolve.Options{}, own(parents...))
		for _, children := range [][]string{{child, other}, {other, child}} {
			if got := codes(plan(
				t,
				resolve.Options{Parent: parent},
				own(children...),
			).Decide(call)); got != "ask always" {
				t.Errorf("%v under %v: %s", children, parents, got)
			}
		}
	}
}

// TestNamesThatCallersBringUpAreKeptUpToABound checks that the last name that fits is prepared
// once, and the next one every time.
func TestNamesThatCallersBringUpAreKeptUpToABound(t *testing.T) {
	const most, longest = 4096, 256
	p := plan(t, resolve.Options{}, deskTools)
	call := func(name string) *resolve.Call {
		return &resolve.Call{Kind: resolve.MCPTool, Server: "open", Tool: name, Args: []byte(`{"env":"dev"}`)}
	}
	kept := func(name string) bool {
		return testing.AllocsPerRun(
			10,
			func() { p.Decide(call(name)) },
		) < 3+2*raceAllocations // three are the call's
	}
	if kept(strings.Repeat("x", longest+1)) || !kept(strings.Repeat("x", longest)) {
		t.Errorf("names of up to %d bytes are kept", longest)
	}
	for i := range most - 2 {
		p.Decide(call(fmt.Sprint("tool-", i)))
	}
	if !kept("the last") || !kept("tool-0") || kept("one more") {
		t.Errorf("%d names are kept", most)
	}
}

// TestTheStricterLimitCounts checks a stricter limit of the child and of the parent.
func TestTheStricterLimitCounts(t *testing.T) {
	limited := func(n int) string {
		return fmt.Sprintf("constraints: {limits: {max_tool_calls: %d}}\n", n) + deskTools
	}
	for _, pair := range [][2]int{{5, 9}, {9, 5}, {5, 5}} {
		parent := plan(t, resolve.Options{}, limited(pair[0]))
		if _, limits := plan(t, resolve.Options{Parent: parent}, limited(pair[1])).Limits(); *limits.MaxToolCalls != 5 {
			t.Errorf("%v: %d", pair, *limits.MaxToolCalls)
		}
	}
}

// TestWhatIsDeclaredIsNamed checks that a reason lists the declared names if they are few, and none
// if they are many.
func TestWhatIsDeclaredIsNamed(t *testing.T) {
	for _, tt := range []struct {
		names int
		want  string
	}{
		{0, `the agent's file declares no local tool "zzzz"`},
		{1, `the agent's file declares no local tool "zzzz", but tool0`},
		{5, `the agent's file declares no local tool "zzzz", but tool0, tool1, tool2, tool3, tool4`},
		{6, `the agent's file declares no local tool "zzzz"`},
	} {
		var tools []string
		for i := range tt.names {
			tools = append(tools, fmt.Sprintf("{alias: tool%d}", i))
		}
		p := plan(t, resolve.Options{}, "action_space: {local_tools: ["+strings.Join(tools, ", ")+"]}\n")
		if got := p.Decide(tool("zzzz", `{}`)).Message; got != tt.want {
			t.Errorf("%d names: %s", tt.names, got)
		}
	}
}

// byHand is a registry of policies that a program has built: they have
// no digest.
type byHand []*policy.Policy

func (h byHand) Policy(string) (*policy.Policy, bool) { return nil, false }
func (h byHand) Implicit() []*policy.Policy           { return h }
func (h byHand) Err() error                           { return nil }

// TestPoliciesBuiltByHandAllCount checks policies that differ only in their references. A policy
// without requirements leaves none in the decision.
func TestPoliciesBuiltByHandAllCount(t *testing.T) {
	always := func(ref string) *policy.Policy {
		rule := policy.Rule{ID: "r", Approval: &schema.Approval{Form: schema.Always, Condition: &condition.Expr{}}}
		return &policy.Policy{Ref: ref, Applies: policy.Implicit, Rules: []policy.Rule{rule}}
	}
	p, err := resolve.Compile(
		parseAgent(t, "agent.agf.yaml", deskTools),
		byHand{always("a"), always("b")},
		resolve.Options{},
	)
	must.Do(t, err)
	d := p.Decide(tool("free", `{}`))
	if codes(d) != "ask always,always" || d.Require != nil {
		t.Errorf("%s, requires %+v", codes(d), d.Require)
	}
}

// TestEveryPointStandsOnThePage of the semantics, and the page has
// no others.
func TestEveryPointStandsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/design/001-semantics.md")
	must.Do(t, err)
	_, rest, _ := strings.Cut(string(page), "|---|---|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n<!--")
	points := resolve.Points()
	if rows := strings.Count(table, "\n") + 1; rows != len(points) {
		t.Errorf("%d rows, %d points", rows, len(points))
	}
	for _, p := range points {
		if !strings.Contains(table, p.Question+" | "+strings.ReplaceAll(p.Default, "|", `\|`)) {
			t.Errorf("%s is not on the page", p.Name)
		}
	}
}
