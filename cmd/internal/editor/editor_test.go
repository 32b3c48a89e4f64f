package editor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/cmd/internal/editor"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

const desk = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
constraints:
  governance_policies:
    - policy_ref: acme.trades
action_space:
  local_tools:
    - alias: pay
      approval:
        condition:
          args_match:
            amount: {gt: 100}
        message_template: "Zahle 😀 {{tool_args.amount}}?"
  local_agents:
    - alias: checker
      source: checker.agf.yaml
execution_policy:
  id: agf.sequential
  config:
    steps:
      - agent: checker
      - agent: checker
        input_mapping:
          text: checker.output.text
`

// client is an editor.
type client struct {
	t    testing.TB
	conn *jsonrpc2.Conn
	told chan published
	end  chan error
	dir  string
}

type published struct {
	URI         string
	Diagnostics []struct {
		Code     string
		Message  string
		Severity int
		Range    struct {
			Start, End struct{ Line, Character int }
		}
	}
}

// start begins a session over a pipe, in a folder with a policy and a
// sub-agent.
func start(t testing.TB) *client {
	t.Helper()
	c := &client{t: t, told: make(chan published, 100), end: make(chan error, 1), dir: t.TempDir()}
	c.write(
		"acme.policy.yaml",
		"schema_version: \"1.0.0\"\npolicy_ref: acme.trades\nrules: [{id: all, approval: true}]\n",
	)
	c.write("checker.agf.yaml", strings.Replace(desk, "id: desk", "id: checker", 1))
	ours, theirs := net.Pipe()
	go func() { c.end <- editor.Serve(t.Context(), theirs, theirs, c.load) }()
	handler := func(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
		var p published
		if err := json.Unmarshal(*req.Params, &p); err != nil {
			return nil, err
		}
		c.told <- p
		return nil, nil
	}
	stream := jsonrpc2.NewBufferedStream(ours, jsonrpc2.VSCodeObjectCodec{})
	c.conn = jsonrpc2.NewConn(t.Context(), stream, jsonrpc2.HandlerWithError(handler))
	t.Cleanup(func() { c.conn.Close() })
	var found map[string]any
	c.call("initialize", map[string]any{}, &found)
	if found["capabilities"] == nil {
		t.Fatal("no capabilities")
	}
	return c
}

func (c *client) load() (editor.Settings, error) {
	set, findings := policy.LoadFS(os.DirFS(c.dir), c.dir)
	if len(findings) > 0 {
		return editor.Settings{}, errors.New(findings[0].Message)
	}
	return editor.Settings{
		Options:  lint.Options{Registry: set},
		Policies: set.Policies(),
		Groups:   []string{"risk"},
		HelpURL:  func(rule string) string { return "https://help/" + rule },
		Drift: func(path string, src []byte) []editor.Drift {
			if filepath.Base(path) != "drifting.agf.yaml" {
				return nil
			}
			at := diag.Position{Line: 9, Column: 5}
			return []editor.Drift{{At: at, Message: fmt.Sprint(len(src), " bytes"), Loosens: true}}
		},
	}, nil
}

func (c *client) write(name, text string) {
	c.t.Helper()
	must.Do(c.t, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600))
}

func (c *client) uri(name string) string {
	return "file://" + filepath.ToSlash(filepath.Join(c.dir, name))
}

func (c *client) call(method string, params, into any) {
	c.t.Helper()
	if err := c.conn.Call(c.t.Context(), method, params, into); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *client) tell(method string, params any) {
	c.t.Helper()
	must.Do(c.t, c.conn.Notify(c.t.Context(), method, params))
}

// opens opens a file and returns its diagnostics.
func (c *client) opens(name, text string) published {
	c.t.Helper()
	c.tell("textDocument/didOpen", map[string]any{
		"textDocument": map[string]any{"uri": c.uri(name), "version": 1, "text": text},
	})
	return <-c.told
}

func (c *client) changes(name, text string) published {
	c.t.Helper()
	c.tell("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": c.uri(name), "version": 2},
		"contentChanges": []any{map[string]any{"text": text}},
	})
	return <-c.told
}

// at returns the parameters of a request about the position where a text begins.
func (c *client) at(name, text, mark string, more ...any) map[string]any {
	c.t.Helper()
	before, _, ok := strings.Cut(text, mark)
	if !ok {
		c.t.Fatalf("%q is not there", mark)
	}
	lines := strings.Split(before, "\n")
	last := lines[len(lines)-1]
	p := map[string]any{
		"textDocument": map[string]any{"uri": c.uri(name)},
		"position":     map[string]any{"line": len(lines) - 1, "character": len(last)},
	}
	for i := 0; i+1 < len(more); i += 2 {
		p[more[i].(string)] = more[i+1]
	}
	return p
}

func TestFindingsWhileSomebodyWrites(t *testing.T) {
	c := start(t)
	if found := c.opens("desk.agf.yaml", desk); len(found.Diagnostics) > 0 {
		t.Errorf("found %v", found)
	}
	found := c.changes(
		"desk.agf.yaml",
		strings.Replace(desk, `"Zahle`, `bad: 1 # 😀`+"\n        \"aproval\": \"Zahle", 1),
	)
	if len(found.Diagnostics) == 0 {
		t.Error("nothing is found in a broken text")
	}
	found = c.changes("desk.agf.yaml", strings.Replace(desk, "tool_args.amount", "tool_args.amount}} {{toolname", 1))
	if len(found.Diagnostics) != 1 || found.Diagnostics[0].Code != "template-variable" {
		t.Fatalf("found %v", found)
	}
	// in UTF-16, of which the face takes two
	line := strings.Split(desk, "\n")[13]
	if at := found.Diagnostics[0].Range.Start; at.Line != 13 ||
		at.Character != strings.Index(line, "{{")-2+len("{{tool_args.amount}} {{") {
		t.Errorf("found at %v", at)
	}

	c.tell("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri("desk.agf.yaml")}})
	if found := <-c.told; len(found.Diagnostics) > 0 {
		t.Errorf("a closed file has %v", found)
	}
}

