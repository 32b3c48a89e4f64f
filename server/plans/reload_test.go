package plans_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/server/plans"
	"pgregory.net/rapid"
)

const broken = "a: ["

// reloaded changes files, expects the change to be noticed, and returns the problems.
func reloaded(t *testing.T, p *plans.Plans, dir string, files map[string]string) []plans.Problem {
	t.Helper()
	put(t, dir, files)
	if !p.Reload() {
		t.Fatalf("the change of %v went unnoticed", files)
	}
	return p.Problems()
}

// want compares outcomes, or parts of errors.
func want(t *testing.T, p *plans.Plans, outcomes map[string]string) {
	t.Helper()
	for id, want := range outcomes {
		if got := outcome(p, id); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

// problem expects a single problem that has these words, and checks whether the last good
// copy is kept.
func problem(t *testing.T, all []plans.Problem, part, words string, kept bool) {
	t.Helper()
	if len(all) != 1 || all[0].Part != part || all[0].Kept != kept || !strings.Contains(fmt.Sprint(all[0]), words) {
		t.Errorf("got %+v, want one problem of %s with %q, kept %t", all, part, words, kept)
	}
}

// TestKeepsTheLastGoodAgent checks that an agent whose file breaks keeps its plan, and so
// does every other agent. With DenyBroken it is denied.
func TestKeepsTheLastGoodAgent(t *testing.T) {
	files := map[string]string{"a.agf.yaml": agent("a", ", approval: true"), "b.agf.yaml": agent("b", "")}
	dir := write(t, files)
	p := load(t, plans.Config{Agents: []string{dir}})
	problem(
		t,
		reloaded(t, p, dir, map[string]string{"a.agf.yaml": broken}),
		plans.Agents,
		"its last good copy decides",
		true,
	)
	want(t, p, map[string]string{"a": "ask", "b": "allow"})
	if p.Reload() {
		t.Error("nothing has changed")
	}
	if now := reloaded(t, p, dir, map[string]string{"a.agf.yaml": agent("a", "")}); len(now) > 0 {
		t.Errorf("it is mended: %v", now)
	}
	want(t, p, map[string]string{"a": "allow", "b": "allow"})

	dir = write(t, files)
	p = load(t, plans.Config{Agents: []string{dir}, DenyBroken: true})
	problem(t, reloaded(t, p, dir, map[string]string{"a.agf.yaml": broken}), plans.Agents, "a.agf.yaml", false)
	want(t, p, map[string]string{"a": "unknown agent", "b": "allow"})
}

// TestRemovesWhatIsDeleted checks that the agent of a deleted file is removed, even if it
// was a last good copy, and that a deleted sub-agent breaks the agents that name it.
func TestRemovesWhatIsDeleted(t *testing.T) {
	dir := write(t, map[string]string{
		"a.agf.yaml": agent("a", "", "b.agf.yaml"),
		"b.agf.yaml": agent("b", ""),
		"c.agf.yaml": agent("c", ""),
	})
	p := load(t, plans.Config{Agents: []string{dir, filepath.Join(dir, "c.agf.yaml")}})
	reloaded(t, p, dir, map[string]string{"c.agf.yaml": broken})
	want(t, p, map[string]string{"c": "allow"})
	for _, name := range []string{"b.agf.yaml", "c.agf.yaml"} {
		must(t, os.Remove(filepath.Join(dir, name)))
	}
	for range 2 { // the second load knows only what the first one has kept
		p.Reload()
		want(t, p, map[string]string{"a": "allow", "b": "unknown agent", "c": "unknown agent"})
		put(t, dir, map[string]string{"d.agf.yaml": agent("d", "")})
	}
}

// TestKeptAgentsMeetNewPolicies checks that a stricter policy applies to an agent whose
// file is broken, and a parent's new gate to its child.
func TestKeptAgentsMeetNewPolicies(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", "", "b.agf.yaml"), "b.agf.yaml": agent("b", "")})
	policies := write(t, map[string]string{"p.policy.yaml": strings.Replace(policyText, "[act]", "[other]", 1)})
	p := load(t, plans.Config{Agents: []string{dir}, Policies: []string{policies}})
	reloaded(t, p, dir, map[string]string{"b.agf.yaml": broken})
	reloaded(t, p, dir, map[string]string{"a.agf.yaml": agent("a", ", approval: true", "b.agf.yaml")})
	want(t, p, map[string]string{"a": "ask", "b": "ask"})
	reloaded(t, p, policies, map[string]string{"p.policy.yaml": policyText})
	want(t, p, map[string]string{"a": "deny", "b": "deny"})
}

// TestKeepsTheLastGoodPolicies checks that the previous policies stay in force if policies
// can't be read or all of them are gone, and that DenyBroken denies then. A file that is
// deleted while others remain is removed.
func TestKeepsTheLastGoodPolicies(t *testing.T) {
	deny := map[string]string{
		"p.policy.yaml": policyText,
		"q.policy.yaml": strings.Replace(policyText, "policy_ref: p", "policy_ref: q", 1),
	}
	for _, denyBroken := range []bool{false, true} {
		agents := write(t, map[string]string{"a.agf.yaml": agent("a", ", approval: true")})
		policies := write(t, deny)
		p := load(t, plans.Config{Agents: []string{agents}, Policies: []string{policies}, DenyBroken: denyBroken})
		loose := strings.Replace(policyText, "[act]", "[other]", 1)
		all := reloaded(t, p, policies, map[string]string{"p.policy.yaml": loose,
			"q.policy.yaml": policyText}) // the same ref twice
		if denyBroken {
			want(t, p, map[string]string{"a": "policy_ref \"p\" stands twice"})
		} else {
			problem(t, all, plans.Policies, "stands twice", true)
			want(t, p, map[string]string{"a": "deny"})
		}

		reloaded(t, p, policies, deny)
		must(t, os.RemoveAll(policies))
		p.Reload()
		if denyBroken {
			want(t, p, map[string]string{"a": "error: "})
			continue
		}
		want(t, p, map[string]string{"a": "deny"})
		reloaded(t, p, policies, map[string]string{"p.policy.yaml": loose})
		want(t, p, map[string]string{"a": "ask"})
	}
}

// TestKeepsAgentsOfALostDirectory checks that agents are not removed because their
// directory is gone or can't be listed.
func TestKeepsAgentsOfALostDirectory(t *testing.T) {
	for _, denyBroken := range []bool{false, true} {
		dir := write(t, map[string]string{"agents/a.agf.yaml": agent("a", ""), "more/b.agf.yaml": agent("b", "")})
		agents := filepath.Join(dir, "agents")
		p := load(t, plans.Config{Agents: []string{agents, filepath.Join(dir, "more")}, DenyBroken: denyBroken})
		must(t, os.Rename(agents, agents+"-away"))
		p.Reload()
		problem(t, p.Problems(), plans.Agents, agents, !denyBroken)
		if denyBroken {
			want(t, p, map[string]string{"a": "no such file", "b": "no such file"})
			continue
		}
		want(t, p, map[string]string{"a": "allow", "b": "allow"})
		if err := os.Rename(agents+"-away", agents); err != nil || !p.Reload() || len(p.Problems()) > 0 {
			t.Errorf("%v, %v", err, p.Problems())
		}
	}
}

// TestOneBrokenFileStopsNobodyElse checks that the agents named by a new, broken file go on
// if they were served before. An agent that would be served for the first time waits until
// the file's requirements are known.
func TestOneBrokenFileStopsNobodyElse(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", ""), "b.agf.yaml": agent("b", "")})
	p := load(t, plans.Config{Agents: []string{dir}})
	brokenParent := func(id string, children ...string) string {
		return strings.Replace(agent(id, "", children...), "alias: act", "alias: [act]", 1)
	}
	reloaded(t, p, dir, map[string]string{"new.agf.yaml": brokenParent("new", "a.agf.yaml", "later.agf.yaml"),
		"later.agf.yaml": agent("later", "")})
	want(t, p, map[string]string{
		"a":     "allow",
		"b":     "allow",
		"later": "new.agf.yaml delegates to it and can't be used",
		"new":   "new.agf.yaml",
	})
	reloaded(t, p, dir, map[string]string{"new.agf.yaml": agent("new", ", approval: true", "a.agf.yaml",
		"later.agf.yaml")})
	want(t, p, map[string]string{"a": "ask", "b": "allow", "later": "ask", "new": "ask"})
	// its last good copy still restricts its children
	reloaded(t, p, dir, map[string]string{"new.agf.yaml": brokenParent("new")})
	want(t, p, map[string]string{"a": "ask", "later": "ask", "new": "ask"})
}

// TestNoAgentTakesThePlaceOfAdministration checks that a file with the reserved id is
// refused with its position, and does not affect others.
func TestNoAgentTakesThePlaceOfAdministration(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", ""), "b.agf.yaml": agent("assent-administration", "")})
	p := load(t, plans.Config{Agents: []string{dir}})
	want(t, p, map[string]string{"a": "allow", "assent-administration": "b.agf.yaml:2:16: metadata.id"})
}

// TestAnIDStaysWithItsFile checks that a second file with an id in use is refused, and the
// first one stays.
func TestAnIDStaysWithItsFile(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", ", approval: true"), "b.agf.yaml": agent("b", "")})
	p := load(t, plans.Config{Agents: []string{dir}})
	problem(t, reloaded(t, p, dir, map[string]string{"a2.agf.yaml": agent("a", "")}), plans.Agents,
		"the id a is also that of", false)
	want(t, p, map[string]string{"a": "ask", "b": "allow"})
	// b takes the id too and therefore stays b. A third file with the id b is refused.
	reloaded(t, p, dir, map[string]string{"b.agf.yaml": agent("a", ""), "c.agf.yaml": agent("b", ", approval: true")})
	want(t, p, map[string]string{"a": "ask", "b": "allow"})
	// After the first one is deleted, the others still share the id, so it is ambiguous.
	must(t, os.Remove(filepath.Join(dir, "a.agf.yaml")))
	p.Reload()
	want(t, p, map[string]string{"a": "error: ", "b": "allow"})
}

// TestAnAgentMoves checks that an agent stays if its file is copied and then deleted.
func TestAnAgentMoves(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", ", approval: true"), "b.agf.yaml": agent("b", "")})
	p := load(t, plans.Config{Agents: []string{dir}})
	reloaded(t, p, dir, map[string]string{"moved.agf.yaml": agent("a", "")})
	want(t, p, map[string]string{"a": "ask"})
	must(t, os.Remove(filepath.Join(dir, "a.agf.yaml")))
	if p.Reload(); len(p.Problems()) > 0 {
		t.Errorf("got %v", p.Problems())
	}
	want(t, p, map[string]string{"a": "allow"})
}

// TestNoticesEqualSizeAndTime checks that a change with the same size and time stamp is
// loaded, in agents, sub-agents and policies.
func TestNoticesEqualSizeAndTime(t *testing.T) {
	ask, allow := agent("a", ", approval: true", "b.agent"), agent("a", ",     x-y:  true", "b.agent")
	childAsk, childAllow := agent("b", ", approval: true"), agent("b", ",     x-y:  true")
	dir := write(t, map[string]string{"a.agf.yaml": allow, "b.agent": childAllow})
	other := strings.Replace(policyText, "[act]", "[xyz]", 1)
	policies := write(t, map[string]string{"p.policy.yaml": other})
	at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	same := func(dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if before, err := os.Stat(path); err != nil || before.Size() != int64(len(text)) {
			t.Fatalf("the size changes: %v, %v", before, err)
		}
		put(t, dir, map[string]string{name: text})
		must(t, os.Chtimes(path, at, at))
	}
	same(dir, "a.agf.yaml", allow)
	same(dir, "b.agent", childAllow)
	same(policies, "p.policy.yaml", other)
	p := load(t, plans.Config{Agents: []string{dir}, Policies: []string{policies}})
	want(t, p, map[string]string{"a": "allow", "b": "allow"})
	same(dir, "b.agent", childAsk)
	if !p.Reload() {
		t.Error("the sub-agent went unnoticed")
	}
	want(t, p, map[string]string{"a": "allow", "b": "ask"})
	same(dir, "a.agf.yaml", ask)
	if !p.Reload() {
		t.Error("the agent went unnoticed")
	}
	want(t, p, map[string]string{"a": "ask", "b": "ask"})
	same(policies, "p.policy.yaml", policyText)
	if !p.Reload() {
		t.Error("the policy went unnoticed")
	}
	want(t, p, map[string]string{"a": "deny", "b": "deny"})
}

// TestDigestsAreOfWhatIsInForce checks that digests match the output of sha256sum, and that
// a broken file doesn't change them.
func TestDigestsAreOfWhatIsInForce(t *testing.T) {
	texts := map[string]string{
		"b.agf.yaml":      agent("b", ""),
		"deep/a.agf.yaml": agent("a", ""),
		"notes.txt":       "not read",
	}
	dir := write(t, texts)
	policies := write(t, map[string]string{"p.policy.yaml": policyText})
	p := load(t, plans.Config{Agents: []string{dir}, Policies: []string{policies}})
	digest := func(files map[string]string, names ...string) string {
		var lines strings.Builder
		for _, name := range names {
			fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256([]byte(files[name])), name)
		}
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines.String())))
	}
	check := func(agents, policies string) {
		t.Helper()
		parts := p.Parts()
		if parts[0].Digest != agents || parts[1].Digest != policies || parts[0].Count != 2 || parts[1].Count != 1 {
			t.Errorf("got %+v, want %s and %s", parts, agents, policies)
		}
	}
	first, ofPolicies := digest(texts, "b.agf.yaml", "deep/a.agf.yaml"),
		digest(map[string]string{"p.policy.yaml": policyText}, "p.policy.yaml")
	check(first, ofPolicies)
	reloaded(t, p, dir, map[string]string{"b.agf.yaml": broken})
	reloaded(t, p, policies, map[string]string{"p.policy.yaml": broken})
	check(first, ofPolicies)
	texts["b.agf.yaml"] = agent("b", ", approval: true")
	reloaded(t, p, dir, map[string]string{"b.agf.yaml": texts["b.agf.yaml"]})
	check(digest(texts, "b.agf.yaml", "deep/a.agf.yaml"), ofPolicies)
}

