package template

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

func parseJSON(t testing.TB, src string) value.Value {
	t.Helper()
	v, err := value.Parse([]byte(src), value.DefaultLimits())
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return v
}

// hostile returns a corpus of values that try to deceive readers.
func hostile(t testing.TB) []value.Value {
	t.Helper()
	src, err := os.ReadFile("testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	return parseJSON(t, string(src)).Items
}

func member(t testing.TB, v value.Value, key string) value.Value {
	t.Helper()
	got, ok := v.Get(key)
	if !ok {
		t.Fatalf("no member %q", key)
	}
	return got
}

func TestGoldenHostile(t *testing.T) {
	tmpl, problems := Parse("Run {{tool_args.v}} as {{agent_id}}?\nAll: {{tool_args}}")
	if problems != nil {
		t.Fatal(problems)
	}
	var b strings.Builder
	for _, c := range hostile(t) {
		args := value.Value{Kind: value.Object, Members: []value.Member{{Key: "v", Value: member(t, c, "v")}}}
		m := tmpl.Render(LocalTool, &Facts{AgentID: "trader", Args: args})
		if bad := strings.IndexFunc(m.Text, forbidden); bad >= 0 {
			t.Errorf("%s: %q holds a forbidden character at %d", member(t, c, "name").Text, m.Text, bad)
		}
		if n := strings.Count(m.Text, "\n"); n != 1 {
			t.Errorf("%s: %d line breaks in %q, the author wrote one", member(t, c, "name").Text, n, m.Text)
		}
		fmt.Fprintf(&b, "## %s\n%s\n", member(t, c, "name").Text, m.Text)
	}

	golden.Equal(t, "hostile.golden", visibleIsolates(b.String()))
}

// visibleIsolates replaces isolates by names, so that the golden files are safe to read.
func visibleIsolates(s string) string {
	return strings.NewReplacer(safetext.Isolate, "[FSI]", safetext.PopIsolate, "[PDI]").Replace(s)
}

func TestGoldenCatalog(t *testing.T) {
	f := &Facts{
		ToolName:    "execute_trade",
		MCPServer:   "broker",
		SkillID:     "process-payment",
		RemoteAgent: "payments",
		AgentAlias:  "executor",
		AgentID:     "trading-desk",
		Args:        parseJSON(t, `{"amount":20000.00}`),
		ParentInput: parseJSON(t, `{"risk_level":"high"}`),
	}
	contexts := []Context{LocalTool, MCPTool, Skill, LocalDelegation, RemoteDelegation}
	names := map[string]bool{}
	var b strings.Builder
	for _, ctx := range contexts {
		fmt.Fprintf(&b, "## %s\n%s\n", ctx, Default(ctx, f))
		for _, name := range Variables(ctx) {
			names[name] = true
			tmpl, _ := Parse("{{" + name + "}}")
			m := tmpl.Render(ctx, f)
			if m.Missing != nil || Check(ctx, name) != Known {
				t.Errorf("%s: %s is listed but %v, missing %v", ctx, name, Check(ctx, name), m.Missing)
			}
			fmt.Fprintf(&b, "%-20s %s\n", name, m.Text)
		}
	}

	golden.Equal(t, "catalog.golden", b.String())
	if len(names) != 9 {
		t.Errorf("%d names in some context, the standard has 9", len(names))
	}
}
