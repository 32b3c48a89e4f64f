package resolve_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// facts returns options that derive facts of the tool sh under a name.
func facts(as string, listed ...string) []resolve.Derived {
	return []resolve.Derived{{Target: "tool sh", From: "command", As: as, Listed: listed}}
}

// shellAgent asks about what is not listed, about files that are
// written, and about git push.
const shellAgent = `action_space:
  local_tools:
    - alias: sh
      approval:
        condition:
          - args_match: {shell.unlisted: {ne: ""}}
          - args_match: {shell.writes: {ne: ""}}
          - args_match: {shell.commands: {pattern: '(?m)^git push( |$)'}}
    - {alias: free}
`

// shellCall calls the tool with a line.
func shellCall(t testing.TB, line string) *resolve.Call {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": line})
	must.Do(t, err)

	return &resolve.Call{Kind: resolve.Tool, Tool: "sh", Args: args}
}

func shellPlan(t testing.TB) *resolve.Plan {
	t.Helper()
	return plan(t, resolve.Options{Derived: facts("shell", "ls", "git status", "git push", "cat")}, shellAgent)
}

// TestConditionsReadDerivedFacts checks that a listed line runs without approval. A line that is
// unlisted, writes or is unknown asks, and the reason says so.
func TestConditionsReadDerivedFacts(t *testing.T) {
	p := shellPlan(t)
	for line, want := range map[string]string{
		"ls -la":            "allow",
		"ls | cat":          "allow",
		"git status":        "allow",
		"r''m -rf x":        "ask: shell.unlisted ne \"\" is true (string of 2 characters)",
		"ls > x":            "ask: shell.writes ne \"\" is true (string of 1 character)",
		"git push --force":  "ask: shell.commands pattern \"(?m)^git push( |$)\" is true (string of 16 characters)",
		"$X -la":            "; of command: a program's name is no plain text: $X (at 1:1 of the line)",
		"ls; eval \"rm x\"": "; of command: it has the shell read or run something later: eval \"rm x\" (at 1:5 of the line)",
	} {
		d := p.Decide(shellCall(t, line))
		got := d.Outcome.String()
		for _, r := range d.Reasons {
			got += ": " + r.Detail
		}
		if !strings.Contains(got, want) || want == "allow" && got != want {
			t.Errorf("%s: %s\nwant %s", line, got, want)
		}
	}
}

// TestReasonsNameFactsOfTheirOwn checks that the reason of a rule about something else doesn't
// mention the line.
func TestReasonsNameFactsOfTheirOwn(t *testing.T) {
	p := plan(t, resolve.Options{Derived: facts("shell")}, shellAgent, `policy_ref: acme.depth
applies: implicit
rules:
  - {id: deep, match: {kinds: [tool]}, approval: {condition: {args_match: {depth: {gt: 3}}}}}
`)
	reasons := p.Decide(shellCall(t, "$X")).Reasons
	if len(reasons) != 2 {
		t.Errorf("%+v", reasons)
	}
	for _, r := range reasons {
		if told := strings.Contains(r.Detail, "of command:"); told != (r.Source == resolve.FromAgent) {
			t.Errorf("%+v", r)
		}
	}
}

// TestUnreadableArgumentsAreToldOnce checks plans with and without facts.
func TestUnreadableArgumentsAreToldOnce(t *testing.T) {
	call := &resolve.Call{Kind: resolve.Tool, Tool: "sh", Args: resolve.Raw(`{"command":"ls","command":"rm"}`)}
	if d := shellPlan(t).Decide(call); d.Outcome != resolve.Deny || len(d.Reasons) != 1 {
		t.Errorf("%+v", d)
	}
}