// TestOtherFilesAreLeftAlone checks other YAML files, which an editor sends too.
func TestOtherFilesAreLeftAlone(t *testing.T) {
	c := start(t)
	if found := c.opens("compose.yaml", "services: {web: {image: nginx}}\n"); len(found.Diagnostics) > 0 {
		t.Errorf("found %v", found)
	}
	if found := c.opens("agent.yaml", desk+"metadata: {}\n"); len(found.Diagnostics) == 0 {
		t.Error("nothing is found in an agent under another name")
	}
}

// TestSavedPoliciesCount checks that saving a policy updates the diagnostics of an open agent.
func TestSavedPoliciesCount(t *testing.T) {
	c := start(t)
	c.opens("desk.agf.yaml", desk)
	c.write(
		"acme.policy.yaml",
		"schema_version: \"1.0.0\"\npolicy_ref: acme.other\nrules: [{id: all, approval: true}]\n",
	)
	c.tell("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri("acme.policy.yaml")}})
	if found := <-c.told; len(found.Diagnostics) != 1 || found.Diagnostics[0].Code != "policy-unresolved" {
		t.Errorf("found %v", found)
	}
}

// TestChangesSinceTheLastCommit checks that the changes are shown when a file is opened, remain
// during typing, and are updated when it is saved.
func TestChangesSinceTheLastCommit(t *testing.T) {
	c := start(t)
	drift := func(p published) string {
		for _, d := range p.Diagnostics {
			if d.Code == "since-last-commit" && d.Severity == 2 && d.Range.Start.Line == 8 {
				return d.Message
			}
		}
		return ""
	}
	longer := desk + "# more\n"
	want := fmt.Sprint(len(desk), " bytes")
	if got := drift(c.opens("drifting.agf.yaml", desk)); got != want {
		t.Errorf("opened: %q", got)
	}
	if got := drift(c.changes("drifting.agf.yaml", longer)); got != want {
		t.Errorf("typed: %q", got)
	}
	c.tell("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri("drifting.agf.yaml")}})
	if got := drift(<-c.told); got != fmt.Sprint(len(longer), " bytes") {
		t.Errorf("saved: %q", got)
	}
}

func TestHover(t *testing.T) {
	c := start(t)
	c.opens("desk.agf.yaml", desk)
	for mark, want := range map[string]string{
		"message_template": "What the person reads",
		"approval:":        "a call asks when amount gt 100\nand when an argument that is tested is missing",
		"condition:":       `for example {"amount":`,
		"pay":              "pay: a call asks when amount gt 100",
		"gt: 100":          "Greater than.",
	} {
		var found struct{ Contents struct{ Value string } }
		if c.call("textDocument/hover", c.at("desk.agf.yaml", desk, mark), &found); !strings.Contains(
			found.Contents.Value,
			want,
		) {
			t.Errorf("%s: %q", mark, found.Contents.Value)
		}
	}
}

func TestCompletion(t *testing.T) {
	c := start(t)
	for name, tt := range map[string]struct {
		file, text string // the cursor stands at |
		want       string
		not        string
	}{
		"a field at the top": {"desk.agf.yaml", desk + "|", "memory", "alias"},
		"a field of a tool": {
			"desk.agf.yaml",
			strings.Replace(desk, "      approval:\n", "      |\n", 1),
			"approval",
			"memory",
		},
		"a field of a new item": {
			"desk.agf.yaml",
			strings.Replace(desk, "  local_agents:\n", "    - |\n", 1),
			"alias",
			"local_tools",
		},
		"an operator": {"desk.agf.yaml", strings.Replace(desk, "{gt: 100}", "\n              |", 1), "not_in", "alias"},
		"a sub-agent": {"desk.agf.yaml", strings.Replace(desk, "agent: checker\n", "agent: |\n", 1), "checker", "pay"},
		"a policy": {
			"desk.agf.yaml",
			strings.Replace(desk, "policy_ref: acme.trades", "policy_ref: |", 1),
			"acme.trades",
			"true",
		},
		"a variable": {"desk.agf.yaml", strings.Replace(desk, "tool_args.amount}}", "|", 1), "tool_name", "skill_args"},
		"the settings of the policy": {
			"desk.agf.yaml",
			strings.Replace(desk, "    steps:\n", "    |\n    steps:\n", 1),
			"output_from",
			"instructions",
		},
		"a word": {"a.policy.yaml", "schema_version: \"1.0.0\"\npolicy_ref: a.b\napplies: |\n", "implicit", "rules"},
		"a group": {
			"a.policy.yaml",
			"rules:\n  - id: a\n    require:\n      stages:\n        - group: |\n",
			"risk",
			"true",
		},
		"a field in braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "    - alias: pay\n", "    - {|\n    - alias: pay\n", 1),
			"approval",
			"memory",
		},
		"a further field in braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "    - alias: pay\n", "    - {alias: \"a, {b\", ap|}\n    - alias: pay\n", 1),
			"approval",
			"local_tools",
		},
		"a field in braces in braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "    - alias: pay\n", "    - {alias: a, approval: {|\n    - alias: pay\n", 1),
			"condition",
			"alias",
		},
		"an operator in braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "{gt: 100}", "{gt: 100, |}", 1),
			"not_in",
			"alias",
		},
		"an operator in braces over lines": {
			"desk.agf.yaml",
			strings.Replace(desk, "{gt: 100}", "{gt: 100, # {least\n                |}", 1),
			"lt",
			"alias",
		},
		"a field behind braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "amount: {gt: 100}\n", "amount: {gt: 100}\n        |\n", 1),
			"message_template",
			"lt",
		},
		"a group in brackets": {
			"a.policy.yaml",
			"rules:\n  - id: a\n    require: {stages: [{group: |}]}\n",
			"risk",
			"count",
		},
		"a word in brackets": {
			"a.policy.yaml",
			"rules:\n  - id: a\n    match: {kinds: [tool, |]}\n",
			"mcp_tool",
			"targets",
		},
		"a value in braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "- policy_ref: acme.trades", "- {policy_ref: acme.trades, required: |", 1),
			"true",
			"alias",
		},
		"a variable in braces": {
			"desk.agf.yaml",
			strings.Replace(desk, "    - alias: pay\n",
				"    - {alias: a, approval: {message_template: \"Do {{|\"}}\n    - alias: pay\n", 1),
			"tool_name",
			"skill_args",
		},
		"a sub-agent in brackets": {
			"desk.agf.yaml",
			strings.Replace(desk, "agent: checker\n      -", "agent: checker\n      - {agent: |}\n      -", 1),
			"checker",
			"pay",
		},
		"true or false": {
			"desk.agf.yaml",
			strings.Replace(desk, "policy_ref: acme.trades", "policy_ref: acme.trades\n      required: |", 1),
			"true",
			"alias",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			text := strings.Replace(tt.text, "|", "", 1)
			c.opens(tt.file, text)
			before, _, _ := strings.Cut(tt.text, "|")
			lines := strings.Split(before, "\n")
			p := c.at(tt.file, text, "")
			p["position"] = map[string]any{
				"line":      len(lines) - 1,
				"character": len(lines[len(lines)-1]) - 2*strings.Count(lines[len(lines)-1], "😀"),
			}
			var found []struct{ Label string }
			c.call("textDocument/completion", p, &found)
			var labels []string
			for _, f := range found {
				labels = append(labels, f.Label)
			}
			if !slices.Contains(labels, tt.want) || slices.Contains(labels, tt.not) {
				t.Errorf("offered %q", labels)
			}
		})
	}
}

