package schema

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// TestMisspeltAllow checks that a list with an old name keeps its node, so that decisions can ask.
func TestMisspeltAllow(t *testing.T) {
	a, _ := Parse("a", readFile(t, "testdata/bad/renamed.agf.yaml"))
	crm := a.ActionSpace.MCPServers[0]
	erp := a.ActionSpace.MCPServers[1]
	bank := a.ActionSpace.RemoteAgents[0]
	if crm.MisspeltAllow == nil || crm.AllowedTools != nil || erp.MisspeltAllow == nil || len(*erp.AllowedTools) != 1 ||
		bank.MisspeltAllow == nil {
		t.Errorf("crm %+v, erp %+v, bank %+v", crm, erp, bank)
	}
}

func form(a *Approval) string {
	switch {
	case a == nil:
		return "none"
	case a.Template != nil:
		return a.Form.String() + " with template"
	default:
		return a.Form.String()
	}
}

func TestParseApproval(t *testing.T) {
	tests := []struct{ yaml, want string }{
		{"true", "always"},
		{"false", "never"},
		{"{}", "always"},
		{"{conditions: {args_match: {a: 1}}}", "always"},
		{"{args_match: {a: 1}}", "always"},
		{"{message_template: Really}", "always with template"},
		{"{condition: {args_match: {a: 1}}}", "conditional"},
		{"{condition: {args_match: {a: 1}}, messagetemplate: x}", "conditional"},
		// Values that the JSON Schema refuses always ask, in case one gets here.
		{"null", "always"},
		{"no", "always"},
		{"0", "always"},
		{"[]", "always"},
		{"{message_template: 5}", "always"},
	}
	for _, test := range tests {
		doc, findings := yamldoc.Parse("", []byte("approval: "+test.yaml), yamldoc.Limits{})
		if doc == nil {
			t.Fatalf("%s: %v", test.yaml, findings)
		}
		a, findings := ParseApproval(doc.Root.Get("approval"), condition.AgentFormat)
		if got := form(a); got != test.want || len(findings) > 0 ||
			span(a.Range) != span(doc.Root.Get("approval").Range) {
			t.Errorf("%s: %s, want %s; findings %v", test.yaml, got, test.want, findings)
		}
	}

	if a, findings := ParseApproval(nil, condition.AgentFormat); a != nil || findings != nil {
		t.Errorf("no approval: %v, %v", a, findings)
	}
}

func TestParsePath(t *testing.T) {
	tests := []struct{ text, want string }{
		{"parent.input.query", "parent input [query]"},
		{"a_1.output.b.C2", "a_1 output [b C2]"},
		{"parent.input.items.[].value", "parent input [items [] value]"},
		{"parent.input.rows.[].[]", "parent input [rows [] []]"},
		{"", `0+0 "" is no path`},
		{"query", `0+5 "query" is no path`},
		{"parent.input", `0+12 "parent.input" names no field`},
		{"parent.query.x", `7+5 "query" is no direction`},
		{"parent.Input.x", `7+5 "Input" is no direction`},
		{"parent.input.", "13+0 a segment of the path is empty"},
		{".input.x", "0+0 a segment of the path is empty"},
		{"1st.input.x", `0+3 "1st" can't stand in a path`},
		{"parent.input.order-id", `13+8 "order-id" can't stand in a path`},
		{"parent.input.a b", `13+3 "a b" can't stand in a path`},
		{"parent.input.größe", `13+7 "größe" can't stand in a path`},
		{"parent.input.[].x", "13+2 a path starts with the name of a field, not with []"},
		{"[].input.x", `0+2 "[]" can't stand in a path`},
		{"parent.input.items[].x", `13+7 "items[]" runs into its []`},
		{"parent.input.items.[0]", `19+3 "[0]" can't stand in a path`},
		{" parent.input.x", `0+7 " parent" can't stand in a path`},
	}
	for _, test := range tests {
		path, bad := parsePath(test.text)
		got := fmt.Sprint(path.Source, " ", path.Direction, " ", path.Fields)
		if bad != nil {
			got = fmt.Sprintf("%d+%d %s", bad.offset, bad.length, bad.message)
		}
		if got != test.want {
			t.Errorf("%q: %s, want %s", test.text, got, test.want)
		}
	}
}