// TestACallCantBringFacts checks that a call with an argument of the facts' name, in any case, is
// denied before a condition reads it.
func TestACallCantBringFacts(t *testing.T) {
	p := shellPlan(t)
	for _, args := range []string{
		`{"command":"rm x","shell":{"unlisted":"","writes":"","commands":""}}`,
		`{"command":"rm x","Shell":{}}`,
		`{"shell":1}`,
		`{"command":"eval evil","shell.unlisted":"","shell.writes":"","shell.commands":""}`,
		`{"command":"ls","Shell.x":1}`,
		`{"command":"ls","shell.":1}`,
	} {
		call := &resolve.Call{Kind: resolve.Tool, Tool: "sh", Args: resolve.Raw(args)}
		d := p.Decide(call)
		if d.Outcome != resolve.Deny || d.Reasons[0].Code != resolve.UnreadableArguments ||
			!strings.Contains(d.Message, "is derived by the runtime from command") {
			t.Errorf("%s: %+v", args, d)
		}
		call.Args, call.Values = nil, decode(t, []byte(args))
		if got := p.Decide(call); got.Outcome != resolve.Deny {
			t.Errorf("as values %s: %+v", args, got)
		}
	}

	free := &resolve.Call{Kind: resolve.Tool, Tool: "free", Args: resolve.Raw(`{"shell":1}`)}
	if d := p.Decide(free); d.Outcome != resolve.Allow {
		t.Errorf("a tool without facts: %+v", d)
	}
}

// TestNoLineMeansNoFacts checks that a call asks if the argument is missing or is no text.
func TestNoLineMeansNoFacts(t *testing.T) {
	p := shellPlan(t)
	for _, args := range []string{`{}`, `{"command":["ls"]}`, `{"command":null}`, `{"Command":"ls"}`} {
		if d := p.Decide(&resolve.Call{Kind: resolve.Tool, Tool: "sh",
			Args: resolve.Raw(args)}); d.Outcome != resolve.Ask {
			t.Errorf("%s: %+v", args, d)
		}
	}
}

// TestBindingsHoldTheLineItself checks that lines with the same facts have different bindings,
// because the line is approved and not its facts.
func TestBindingsHoldTheLineItself(t *testing.T) {
	p := shellPlan(t)
	one, two := shellCall(t, "rm  x"), shellCall(t, "rm x")
	first, err := p.Bind(one)
	must.Do(t, err)
	second, err := p.Bind(two)
	if err != nil || first == second || p.Decide(one).Binding != first {
		t.Errorf("%s and %s, %v", first, second, err)
	}
}

// TestFactsNeedTheParentsWord checks that a child alone can't enable facts, because its parent's
// rules read them too.
func TestFactsNeedTheParentsWord(t *testing.T) {
	call := shellCall(t, "ls")
	both := resolve.Options{Derived: facts("shell", "ls")}
	for name, tt := range map[string]struct {
		parent []resolve.Derived
		want   resolve.Outcome
	}{
		"the same": {facts("shell", "ls"), resolve.Allow},
		"none":     {nil, resolve.Ask},
		"others":   {facts("shell", "ls", "rm"), resolve.Ask},
	} {
		child := both
		child.Parent = plan(t, resolve.Options{Derived: tt.parent}, shellAgent)
		if d := plan(t, child, shellAgent).Decide(call); d.Outcome != tt.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestFactsAreRefusedWhereTheyCouldLoosen.
func TestFactsAreRefusedWhereTheyCouldLoosen(t *testing.T) {
	agent := parseAgent(t, "agent.agf.yaml", shellAgent)
	for _, opt := range []resolve.Options{
		{Derived: append(facts("shell"), facts("line")...)},
		{Derived: facts("command")},
		{Derived: facts("shell", "eval")},
		{Derived: []resolve.Derived{{Target: "tool sh", As: "shell"}}},
		{Derived: []resolve.Derived{{Target: "tool sh", As: "a", Paths: []string{"a"}}}},
		{Derived: []resolve.Derived{{Target: "tool sh", As: "a", Paths: []string{"b"}, Listed: []string{"ls"}}}},
		{Derived: []resolve.Derived{{Target: "tool sh", As: "a", From: "b", Writes: true}}},
		{Derived: facts("shell"),
			Semantics: resolve.Semantics{Conditions: condition.Semantics{OnMissing: condition.NoMatch}}},
		{Derived: facts("shell"),
			Semantics: resolve.Semantics{Conditions: condition.Semantics{OnMismatch: condition.NoMatch}}},
	} {
		if p, err := resolve.Compile(agent, nil, opt); err == nil || p != nil {
			t.Errorf("%+v is taken", opt)
		}
	}
}

// TestFactsOnlySettleWhatWouldAsk checks that a plan with facts allows nothing about which the same
// plan with these texts as arguments would ask, and that a line without facts asks.
func TestFactsOnlySettleWhatWouldAsk(t *testing.T) {
	with, without := shellPlan(t), plan(t, resolve.Options{}, shellAgent)
	words := []string{"ls", "cat", "rm", "git", "status", "push", "$X", "|", ";", "> x", "'a b'", "$(ls)",
		"eval", "&&", "-l"}
	rapid.Check(t, func(rt *rapid.T) {
		line := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 6).Draw(rt, "words"), " ")
		call := shellCall(t, line)
		if without.Decide(call).Outcome != resolve.Ask {
			rt.Fatalf("%s: nothing is known without facts", line)
		}
		if with.Decide(call).Outcome == resolve.Allow && strings.ContainsAny(line, "$>") {
			rt.Fatalf("%s is allowed", line)
		}
	})
}