func TestDefinition(t *testing.T) {
	c := start(t)
	c.opens("desk.agf.yaml", desk)
	for mark, want := range map[string]string{
		"checker.agf.yaml":    c.uri("checker.agf.yaml"),
		"acme.trades":         c.uri("acme.policy.yaml"),
		"checker.output.text": c.uri("desk.agf.yaml"),
	} {
		var found struct {
			URI   string
			Range struct{ Start struct{ Line int } }
		}
		c.call("textDocument/definition", c.at("desk.agf.yaml", desk, mark), &found)
		if found.URI != want || mark == "checker.output.text" && found.Range.Start.Line != 15 {
			t.Errorf("%s leads to %v", mark, found)
		}
	}
}

func TestRename(t *testing.T) {
	c := start(t)
	c.opens("desk.agf.yaml", desk)
	var found struct {
		Changes map[string][]struct {
			Range   struct{ Start, End struct{ Line, Character int } }
			NewText string
		}
	}
	c.call("textDocument/rename", c.at("desk.agf.yaml", desk, "checker\n      source", "newName", "reader"), &found)
	lines := strings.Split(desk, "\n")
	for _, e := range found.Changes[c.uri("desk.agf.yaml")] {
		line := lines[e.Range.Start.Line]
		lines[e.Range.Start.Line] = line[:e.Range.Start.Character] + e.NewText + line[e.Range.End.Character:]
	}
	want := strings.ReplaceAll(strings.ReplaceAll(desk, "checker", "reader"), "reader.agf.yaml", "checker.agf.yaml")
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("renamed:\n%s", got)
	}

	for name, mark := range map[string]string{
		"pay": "checker\n      source",
		"2x":  "checker\n      source",
		"x":   "Trades",
	} {
		err := c.conn.Call(t.Context(), "textDocument/rename", c.at("desk.agf.yaml", desk, mark, "newName", name), nil)
		if err == nil {
			t.Errorf("%s becomes %s", mark, name)
		}
	}
}