// TestTellsEachChangeOnce checks that a problem is logged once when it begins and once when
// it ends.
func TestTellsEachChangeOnce(t *testing.T) {
	var log bytes.Buffer
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", "")})
	p := load(t, plans.Config{Agents: []string{dir}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	reloaded(t, p, dir, map[string]string{"a.agf.yaml": broken})
	reloaded(t, p, dir, map[string]string{"b.agf.yaml": agent("b", "")})
	p.Reload()
	reloaded(t, p, dir, map[string]string{"a.agf.yaml": agent("a", "")})
	for words, times := range map[string]int{
		"level=WARN":                    1,
		"its last good copy decides":    1,
		"a problem with a file is over": 1,
		"are loaded":                    4,
	} {
		if got := strings.Count(log.String(), words); got != times {
			t.Errorf("%q stands there %d times, want %d:\n%s", words, got, times, log.String())
		}
	}
}

// TestNamesTheFlagForPolicies checks that the error about an agent that names a policy says
// how to give a directory of policies, if there is none.
func TestNamesTheFlagForPolicies(t *testing.T) {
	named := agent("a", "") + "constraints: {governance_policies: [{policy_ref: acme.p, description: D}]}\n"
	p := load(t, plans.Config{Agents: []string{write(t, map[string]string{"a.agf.yaml": named})}})
	want(t, p, map[string]string{"a": "--policies"})
}

// TestNothingOutsideIsServed checks that a reference to a file outside of the directory
// breaks the agent that has it, and that the file is not served.
func TestNothingOutsideIsServed(t *testing.T) {
	dir := write(t, map[string]string{
		"agents/a.agf.yaml": agent("a", "", "../outside.agf.yaml"),
		"outside.agf.yaml":  agent("outside", ""),
		"agents/b.agf.yaml": agent("b", ""),
	})
	p := load(t, plans.Config{Agents: []string{filepath.Join(dir, "agents")}})
	want(t, p, map[string]string{"a": "leads out of the folder", "b": "allow", "outside": "unknown agent"})
	broken := strings.Replace(agent("a", "", "../outside.agf.yaml"), "alias: act", "alias: [act]", 1)
	reloaded(t, p, filepath.Join(dir, "agents"), map[string]string{"a.agf.yaml": broken})
	want(t, p, map[string]string{"outside": "unknown agent"})
}

// TestUnusualFiles checks that something that can't be an agent's file affects only itself,
// and does not block the loader.
func TestUnusualFiles(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", ""), "big.agf.yaml": "x: " + strings.Repeat("y", 4<<20)})
	must(t, os.Mkdir(filepath.Join(dir, "dir.agf.yaml"), 0o700))
	for name, target := range map[string]string{"dangling.agf.yaml": "nowhere", "folder.agf.yaml": dir} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	p := load(t, plans.Config{Agents: []string{dir}})
	want(t, p, map[string]string{"a": "allow", "z": "perhaps because"})
	if len(p.Problems()) != 3 || p.Reload() {
		t.Errorf("got %v", p.Problems())
	}
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