// TestPathsAreWhatTheGrammarSays draws texts similar to paths. Exactly those that follow the
// grammar are accepted, and the path equals the text.
func TestPathsAreWhatTheGrammarSays(t *testing.T) {
	segment := rapid.SampledFrom(
		[]string{"parent", "input", "output", "a", "_b", "C9", "[]", "", "9", "a-b", "é", "x[]"},
	)
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(segment, 0, 6).Draw(t, "segments")
		text := strings.Join(segments, ".")
		name := func(s string) bool {
			return slices.Contains([]string{"parent", "input", "output", "a", "_b", "C9"}, s)
		}
		want := len(segments) >= 3 && name(segments[0]) && (segments[1] == "input" || segments[1] == "output") &&
			name(segments[2])
		for _, s := range segments[min(3, len(segments)):] {
			want = want && (s == "[]" || name(s))
		}
		path, bad := parsePath(text)
		if (bad == nil) != want {
			t.Fatalf("%q: read %v, want %v", text, bad == nil, want)
		}
		if bad == nil && path.Source+"."+path.Direction+"."+strings.Join(path.Fields, ".") != text {
			t.Fatalf("%q was read as %v", text, path)
		}
		if bad != nil && (bad.offset < 0 || bad.offset+bad.length > len(text)) {
			t.Fatalf("%q: %d+%d is outside", text, bad.offset, bad.length)
		}
	})
}

// TestVendorIDs checks that x-<vendor>.<name> is accepted, and that any other id must be known.
func TestVendorIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"x-acme.react": true,
		"x-a.b.c":      true,
		"x-.a":         false,
		"x-acme":       false,
		"x-acme.":      false,
		"acme.react":   false,
		"agf.react":    false,
		"X-acme.a":     false,
	} {
		if isVendorID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}

// TestUnknownFieldsNeverStop adds unknown fields everywhere in good
// files: they still load, each is reported, and x- fields are not.
func TestUnknownFieldsNeverStop(t *testing.T) {
	good := agents(t, "good")
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom(good).Draw(t, "file")
		parsed, _ := yamldoc.Parse(file, readFile(t, file), yamldoc.Limits{})
		doc := parsed.Root.Any()
		at := rapid.SampledFrom(places(doc)).Draw(t, "place")
		name := rapid.SampledFrom([]string{"aproval", "zzz", "x-mine", "Alias", "describtion"}).Draw(t, "name")
		text := encode(t, edit(doc, at, with(name, "v")))
		before, _ := Parse(file, encode(t, doc))
		after, findings := Parse(file, text)
		if violated := compiled().Validate(decode(text)); (after == nil) != (violated != nil) || before == nil {
			t.Fatalf("%v: agent read %v, JSON Schema says %v\n%s", at, after != nil, violated, render(findings))
		}
		for _, f := range findings {
			if f.Rule == ruleUnknownField && name == "x-mine" {
				t.Fatalf("an extension is reported: %s", f.Message)
			}
		}
	})
}

// TestBadInput checks that Parse returns findings that stop the load for any bad input.
func TestBadInput(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	tests := map[string][]byte{
		"100 MB":              bytes.Repeat([]byte("a: b\n"), 20<<20),
		"a deep list":         []byte("x: " + deep),
		"deep mappings":       []byte(strings.Repeat(`{"a":`, 100_000)),
		"bad UTF-8":           []byte("schema_version: \"\xff\"\n"),
		"a null byte":         []byte("schema_version: \"1.0.0\"\x00\n"),
		"UTF-16":              []byte("\xff\xfea\x00:\x00"),
		"a huge number":       []byte("schema_version: 1e999999999\n"),
		"a long number":       append([]byte("schema_version: "), bytes.Repeat([]byte("9"), 3<<20)...),
		"a number":            []byte("5"),
		"text":                []byte("agent"),
		"a tag":               []byte("!!python/object:os.system {}"),
		"a key that is a map": []byte("{a: b}: c"),
		"nothing":             nil,
	}
	for name, src := range tests {
		agent, findings := Parse("bad.agf.yaml", src)
		if agent != nil || !slices.ContainsFunc(findings, func(f diag.Finding) bool {
			return f.Stops && f.File == "bad.agf.yaml"
		}) {
			t.Errorf("%s: agent read: %v, %d findings", name, agent != nil, len(findings))
		}
	}
}