// BenchmarkDecideDerived measures a decision with facts.
func BenchmarkDecideDerived(b *testing.B) {
	p, call := shellPlan(b), shellCall(b, "ls -la src | cat")
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(call)
	}
}

// TestTargetsTellTheirDerivedFacts checks Target.Derived, also for targets without facts.
func TestTargetsTellTheirDerivedFacts(t *testing.T) {
	p := plan(t, resolve.Options{Derived: facts("shell")}, shellAgent)
	found := 0
	for _, call := range p.Targets() {
		if d := p.Target(&call).Derived(); d != nil && d.As == "shell" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d targets have facts", found)
	}
}

// TestArgumentsBesideTheSource checks that no facts are known if the call has an argument that the
// entry does not name, because it may change what the call does.
func TestArgumentsBesideTheSource(t *testing.T) {
	p := plan(t, configOf(t, `derived:
  - {target: tool sh, from: command, as: shell, listed: [ls, git status], beside: [description], directory: workdir}
  - {target: tool read, as: file, paths: [path, paths], beside: [limit]}
  - {target: tool write, as: file, paths: [path], writes: true, beside: []}
`).Options(), `action_space:
  local_tools:
    - alias: sh
      approval: {condition: [args_match: {shell.unlisted: {ne: ""}}, args_match: {shell.outside: {ne: ""}}]}
    - alias: read
      approval: {condition: [args_match: {file.outside: {ne: ""}}, args_match: {file.sensitive: {ne: ""}}]}
    - alias: write
      approval: {condition: [args_match: {file.outside: {ne: ""}}, args_match: {file.sensitive: {ne: ""}}]}
`)
	const neither = "of path: an argument that names files is neither a text nor a list of texts"
	for call, want := range map[string]string{
		`sh {"command":"ls /w/a","description":"x"}`: "",
		`sh {"command":"ls","env":{"PATH":"/x"}}`:    "of command: the argument env may change what the call does",
		`sh {"command":"ls","workdir":"/w/b"}`:       "",
		`sh {"command":"ls","workdir":"/etc"}`:       "of command: outside the workspace: .",
		`sh {"command":"ls","workdir":1}`:            "of command: the argument workdir is no text",
		`sh {"command":"git status","workdir":"b"}`:  "of command: not listed: git after cd",
		`sh {"command":"ls; rm a /etc/b"}`:           "of command: not listed: rm a",
		`read {"path":"/w/a","limit":3}`:             "",
		`read {"path":null}`:                         "",
		`read {"path":"a","paths":["b","../c"]}`:     "of path: outside the workspace: ../c",
		`read {"path":"/w2/a"}`:                      "of path: outside the workspace: /w2/a",
		`read {"path":".env"}`:                       "of path: may hold secrets or settings: .env",
		`read {"path":"$HOME/a"}`:                    "of path: outside the workspace: ~",
		`read {"path":"{a,../..}/b"}`:                "of path: outside the workspace: ../../b, ~",
		`read {"path":"a","absolute_path":"/etc"}`:   "of path: the argument absolute_path may change what the call does",
		`read {"path":{"a":"b"}}`:                    neither,
		`read {"paths":[1]}`:                         neither,
		`read {"path":"a/decisions.yaml"}`:           "",
		`write {"path":"a/decisions.yaml"}`:          "of path: may hold secrets or settings: a/decisions.yaml",
		`write {"path":"a","content":"x"}`:           "of path: the argument content may change what the call does",
		`write {"path":"a\nb"}`:                      neither,

		`write {"path":"*** Begin Patch\n*** Update File: a\n+x\n*** End of File\n*** End Patch"}`: "",
		`write {"path":"*** Begin Patch\n*** Add File: /etc/x\n*** Move to: b\n*** End Patch"}`:    "of path: outside the workspace: /etc/x",
		`write {"path":"*** Begin Patch\n*** Delete File: .env\n*** End Patch"}`:                   "of path: may hold secrets or settings: .env",
		`write {"path":"*** Begin Patch\n*** Rename File: a\n*** End Patch"}`:                      neither,
	} {
		tool, args, _ := strings.Cut(call, " ")
		c := &resolve.Call{Kind: resolve.Tool, Tool: tool, Args: resolve.Raw(args),
			Workspace: &resolve.Workspace{Root: "/w"}}
		d := p.Decide(c)
		if (d.Outcome == resolve.Allow) != (want == "") || want != "" && !strings.Contains(d.Reasons[0].Detail, want) {
			t.Errorf("%s: %+v", call, d)
		}
		c.Workspace = nil
		if d := p.Decide(c); d.Outcome == resolve.Allow {
			t.Errorf("%s: allowed without a workspace", call)
		}
	}
}