func TestRemediesAreOffered(t *testing.T) {
	c := start(t)
	text := strings.Replace(desk, "approval:", "aproval: # 😀", 1)
	c.opens("desk.agf.yaml", text)
	var found []struct {
		Title string
		Edit  struct {
			Changes map[string][]struct{ NewText string }
		}
	}
	place := map[string]any{"line": 9, "character": 0}
	c.call("textDocument/codeAction", map[string]any{
		"textDocument": map[string]any{"uri": c.uri("desk.agf.yaml")},
		"range":        map[string]any{"start": place, "end": place},
	}, &found)
	if len(found) != 1 || found[0].Title != `rename "aproval" to "approval"` ||
		found[0].Edit.Changes[c.uri("desk.agf.yaml")][0].NewText != "approval" {
		t.Errorf("offered %v", found)
	}
}

func TestTheSessionEnds(t *testing.T) {
	c := start(t)
	c.call("shutdown", nil, nil)
	c.tell("exit", nil)
	if err := <-c.end; err != nil {
		t.Error(err)
	}

	c = start(t)
	c.conn.Close()
	if err := <-c.end; !errors.Is(err, editor.ErrNoShutdown) {
		t.Error(err)
	}
}

// TestWrongParametersCostTheirAnswerOnly checks that the session continues.
func TestWrongParametersCostTheirAnswerOnly(t *testing.T) {
	c := start(t)
	for _, method := range []string{"hover", "rename", "codeAction", "unknown"} {
		if err := c.conn.Call(t.Context(), "textDocument/"+method, []int{1}, nil); err == nil {
			t.Errorf("%s takes a list", method)
		}
	}
	c.opens("desk.agf.yaml", desk)
}

