package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// TestGrantsOfTheConfiguration: what standing approvals leave open is part of the plan, an argument
// that acts can't be ignored, and a parent must have the same entry.
func TestGrantsOfTheConfiguration(t *testing.T) {
	const agent = "action_space: {local_tools: [{alias: sh, approval: true}, {alias: pay, approval: true}]}"
	failure := func(opt resolve.Options) error {
		_, err := resolve.Compile(parseAgent(t, "agent.agf.yaml", agent), nil, opt)
		return err
	}
	derived := []resolve.Derived{{Target: "tool sh", From: "command", As: "shell", Directory: "cwd"}}
	words := policy.Bound{Path: "command", Kind: policy.Words}
	entry := resolve.Standing{Target: "tool sh", Ignored: []string{"note", "about"}, Bounds: []policy.Bound{words}}
	for _, c := range []struct {
		entry resolve.Standing
		says  string
	}{
		{resolve.Standing{Target: "sh"}, "sh"},
		{resolve.Standing{Target: "tool sh", Ignored: []string{""}}, "an argument has a name"},
		{resolve.Standing{Target: "tool sh", Ignored: []string{"Command"}}, "acts: derived reads facts from it"},
		{resolve.Standing{Target: "tool sh", Ignored: []string{"cwd"}}, "acts: derived reads facts from it"},
		{resolve.Standing{Target: "tool sh", Ignored: []string{"a"},
			Bounds: []policy.Bound{{Path: "a", Kind: policy.Words}}},
			"is ignored, so it needs no bound"},
		{resolve.Standing{Target: "tool sh", Bounds: []policy.Bound{{Path: "command", Kind: policy.AnyText}}},
			"would cover what derived reads facts from"},
	} {
		opt := resolve.Options{Derived: derived, Grants: []resolve.Standing{c.entry}}
		if err := failure(opt); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.entry, err)
		}
	}
	if err := failure(resolve.Options{Grants: []resolve.Standing{entry, entry}}); err == nil ||
		!strings.Contains(err.Error(), "stands twice") {
		t.Errorf("twice: %v", err)
	}

	opt := resolve.Options{Derived: derived, Grants: []resolve.Standing{entry}}
	with, without := plan(t, opt, agent), plan(t, resolve.Options{Derived: derived}, agent)
	sh := &resolve.Call{Kind: resolve.Tool, Tool: "sh", Args: resolve.Raw(`{"command":"ls"}`)}
	if got := with.Ignored(sh); !slices.Equal(got, []string{"about", "note"}) {
		t.Errorf("ignored: %q", got)
	}
	if got := with.Decide(sh).Require; got == nil || !slices.Equal(got.Grants.Bounds, []policy.Bound{words}) {
		t.Errorf("the requirement is %+v", got)
	}
	if got := with.Ignored(&resolve.Call{Kind: resolve.Tool, Tool: "pay"}); got != nil || without.Ignored(sh) != nil {
		t.Errorf("ignored: %q, %q", got, without.Ignored(sh))
	}
	if with.Version() == without.Version() {
		t.Error("the versions are equal")
	}
	for parent, ignored := range map[*resolve.Plan]bool{with: true, without: false} {
		child := opt
		child.Parent = parent
		if got := plan(t, child, agent).Ignored(sh); (got != nil) != ignored {
			t.Errorf("below a parent: %q", got)
		}
	}

	now, before := &resolve.Config{Grants: opt.Grants}, &resolve.Config{}
	other := &resolve.Config{Grants: []resolve.Standing{{Target: "tool sh", Ignored: []string{"note", "about"}}}}
	for _, c := range []struct {
		now, before *resolve.Config
		looser      bool
	}{{now, before, true}, {before, now, false}, {now, now, false}, {now, other, true}, {other, now, false}} {
		if got := slices.Contains(c.now.Loosened(c.before), "grants"); got != c.looser {
			t.Errorf("%+v after %+v: %v", c.now.Grants, c.before.Grants, got)
		}
	}
}
