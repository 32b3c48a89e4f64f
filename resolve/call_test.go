package resolve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

func TestUnreadableArgumentsAreDenied(t *testing.T) {
	p := plan(t, resolve.Options{Limits: value.Limits{MaxBytes: 1 << 20, MaxDepth: 100}}, deskTools)
	for name, args := range map[string]string{
		"50 MB":                  `{"a":"` + strings.Repeat("x", 50<<20) + `"}`,
		"100,000 nested arrays":  strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"just too deep":          strings.Repeat("[", 101) + strings.Repeat("]", 101),
		"duplicate key":          `{"a":{"b":1,"b":1}}`,
		"escaped duplicate":      `{"a":1,"\u0061":2}`,
		"invalid UTF-8":          "{\"a\":\"\xff\"}",
		"lone surrogate":         `{"a":"\ud83d"}`,
		"trailing":               `{} {}`,
		"NaN":                    `{"a":NaN}`,
		"number out of range":    `{"a":1e999999}`,
		"number that underflows": `{"a":1e-999999}`,
		"nothing":                ``,
		"cut":                    `{"a":`,
	} {
		for _, target := range []string{"free", "trade"} {
			d := p.Decide(&resolve.Call{Kind: resolve.Tool, Tool: target, Args: []byte(args)})
			if codes(d) != "deny unreadable_arguments" || d.Binding != "" ||
				!strings.HasPrefix(d.Message, "arguments: ") {
				t.Errorf("%s on %s: %s %q", name, target, codes(d), d.Message)
			}
		}
	}
}

func TestUnreadableValuesAreDenied(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	for name, v := range map[string]any{
		"NaN":      math.NaN(),
		"infinite": math.Inf(1),
		"channel":  make(chan int),
		"text":     "\xff",
		"struct":   struct{ A int }{1},
	} {
		for _, key := range []string{"amount", "unread"} {
			d := p.Decide(&resolve.Call{Kind: resolve.Tool, Tool: "trade", Values: map[string]any{key: v}})
			if codes(d) != "deny unreadable_arguments" {
				t.Errorf("%s in %s: %s", name, key, codes(d))
			}
		}
	}
}