// TestWorkspacesInCalls are read strictly, and are no part of the binding.
func TestWorkspacesInCalls(t *testing.T) {
	const with = `{"kind":"tool","tool":"sh","args":{},"workspace":{"root":"/w","directory":"/w/a","outside":["l"],` +
		`"secrets":[],"installed":["tsc"],"foreign":"f","unknown":"u","incomplete":"i","sensitive":["s"]}}`
	c, err := resolve.ParseCall([]byte(with), value.Limits{})
	must.Do(t, err)
	text, err := c.JSON()
	must.Do(t, err)
	again, err := resolve.ParseCall(text, value.Limits{})
	must.Do(t, err)
	recorded := again.Recorded()
	if !reflect.DeepEqual(c.Workspace, recorded.Workspace) || c.Workspace.Outside[0] != "l" ||
		c.Workspace.Unknown != "u" || c.Workspace.Secrets == nil || c.Workspace.Installed[0] != "tsc" ||
		c.Workspace.Incomplete != "i" || c.Workspace.Sensitive[0] != "s" {
		t.Errorf("%s: %+v", text, recorded.Workspace)
	}
	p := shellPlan(t)
	one, _ := p.Bind(c)
	c.Workspace = nil
	if two, _ := p.Bind(c); one != two || one == "" {
		t.Errorf("%s and %s", one, two)
	}
	for _, w := range []string{`[]`, `{"root":1}`, `{"Root":"/w"}`, `{"outside":"l"}`, `{"outside":[1]}`,
		`{"secrets":"a"}`,
		`{"root":"/w"`, `{"root":"/w","root":"/x"}`} {
		if _, err := resolve.ParseCall([]byte(`{"kind":"tool","tool":"sh","workspace":`+w+`}`),
			value.Limits{}); err == nil {
			t.Errorf("%s is taken", w)
		}
	}
}
