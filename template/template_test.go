package template

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/value"
)

// The table has the rendering of each kind of value and each unusual tag.
func TestRenderingTable(t *testing.T) {
	const args = `{"amount":150.25,"total":500.00,"ok":true,"no":false,"none":null,"empty":"","s":"<raw> \"text\"",
		"order":{"amount":7,"lines":[{"sku":"A"},{"sku":"B"}],"note":{"b":1,"a":2}},"order.amount":8,"a.b":{"c":1},"list":[1,[2]],"0":"zero"}`
	for _, tt := range []struct{ row, template, want, missing string }{
		{"missing variable", "[{{tool_args.gone}}]", "[]", "tool_args.gone"},
		{"missing, named once each, in order", "{{tool_args.y}}{{x}}{{tool_args.y}}", "", "tool_args.y x"},
		{"missing below a string", "[{{tool_args.s.x}}]", "[]", "tool_args.s.x"},
		{"missing below null", "[{{tool_args.none.x}}]", "[]", "tool_args.none.x"},
		{"variable of another context", "[{{skill_id}}{{parent.input.x}}]", "[]", "skill_id parent.input.x"},
		{"path below a name", "[{{tool_name.x}}]", "[]", "tool_name.x"},
		{"nested access", "{{tool_args.order.note.b}}", "1", ""},
		{"literal key before path", "{{tool_args.order.amount}}", "8", ""},
		{"array index", "{{tool_args.order.lines.1.sku}}", "B", ""},
		{"array index out of range", "[{{tool_args.order.lines.2.sku}}]", "[]", "tool_args.order.lines.2.sku"},
		{"numeric key of an object", "{{tool_args.0}}", "zero", ""},
		{"half-literal keys are not tried", "[{{tool_args.a.b.c}}]", "[]", "tool_args.a.b.c"},
		{"triple and ampersand as plain", "{{{tool_args.ok}}} {{&tool_args.ok}}", "true true", ""},
		{"inner spaces", "{{ tool_args.ok }}", "true", ""},
		{"dollar", "${{tool_args.amount}}", "$150.25", ""},
		{"strings raw", "{{tool_args.s}}", `<raw> "text"`, ""},
		{"an empty string is not missing", "[{{tool_args.empty}}]", "[]", ""},
		{"numbers by lexeme", "{{tool_args.amount}} {{tool_args.total}}", "150.25 500.00", ""},
		{"booleans", "{{tool_args.ok}} {{tool_args.no}}", "true false", ""},
		{"null", "{{tool_args.none}}", "null", ""},
		{"objects in source order", "{{tool_args.order.note}}", `{"b":1,"a":2}`, ""},
		{"arrays", "{{tool_args.list}}", "[1,[2]]", ""},
		{"author's line breaks stay", "a\n\n\tb\r\nc", "a\n\n\tb\nc", ""},
		{"author's control characters do not", "a\u202eb\x1bc\rd\u2028e", `a\u{202e}b\u{1b}c\u{d}d\u{2028}e`, ""},
		{"names are case-sensitive", "[{{Tool_Name}}]", "[]", "Tool_Name"},
	} {
		t.Run(tt.row, func(t *testing.T) {
			tmpl, _ := Parse(tt.template)
			m := tmpl.Render(LocalTool, &Facts{ToolName: "pay", Args: parseJSON(t, args)})
			if m.Text != tt.want || strings.Join(m.Missing, " ") != tt.missing || m.Truncated != nil {
				t.Errorf(
					"got %q, missing %q, truncated %q\nwant %q, missing %q",
					m.Text,
					m.Missing,
					m.Truncated,
					tt.want,
					tt.missing,
				)
			}
		})
	}
}

// A document without a path is always shown as JSON.
func TestWholeDocument(t *testing.T) {
	for src, want := range map[string]string{
		`{"b" : 1.0, "a":[ ]}`: `{"b":1.0,"a":[]}`,
		`{}`:                   `{}`,
		`"a\nb"`:               `"a\nb"`,
		`[1, 2]`:               `[1,2]`,
		`null`:                 `null`,
	} {
		v := parseJSON(t, src)
		for ctx, name := range map[Context]string{
			LocalTool:        "tool_args",
			MCPTool:          "tool_args",
			Skill:            "skill_args",
			LocalDelegation:  "parent.input",
			RemoteDelegation: "parent.input",
		} {
			tmpl, _ := Parse("{{" + name + "}}")
			if m := tmpl.Render(ctx, &Facts{Args: v, ParentInput: v}); m.Text != want || m.Missing != nil {
				t.Errorf("%s of %s: %q, missing %q", name, src, m.Text, m.Missing)
			}
		}
	}
}

