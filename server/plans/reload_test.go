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

// reloaded changes files, wants that noticed, and returns what is wrong now.
func reloaded(t *testing.T, p *plans.Plans, dir string, files map[string]string) []plans.Problem {
	t.Helper()
	put(t, dir, files)
	if !p.Reload() {
		t.Fatalf("the change of %v went unnoticed", files)
	}
	return p.Problems()
}

// want holds agents to outcomes, or to parts of an error.
func want(t *testing.T, p *plans.Plans, outcomes map[string]string) {
	t.Helper()
	for id, want := range outcomes {
		if got := outcome(p, id); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

// problem wants one problem, with these words, and that what was in
// force before goes on, or doesn't.
func problem(t *testing.T, all []plans.Problem, part, words string, kept bool) {
	t.Helper()
	if len(all) != 1 || all[0].Part != part || all[0].Kept != kept ||
		!strings.Contains(fmt.Sprint(all[0]), words) {
		t.Errorf("got %+v, want one problem of %s with %q, kept %t", all, part, words, kept)
	}
}

// TestKeepsTheLastGoodAgent: an agent whose file breaks goes
// on as it was, and so does every other; with DenyBroken it is denied.
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

// TestRemovesWhatIsDeleted: a deleted file's agent is gone,
// kept or not, and a sub-agent that is gone breaks whoever names it.
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
	for range 2 { // the second load knows only what the first has kept
		p.Reload()
		want(t, p, map[string]string{"a": "allow", "b": "unknown agent", "c": "unknown agent"})
		put(t, dir, map[string]string{"d.agf.yaml": agent("d", "")})
	}
}

// TestKeptAgentsMeetNewPolicies: a tighter policy holds for an
// agent whose file is broken, and a parent's new gate for its child.
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

// TestKeepsTheLastGoodPolicies: policies that can't be read,
// and policies that are all gone, leave those in force that were; with
// DenyBroken nothing is decided. What is deleted beside others is
// deleted.
func TestKeepsTheLastGoodPolicies(t *testing.T) {
	deny := map[string]string{
		"p.policy.yaml": policyText,
		"q.policy.yaml": strings.Replace(policyText, "policy_ref: p", "policy_ref: q", 1),
	}
	for _, denyBroken := range []bool{false, true} {
		agents := write(t, map[string]string{"a.agf.yaml": agent("a", ", approval: true")})
		policies := write(t, deny)
		p := load(t, plans.Config{
			Agents:     []string{agents},
			Policies:   []string{policies},
			DenyBroken: denyBroken,
		})
		loose := strings.Replace(policyText, "[act]", "[other]", 1)
		all := reloaded(t, p, policies, map[string]string{"p.policy.yaml": loose,
			"q.policy.yaml": policyText}) // one ref twice
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

// TestKeepsAgentsOfALostDirectory: a directory that is gone or
// can't be listed is no deletion of its agents.
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

// TestOneBrokenFileStopsNobodyElse: what a new, broken file
// names goes on if it was served; what is served for the first time
// waits until its demands are known.
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
	// its last good copy still holds its children
	reloaded(t, p, dir, map[string]string{"new.agf.yaml": brokenParent("new")})
	want(t, p, map[string]string{"a": "ask", "later": "ask", "new": "ask"})
}

// TestNoAgentTakesThePlaceOfAdministration: a file with the reserved
// id is refused with its place, and stops nobody else.
func TestNoAgentTakesThePlaceOfAdministration(t *testing.T) {
	dir := write(
		t,
		map[string]string{"a.agf.yaml": agent("a", ""), "b.agf.yaml": agent("assent-administration", "")},
	)
	p := load(t, plans.Config{Agents: []string{dir}})
	want(t, p, map[string]string{"a": "allow", "assent-administration": "b.agf.yaml:2:16: metadata.id"})
}

// TestAnIDStaysWithItsFile: a second file with an id that is
// served is refused, and the first goes on.
func TestAnIDStaysWithItsFile(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", ", approval: true"), "b.agf.yaml": agent("b", "")})
	p := load(t, plans.Config{Agents: []string{dir}})
	problem(t, reloaded(t, p, dir, map[string]string{"a2.agf.yaml": agent("a", "")}), plans.Agents,
		"the id a is also that of", false)
	want(t, p, map[string]string{"a": "ask", "b": "allow"})
	// b takes the id too: it stays b; and a third that wants to be b is
	// refused.
	reloaded(
		t,
		p,
		dir,
		map[string]string{"b.agf.yaml": agent("a", ""), "c.agf.yaml": agent("b", ", approval: true")},
	)
	want(t, p, map[string]string{"a": "ask", "b": "allow"})
	// Once the first is gone, the others still share the id: nobody
	// could tell which is meant.
	must(t, os.Remove(filepath.Join(dir, "a.agf.yaml")))
	p.Reload()
	want(t, p, map[string]string{"a": "error: ", "b": "allow"})
}

// TestAnAgentMoves: a file that is copied and then deleted
// hands its agent over.
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

// TestNoticesEqualSizeAndTime: a file that changes within the same
// size and time stamp is loaded: agents, sub-agents and policies.
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

// TestDigestsAreOfWhatIsInForce: they are what sha256sum makes of
// the files, and a broken file doesn't change them.
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
		if parts[0].Digest != agents || parts[1].Digest != policies || parts[0].Count != 2 ||
			parts[1].Count != 1 {
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

// TestTellsEachChangeOnce: the log has a problem once when it
// begins and once when it ends.
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

// TestNamesTheFlagForPolicies: an agent that names a policy,
// where no directory of policies is given, says how to give one.
func TestNamesTheFlagForPolicies(t *testing.T) {
	named := agent("a", "") + "constraints: {governance_policies: [{policy_ref: acme.p, description: D}]}\n"
	p := load(t, plans.Config{Agents: []string{write(t, map[string]string{"a.agf.yaml": named})}})
	want(t, p, map[string]string{"a": "--policies"})
}

// TestNothingOutsideIsServed: a mention of a file outside of the
// directory breaks whoever makes it, and serves nobody.
func TestNothingOutsideIsServed(t *testing.T) {
	dir := write(t, map[string]string{
		"agents/a.agf.yaml": agent("a", "", "../outside.agf.yaml"),
		"outside.agf.yaml":  agent("outside", ""),
		"agents/b.agf.yaml": agent("b", ""),
	})
	p := load(t, plans.Config{Agents: []string{filepath.Join(dir, "agents")}})
	want(t, p, map[string]string{
		"a":       "leads out of the folder",
		"b":       "allow",
		"outside": "unknown agent",
	})
	broken := strings.Replace(agent("a", "", "../outside.agf.yaml"), "alias: act", "alias: [act]", 1)
	reloaded(t, p, filepath.Join(dir, "agents"), map[string]string{"a.agf.yaml": broken})
	want(t, p, map[string]string{"outside": "unknown agent"})
}

// TestUnusualFiles: what is no file of an agent at all stops itself
// only, and is not waited for.
func TestUnusualFiles(t *testing.T) {
	dir := write(
		t,
		map[string]string{"a.agf.yaml": agent("a", ""), "big.agf.yaml": "x: " + strings.Repeat("y", 4<<20)},
	)
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