// TestRegexStopsTheLoad checks a bad pattern in every place that may have a condition.
func TestRegexStopsTheLoad(t *testing.T) {
	for file, place := range map[string]string{
		"loop":        "{gte: 0.9}",
		"conditional": "{lt: 10}",
		"react":       "{pattern: archive}",
	} {
		src := bytes.Replace(readFile(t, "testdata/good/"+file+".agf.yaml"), []byte(place), []byte(`{pattern: "("}`), 1)
		agent, findings := Parse(file, src)
		if agent != nil || !yamldoc.Stops(findings) {
			t.Errorf("%s: agent read: %v\n%s", file, agent != nil, render(findings))
		}
	}
}

func TestForms(t *testing.T) {
	if got := fmt.Sprint(Always, Conditional, Never); got != "always conditional never" {
		t.Error(got)
	}
	if a, _ := Parse(
		"",
		readFile(t, "testdata/good/react.agf.yaml"),
	); a.ActionSpace.LocalTools[1].Approval.Condition.Groups[0].Matchers[0].Tests[0].Op != condition.Gt {
		t.Error("the condition is not read")
	}
}

// mistakes are files with n mistakes of one kind.
type mistakes struct {
	name, src string
	rule      string
	atLeast   int
}

func manyMistakes(n int) []mistakes {
	lines := func(format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	head := agentFile()
	steps := strings.Replace(
		head,
		"execution_policy: {id: agf.react, config: {instructions: Do it., model: m}}\n",
		"",
		1,
	) +
		"execution_policy:\n  id: agf.sequential\n  config:\n    steps:\n"
	return []mistakes{
		{"unknown fields", head + lines("a#: 1\n"), ruleUnknownField, n},
		{
			"unknown fields of an approval",
			head + "action_space:\n  local_tools:\n    - alias: a\n      approval:\n" + lines("        a#: 1\n"),
			ruleUnknownField,
			n,
		},
		{
			"equal aliases",
			head + "action_space:\n  local_tools:\n" + lines("    - alias: a\n"),
			ruleDuplicateAlias,
			n - 1,
		},
		{"wrong aliases", head + "action_space:\n  local_tools:\n" + lines("    - alias: -#-\n"), ruleInvalidValue, n},
		{
			"wrong values of one mapping",
			head + "action_space:\n  local_tools:\n    - alias: a\n      approval:\n        condition:\n          " +
				"args_match:\n" + lines("            a#: []\n"),
			ruleWrongType,
			n,
		},
		{
			"unknown operators",
			head + "action_space:\n  local_tools:\n    - alias: a\n      approval:\n        condition:\n          " +
				"args_match:\n            x:\n" + lines("              a#: 1\n"),
			ruleUnknownOperator,
			n,
		},
		{
			"unknown agents",
			steps + lines("      - {agent: a#}\n") + "action_space:\n  local_agents:\n" + lines(
				"    - {alias: b#, source: s}\n",
			),
			ruleUnknownAgent,
			n,
		},
		{
			"unknown sources",
			steps + lines(
				"      - {agent: a, input_mapping: {x: z#.output.y}}\n",
			) + "action_space:\n  local_agents: [{alias: a, source: s}]\n",
			ruleUnknownSource,
			n,
		},
	}
}

// TestManyMistakes checks that all are found, and that time is linear in the size of the file, so that
// the limit on the size also limits the time.
func TestManyMistakes(t *testing.T) {
	for i, test := range manyMistakes(2_000) {
		_, findings := Parse("many", []byte(test.src))
		count := 0
		for _, f := range findings {
			if f.Rule == test.rule {
				count++
			}
		}
		if count < test.atLeast {
			t.Errorf(
				"%s: %d findings of %s among %d\n%s",
				test.name,
				count,
				test.rule,
				len(findings),
				render(findings[:min(3, len(findings))]),
			)
		}
		t.Run(test.name, func(t *testing.T) {
			growth.Linear(t, 500, func(n int) func() {
				src := []byte(manyMistakes(n)[i].src)
				return func() { Parse("many", src) }
			})
		})
	}
}