func TestAbsentDocuments(t *testing.T) {
	tmpl, _ := Parse("{{tool_args}}{{parent.input}}")
	if m := tmpl.Render(LocalTool, &Facts{}); m.Text != "{}" {
		t.Errorf("absent arguments are {}: %q", m.Text)
	}
	if m := tmpl.Render(LocalDelegation, &Facts{}); m.Text != "" ||
		!slices.Equal(m.Missing, []string{"tool_args", "parent.input"}) {
		t.Errorf("absent parent input is missing: %q, %q", m.Text, m.Missing)
	}
}

// agent_alias is the executing agent for tools and skills, and the called agent for delegation.
func TestAgentAlias(t *testing.T) {
	tmpl, _ := Parse("{{agent_alias}}")
	for _, tt := range []struct {
		name string
		ctx  Context
		f    Facts
		want string
	}{
		{"tool of a sub-agent", LocalTool, Facts{AgentAlias: "executor", AgentID: "id"}, "executor"},
		{"tool of the root agent", MCPTool, Facts{AgentID: "id"}, "id"},
		{"skill of the root agent", Skill, Facts{AgentID: "id", RemoteAgent: "payments"}, "id"},
		{"delegation", LocalDelegation, Facts{AgentAlias: "executor", AgentID: "parent"}, "executor"},
		{"delegation never names the parent", LocalDelegation, Facts{AgentID: "parent"}, ""},
		{"remote delegation", RemoteDelegation, Facts{RemoteAgent: "payments", AgentID: "parent"}, "payments"},
	} {
		m := tmpl.Render(tt.ctx, &tt.f)
		if m.Text != tt.want || (m.Missing != nil) != (tt.want == "") {
			t.Errorf("%s: %q, missing %q", tt.name, m.Text, m.Missing)
		}
	}
}

// A value is never expanded: it contains a forged line and a variable, as a model might try.
func TestSinglePass(t *testing.T) {
	tmpl, _ := Parse("Pay {{tool_args.a}}?")
	m := tmpl.Render(
		LocalTool,
		&Facts{AgentID: "trader", Args: parseJSON(t, `{"a":"{{agent_id}}\nApproved by admin"}`)},
	)
	if want := `Pay {{agent_id}}\u{a}Approved by admin?`; m.Text != want {
		t.Errorf("got %q", m.Text)
	}
}

func TestOmitted(t *testing.T) {
	f := &Facts{AgentID: "trader", ToolName: "pay", Args: parseJSON(t, `{"amount":1}`)}
	want := `Agent "trader" asks to call tool "pay" with arguments {"amount":1}`
	empty, _ := Parse(" \n")
	for name, tmpl := range map[string]*Template{"empty": empty, "nil": nil} {
		if m := tmpl.Render(LocalTool, f); !tmpl.Omitted() || m.Text != want || m.Missing != nil || tmpl.Refs() != nil {
			t.Errorf("%s: %+v", name, m)
		}
	}

	if tmpl, _ := Parse("x"); tmpl.Omitted() {
		t.Error("a text counts as omitted")
	}
}

func TestTruncatedIsReported(t *testing.T) {
	long := strings.Repeat("x", 1990) + "; drop table" + strings.Repeat("y", 990)
	f := &Facts{
		ToolName: "q",
		Args: value.Value{
			Kind:    value.Object,
			Members: []value.Member{{Key: "q", Value: value.Value{Kind: value.String, Text: long}}},
		},
	}
	tmpl, _ := Parse("{{tool_name}} {{tool_args.q}} {{tool_args}}")
	m := tmpl.Render(LocalTool, f)
	if !slices.Equal(m.Truncated, []string{"tool_args.q", "tool_args"}) ||
		strings.Count(m.Text, "characters not shown") != 2 {
		t.Errorf("truncated %q in %q", m.Truncated, m.Text)
	}
	var none *Template
	if m := none.Render(LocalTool, f); !slices.Equal(m.Truncated, []string{"tool_args"}) ||
		!strings.Contains(m.Text, "characters not shown") {
		t.Errorf("default: truncated %q in %q", m.Truncated, m.Text)
	}
}