// TestEveryDocumentIsRead checks that documents which no condition reads are validated as strictly
// as the others.
func TestEveryDocumentIsRead(t *testing.T) {
	p := plan(
		t,
		resolve.Options{},
		"action_space: {local_tools: [{alias: free}], mcp_servers: [{alias: open}], remote_agents: [{alias: far}], "+
			"local_agents: [{alias: sub, source: s.agf.yaml}]}\n",
	)
	bad := []byte(`{"a":1,"a":2}`)
	for _, call := range []*resolve.Call{
		{Kind: resolve.Tool, Tool: "free", ParentInput: bad},
		{Kind: resolve.MCPTool, Server: "open", Tool: "x", ParentInput: bad},
		{Kind: resolve.Skill, Agent: "far", Skill: "x", ParentInput: bad},
		{Kind: resolve.Skill, Agent: "far", Skill: "x", Args: bad, ParentInput: []byte(`{}`)},
		{Kind: resolve.Delegation, Agent: "sub", Args: bad},
		{Kind: resolve.Delegation, Agent: "sub", Values: map[string]any{"a": math.NaN()}},
		{Kind: resolve.Delegation, Agent: "sub", ParentInput: bad},
	} {
		if got := codes(p.Decide(call)); got != "deny unreadable_arguments" {
			t.Errorf("%+v: %s", call, got)
		}
	}

	both := &resolve.Call{Kind: resolve.Delegation, Agent: "sub", Args: bad, ParentInput: bad}
	if got := codes(p.Decide(both)); got != "deny unreadable_arguments,unreadable_arguments" {
		t.Error(got)
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	p := plan(t, resolve.Options{}, deskTools)
	for _, args := range []string{`null`, `7`, `"x"`, `[]`, `true`} {
		if got := codes(p.Decide(tool("trade", args))); got != "ask condition_unknown" {
			t.Errorf("trade %s: %s", args, got)
		}
		if got := codes(p.Decide(tool("free", args))); got != "allow " {
			t.Errorf("free %s: %s", args, got)
		}
	}
}

// TestOnlyObjectsAreLookedInto checks that an element of an array is no argument named "0", and
// that the owner's reading of missing arguments doesn't apply if the arguments or the parent's
// input are no object.
func TestOnlyObjectsAreLookedInto(t *testing.T) {
	const agent = `action_space:
  local_tools: [{alias: trade, approval: {condition: {args_match: {"0": risky}}}}]
  local_agents: [{alias: child, source: c.agf.yaml, approval: {condition: {args_match: {parent.input.risk: high}}}}]
`
	lenient := resolve.Options{
		Semantics: resolve.Semantics{Conditions: condition.Semantics{OnMissing: condition.NoMatch}},
	}
	for _, opt := range []resolve.Options{{}, lenient} {
		p := plan(t, opt, agent)
		for _, call := range []*resolve.Call{
			tool("trade", `["safe"]`), tool("trade", `null`),
			{Kind: resolve.Delegation, Agent: "child"},
			{Kind: resolve.Delegation, Agent: "child", ParentInput: []byte(`"low"`)},
		} {
			if got := codes(p.Decide(call)); got != "ask condition_unknown" {
				t.Errorf("%+v: %+v: %s", opt, call, got)
			}
		}
	}
}

func TestDeclaredArguments(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"to":{},"am\u006funt":true,"to":1},"required":["x"]}`: "amount,to",
		`{"properties":[1]}`: "", `{"properties":{}}`: "", `[]`: "", `{`: "", ``: "",
	} {
		if got := strings.Join(resolve.DeclaredIn([]byte(schema)), ","); got != want {
			t.Errorf("%s: %q", schema, got)
		}
	}
	for declared, want := range map[string]string{
		`["b","a","b"]`: "", `[]`: "", `[1]`: "a list of names", `null`: "a list of names",
		`"a"`: "a list of names", `[tru]`: "declared",
		`["a"],"declared":["a"]`: "twice",
	} {
		c, err := resolve.ParseCall([]byte(`{"kind":"tool","tool":"x","declared":`+declared+`}`), value.Limits{})
		if want == "" && (err != nil || !slices.IsSorted(c.Declared) || len(c.Declared) > 2) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", declared, c, err)
		}
	}
	line := []byte(`{"kind":"skill","agent":"a","skill":"b","declared":["a"]}`)
	if _, err := resolve.ParseCall(line, value.Limits{}); err == nil {
		t.Error("a skill has declared arguments")
	}
}

func TestCallErrorUnwraps(t *testing.T) {
	_, err := resolve.ParseCall([]byte(`{"kind":"tool","tool":tru}`), value.Limits{})
	var call *resolve.CallError
	var bad *value.Error
	if !errors.As(err, &call) || call.Field != "tool" || !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
}

// TestHostileEnvelopes checks that an envelope with too many values is refused.
func TestHostileEnvelopes(t *testing.T) {
	for _, line := range []string{
		`{` + strings.Repeat(`"":0,`, 200_000) + `"kind":"tool"}`,
		`{"kind":"delegation","agent":"a","parent":{` + strings.Repeat(`"input":0,`, 200_000) + `"input":0}}`,
	} {
		text := []byte(line)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := resolve.ParseCall(text, value.Limits{})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 64<<10 {
			t.Errorf("%.40s…: %d bytes for %d, error %v", line, used, len(line), err)
		}
	}
}

func FuzzParseCall(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"tool","tool":"free","args":{"a":1}}`,
		`{"kind":"skill","agent":"payments","skill":"list","parent":{"input":{"r":"low"}}}`,
		`{"kind":"delegation","agent":"payments","remote":true}`,
		`{"kind":"mcp_tool","server":"open","tool":"x","annotations":{"destructiveHint":true}}`,
		`{"kind":"loop_exit","iteration":2,"outputs":{"a":{"b":1}},"parent":{"input":{}}}`,
		`{`,
	} {
		f.Add([]byte(seed))
	}

	p := plan(f, resolve.Options{}, deskTools)
	f.Fuzz(func(t *testing.T, line []byte) {
		if step, err := resolve.ParseStep(line, value.Limits{}); step != nil && err == nil {
			if n := p.Next(step); n.Error == "" || n.Agent != "" || n.Exit != nil {
				t.Fatalf("%s: %+v of an agent without steps", line, n)
			}
		}
		call, err := resolve.ParseCall(line, value.Limits{})
		if err != nil {
			if call != nil {
				t.Fatalf("a call beside %v", err)
			}
			return
		}

		d := p.Decide(call)
		if (d.Outcome == resolve.Allow) != (len(d.Reasons) == 0) || (d.Outcome == resolve.Ask && d.Binding == "") {
			t.Fatalf("%+v", d)
		}
		if again := p.Decide(call); fmt.Sprint(again) != fmt.Sprint(d) {
			t.Fatalf("two answers:\n%+v\n%+v", d, again)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Fatal(err)
		}
	})
}