// strewn returns texts that random edits insert.
func strewn() []string {
	return []string{"", ":", "- ", "{", "}", "\n", "\r", "  ", "{{", "&a ", "*a", "'", "\"", "😀", "\x00", "|"}
}

// TestRandomEditsNeverEndTheSession checks that every request gets an answer, whatever the text
// contains.
func TestRandomEditsNeverEndTheSession(t *testing.T) {
	c := start(t)
	c.opens("desk.agf.yaml", desk)
	rapid.Check(t, func(rt *rapid.T) {
		text := []rune(desk)
		for range rapid.IntRange(1, 5).Draw(rt, "edits") {
			from := rapid.IntRange(0, len(text)).Draw(rt, "from")
			to := rapid.IntRange(from, min(len(text), from+40)).Draw(rt, "to")
			put := []rune(rapid.SampledFrom(strewn()).Draw(rt, "put"))
			text = slices.Concat(text[:from], put, text[to:])
		}

		c.changes("desk.agf.yaml", string(text))
		lines := rapid.OneOf(rapid.IntRange(-1, 40), rapid.Just(math.MaxInt))
		place := map[string]any{
			"line":      lines.Draw(rt, "line"),
			"character": rapid.IntRange(-1, 60).Draw(rt, "character"),
		}
		params := map[string]any{
			"textDocument": map[string]any{"uri": c.uri("desk.agf.yaml")},
			"position":     place,
			"range":        map[string]any{"start": place, "end": place},
			"newName":      "other",
		}
		for _, method := range []string{
			"hover", "completion", "definition", "prepareRename", "rename", "references", "codeAction",
		} {
			err := c.conn.Call(t.Context(), "textDocument/"+method, params, nil)
			if err != nil && (method != "rename" || strings.Contains(err.Error(), "internal error")) {
				rt.Fatalf("%s: %v", method, err)
			}
		}
	})
}

// longDesk returns the file of an agent with as many tools, of six lines each.
func longDesk(tools int) string {
	var b strings.Builder
	for i := range tools {
		fmt.Fprintf(&b, "    - alias: tool%d\n      approval:\n        condition:\n          args_match:\n"+
			"            amount: {gt: %d}\n            to: {pattern: '^x%d.*@example\\.com$'}\n", i, i, i)
	}
	return strings.Replace(desk, "  local_agents:\n", b.String()+"  local_agents:\n", 1)
}

// edits changes one number of an open file again and again.
func (c *client) edits(text string, times int) {
	c.t.Helper()
	for i := range times {
		c.changes("desk.agf.yaml", strings.Replace(text, "gt: 7}", fmt.Sprintf("gt: %d}", i), 1))
	}
}

// TestAnEditCostsInProportionToItsFile checks that for a file that is four times as long, an edit
// allocates about four times as much. Work that is quadratic in the number of tools would allocate
// sixteen times as much.
func TestAnEditCostsInProportionToItsFile(t *testing.T) {
	c := start(t)
	allocations := func(tools int) uint64 {
		text := longDesk(tools)
		c.opens("desk.agf.yaml", text)
		c.edits(text, 2)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.edits(text, 5)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	short, long := allocations(40), allocations(160)
	if long > 5*short {
		t.Errorf("%d allocations with 40 tools, %d with 160", short, long)
	}
}

// BenchmarkEdit is an edit of a file of a thousand lines.
func BenchmarkEdit(b *testing.B) {
	c := start(b)
	text := longDesk(160)
	c.opens("desk.agf.yaml", text)
	for b.Loop() {
		c.edits(text, 1)
	}
}