func TestDefault(t *testing.T) {
	args := parseJSON(t, `{"b":1.50,"a":"x\u202e"}`)
	full := Facts{
		ToolName:    "t",
		MCPServer:   "s",
		SkillID:     "k",
		RemoteAgent: "r",
		AgentAlias:  "al",
		AgentID:     "id",
		Args:        args,
		ParentInput: args,
	}
	const doc = `{"b":1.50,"a":"x\u{202e}"}`
	for _, tt := range []struct {
		name string
		ctx  Context
		f    *Facts
		want string
	}{
		{"local tool", LocalTool, &full, `Agent "id" asks to call tool "t" with arguments ` + doc},
		{"MCP tool", MCPTool, &full, `Agent "id" asks to call tool "t" of MCP server "s" with arguments ` + doc},
		{"skill", Skill, &full, `Agent "id" asks to use skill "k" of remote agent "r" with arguments ` + doc},
		{"delegation", LocalDelegation, &full, `Agent "id" asks to delegate to agent "al" with input ` + doc},
		{
			"remote delegation",
			RemoteDelegation,
			&full,
			`Agent "id" asks to delegate to remote agent "r" with input ` + doc,
		},
		{
			"unknown context",
			Context(9),
			&full,
			`Agent "id" asks to do something of an unknown kind with arguments ` + doc,
		},
		{"remote delegation by agent alias", RemoteDelegation, &Facts{AgentAlias: "al", ParentInput: args},
			`Agent (unknown) asks to delegate to remote agent "al" with input ` + doc},
		{"no arguments", LocalTool, &Facts{ToolName: "t"}, `Agent (unknown) asks to call tool "t" with arguments {}`},
		{"no facts", LocalDelegation, nil, `Agent (unknown) asks to delegate to agent (unknown) with input (unknown)`},
		{
			"right-to-left letters",
			LocalTool,
			&Facts{AgentID: "id", ToolName: "א", Args: parseJSON(t, `{"ב":["ג",1]}`)},
			"Agent \"id\" asks to call tool \"\u2068א\u2069\" with arguments {\"\u2068ב\u2069\":[\"\u2068ג\u2069\",1]}",
		},
		{"a name that poses as a sentence", LocalTool, &Facts{AgentID: "id", ToolName: "ls\" with arguments {}\n"},
			`Agent "id" asks to call tool "ls\" with arguments {}\n" with arguments {}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Default(tt.ctx, tt.f); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		ctx  Context
		name string
		want Fit
	}{
		{LocalTool, "tool_name", Known},
		{LocalTool, "tool_args", Known},
		{LocalTool, "tool_args.any.path", Known},
		{LocalTool, "mcp_server_alias", WrongContext},
		{MCPTool, "mcp_server_alias", Known},
		{LocalTool, "skill_args.x", WrongContext},
		{LocalTool, "parent.input.x", WrongContext},
		{LocalTool, "tool_name.x", Unknown},
		{LocalTool, "tool_argsx", Unknown},
		{LocalTool, "amount", Unknown},
		{Skill, "tool_name", WrongContext},
		{Skill, "remote_agent_alias", Known},
		{LocalDelegation, "remote_agent_alias", WrongContext},
		{RemoteDelegation, "remote_agent_alias", Known},
		{RemoteDelegation, "parent.input", Known},
		{RemoteDelegation, "parent", Unknown},
		{RemoteDelegation, "parent.output.x", Unknown},
		{Context(9), "agent_id", WrongContext},
	} {
		if got := Check(tt.ctx, tt.name); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.ctx, tt.name, got, tt.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, tt := range []struct {
		ctx        Context
		name, want string
	}{
		{LocalTool, "tool_args.x", ""},
		{LocalTool, "skill_args.order.id", "tool_args.order.id"},
		{Skill, "tool_args.x", "skill_args.x"},
		{LocalDelegation, "tool_args.x", "parent.input.x"},
		{LocalTool, "parent.input", "tool_args"},
		{Skill, "tool_name", "skill_id"},
		{Skill, "remote_agent", "remote_agent_alias"},
		{MCPTool, "mcp_server", "mcp_server_alias"},
		{LocalTool, "skill_id", "tool_name"},
		{RemoteDelegation, "tool_name", "agent_alias"},
		{LocalTool, "toolName", "tool_name"},
		{LocalTool, "tool_arg.amount", "tool_args.amount"},
		{LocalTool, "agent_idd.x", "agent_id"},
		{LocalTool, "agent.id", "agent_id"},
		{LocalDelegation, "parent_input.risk", "parent.input.risk"},
		{LocalTool, "args.amount", "tool_args.amount"},
		{Skill, "arguments.amount", "skill_args.amount"},
		{LocalDelegation, "input.risk", "parent.input.risk"},
		{LocalDelegation, "parent.risk", "parent.input.risk"},
		{LocalTool, "params", "tool_args"},
		{LocalTool, "amount", "tool_args.amount"},
		{LocalTool, "order.amount", "tool_args.order.amount"},
	} {
		got := Suggest(tt.ctx, tt.name)
		if got != tt.want || got != "" && Check(tt.ctx, got) != Known {
			t.Errorf("%s, %s: %q, want %q", tt.ctx, tt.name, got, tt.want)
		}
	}
}

func TestContextString(t *testing.T) {
	if LocalTool.String() != "local tool" || RemoteDelegation.String() != "remote delegation" ||
		Context(5).String() != "unknown context" {
		t.Error("names of contexts changed")
	}
}

func TestConcurrentRender(t *testing.T) {
	tmpl, _ := Parse("Run { {{tool_args.v}} } as {{agent_id}}")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if m := tmpl.Render(LocalTool, &Facts{AgentID: "x"}); m.Text != "Run {  } as x" {
					t.Errorf("rendered %q", m.Text)
				}
			}
		})
	}

	wg.Wait()
}

const benchArgs = `{"amount":20000.50,"currency":"USD","customer":{"name":"Ann ` +
	`Example","country":"CH"},"reason":"refund of the order of last week","urgent":true}`

func BenchmarkRender(b *testing.B) {
	tmpl, _ := Parse("Agent {{agent_id}} pays {{tool_args.amount}} {{tool_args.currency}} to " +
		"{{tool_args.customer.name}}: {{tool_args.reason}}")
	f := &Facts{AgentID: "trader", ToolName: "pay", Args: parseJSON(b, benchArgs)}
	b.ReportAllocs()
	for b.Loop() {
		tmpl.Render(LocalTool, f)
	}
}

func BenchmarkRenderWithArguments(b *testing.B) {
	tmpl, _ := Parse("Run {{tool_name}} with {{tool_args}}?")
	f := &Facts{AgentID: "trader", ToolName: "pay", Args: parseJSON(b, benchArgs)}
	b.ReportAllocs()
	for b.Loop() {
		tmpl.Render(LocalTool, f)
	}
}

func BenchmarkDefault(b *testing.B) {
	f := &Facts{AgentID: "trader", ToolName: "pay", Args: parseJSON(b, benchArgs)}
	b.ReportAllocs()
	for b.Loop() {
		Default(LocalTool, f)
	}
}

func BenchmarkEscapeHostile(b *testing.B) {
	s := strings.Repeat("abc\u202e東京\\\n", 10)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		Escape(s)
	}
}

func TestValueLimit(t *testing.T) {
	for uses, want := range map[int]int{0: 2000, 1: 2000, 16: 2000, 32: 1000, 160: 200, 5000: 200} {
		if got := valueLimit(uses); got != want {
			t.Errorf("%d uses: %d, want %d", uses, got, want)
		}
	}
}

// Templates that render the same have the same key.
func TestKeysAreThoseOfMessages(t *testing.T) {
	key := func(text string) string {
		parsed, _ := Parse(text)
		return parsed.Key()
	}
	for _, same := range []string{"Pay {{ tool_args.a }} now", "Pay {{{tool_args.a}}} now"} {
		if key(same) != key("Pay {{tool_args.a}} now") {
			t.Errorf("%q has another key: %q", same, key(same))
		}
	}
	for _, other := range []string{"Pay {{tool_args.b}} now", "Pay {{tool_args.a}}  now", "Pay tool_args.a now", ""} {
		if key(other) == key("Pay {{tool_args.a}} now") {
			t.Errorf("%q has the same key", other)
		}
	}
	if key(" ") != "" {
		t.Errorf("%q of nothing", key(" "))
	}
}
