package settings

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

func assent() Object {
	return Object{
		{Name: "command", Value: "assent"},
		{Name: "args", Value: []string{"mcp", "gateway"}},
		{Name: "env", Value: Object{{Name: "A", Value: "b"}}},
	}
}

// changes returns texts, and the results after moving away the named members and adding one of
// ours.
func changes() map[string]struct {
	form   Form
	remove string
	in     string
	want   string
} {
	return map[string]struct {
		form   Form
		remove string
		in     string
		want   string
	}{
		"JSON with comments": {
			JSON, "a b",
			"// top\n{\n  \"x\": 1, // one\n  \"s\": {\n    // about a\n    \"a\": {\"command\": \"x\"}, // behind a\n    \"b\": {\n      " +
				"\"command\": \"y\"\n    },\n    \"c\": {\"command\": \"z\"} // last\n  },\n}\n",
			"// top\n{\n  \"x\": 1, // one\n  \"s\": {\n    // about a\n    \"assent\": {\n      \"command\": \"assent\",\n      \"args\": " +
				"[\"mcp\", \"gateway\"],\n      \"env\": {\n        \"A\": \"b\"\n      }\n    }, // behind a\n    \"c\": {\"command\": " +
				"\"z\"} // last\n  },\n}\n",
		},
		"JSON, the last ones": {
			JSON, "b c",
			"{\"s\": {\n\t\"a\": 1,\n\t\"b\": 2,\n\t\"c\": 3\n}}",
			"{\"s\": {\n\t\"a\": 1,\n\t\"assent\": {\n\t\t\"command\": \"assent\",\n\t\t\"args\": [\"mcp\", \"gateway\"],\n\t\t\"env\": {\n" +
				"\t\t\t\"A\": \"b\"\n\t\t}\n\t}\n}}",
		},
		"JSON on one line": {
			JSON, "a c",
			`{"s":{"a":1,"b":{},"c":3},"t":[]}`,
			`{"s":{"assent": {"command": "assent", "args": ["mcp", "gateway"], "env": {"A": "b"}},"b":{}},"t":[]}`,
		},
		"JSON with CRLF and a mark": {
			JSON, "a",
			"\ufeff{\r\n  \"s\": {\r\n    \"a\": 1\r\n  }\r\n}\r\n",
			"\ufeff{\r\n  \"s\": {\r\n    \"assent\": {\r\n      \"command\": \"assent\",\r\n      \"args\": [\"mcp\", \"gateway\"],\r\n      " +
				"\"env\": {\r\n        \"A\": \"b\"\r\n      }\r\n    }\r\n  }\r\n}\r\n",
		},
		"TOML": {
			TOML, "a b",
			"# top\nm = 1 # one\n\n# about a\n[s.a] # head\ncommand = \"x\" # c\n\n[s.a.env]\nK = '''\nv'''\n\n# about b\n[s.b]\nurl = \"y\"\n\n" +
				"# about t\n[t]\nx = [\n  1,\n]\n",
			"# top\nm = 1 # one\n\n# about a\n[s.assent]\ncommand = \"assent\"\nargs = [\"mcp\", \"gateway\"]\nenv = { A = \"b\" }\n\n# about " +
				"b\n\n# about t\n[t]\nx = [\n  1,\n]\n",
		},
		"TOML in lines": {
			TOML, "a",
			"[s]\na = { command = \"x\" }\nb = { command = \"y\" }\n[t]\nx = 1",
			"[s]\nassent = { command = \"assent\", args = [\"mcp\", \"gateway\"], env = { A = \"b\" } }\nb = { command = \"y\" }\n[t]\nx = 1",
		},
		"TOML with dots": {
			TOML, "a",
			"s.a.command = \"x\"\ns.a.args = []\ny = 1\n",
			"s.assent = { command = \"assent\", args = [\"mcp\", \"gateway\"], env = { A = \"b\" } }\ny = 1\n",
		},
		"YAML": {
			YAML, "a c",
			"# top\ns:\n  # about a\n  a:\n    cmd: x # c\n    text: |\n      # no comment\n\n      end\n  b: {cmd: y}\n\n  # about c\n  c:\n    " +
				"args:\n    - z\n\n# about t\nt: 1\n",
			"# top\ns:\n  # about a\n  assent:\n    command: \"assent\"\n    args: [\"mcp\", \"gateway\"]\n    env:\n      A: \"b\"\n  b: {cmd: " +
				"y}\n\n  # about c\n\n# about t\nt: 1\n",
		},
		"YAML without an end": {
			YAML, "b",
			"t: 1\ns:\n    a: 1\n    b:\n        cmd: y",
			"t: 1\ns:\n    a: 1\n    assent:\n      command: \"assent\"\n      args: [\"mcp\", \"gateway\"]\n      env:\n        A: \"b\"\n",
		},
	}
}

func TestChange(t *testing.T) {
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) {
			table := must.Get(Parse(c.form, "settings", []byte(c.in), "s"))(t)
			got := must.Get(table.Change(strings.Fields(c.remove), table.New("assent", assent())))(t)
			if string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// If nothing is replaced, members are added after the last one.
func TestAddAtTheEnd(t *testing.T) {
	entry := Object{{Name: "command", Value: "x"}}
	for in, want := range map[string]string{
		`{"s":{}}`:                       "{\"s\":{\n  \"new\": {\n    \"command\": \"x\"\n  }\n}}",
		"{\"s\":{\n \"a\":1,\n}}":        "{\"s\":{\n \"a\":1,\n \"new\": {\n  \"command\": \"x\"\n },\n}}",
		"{\"s\": {\"a\": 1} /* end */ }": "{\"s\": {\"a\": 1, \"new\": {\"command\": \"x\"}} /* end */ }",
	} {
		added(t, JSON, in, want, entry)
	}

	added(t, TOML, "[s.a]\nx=1\n# end\n[t]\n", "[s.a]\nx=1\n[s.new]\ncommand = \"x\"\n# end\n[t]\n", entry)
	added(t, YAML, "s:\n a: 1\n# end\n", "s:\n a: 1\n new:\n   command: \"x\"\n# end\n", entry)
}

// An error contains the whole path.
func TestPathsAreNamedWhole(t *testing.T) {
	for _, c := range []struct {
		form     Form
		in, want string
	}{
		{JSON, `{"s": {}}`, "f:1:1: there is no s.t to change"},
		{TOML, "[s]\nt = 1\n", "f:1:1: s.t: expected a table"},
		{TOML, "[s.t]\na = 1\n", "f:2:1: s.t is written in a way"},
		{JSON, `{"s": {"t": 1}}`, "f:1:13: the file.s.t: expected an object"},
	} {
		table, err := Parse(c.form, "f", []byte(c.in), "s", "t")
		if err == nil {
			_, err = table.Change([]string{"absent"})
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.in, err, c.want)
		}
	}
}

func added(t *testing.T, form Form, in, want string, entry Object) {
	t.Helper()
	table := must.Get(Parse(form, "settings", []byte(in), "s"))(t)
	got, err := table.Change(nil, table.New("new", entry))
	if err != nil || string(got) != want {
		t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
	}
}

// A removed member takes its comma, blanks and line with it. Comments and everything outside of
// the table stay.
func TestEdits(t *testing.T) {
	const several = "{\"s\": {\n  \"a\": 1, \"b\": 2,\n  \"c\": 3, \"d\": 4\n}}"
	for _, c := range []struct {
		form             Form
		path, in, remove string
		add              bool
		want             string
	}{
		{JSON, "s", `{"s":{"a":1,"b":2,"c":3}}`, "a", false, `{"s":{"b":2,"c":3}}`},
		{JSON, "s", `{"s":{"a":1,"b":2,"c":3}}`, "b", false, `{"s":{"a":1,"c":3}}`},
		{JSON, "s", `{"s":{"a":1,"b":2,"c":3}}`, "c", false, `{"s":{"a":1,"b":2}}`},
		{JSON, "s", `{"s":{"a":1,"b":2,"c":3}}`, "b c", false, `{"s":{"a":1}}`},
		{JSON, "s", `{"s":{"a":1,"b":2,"c":3}}`, "a b c", false, `{"s":{}}`},
		{JSON, "s", `{"s": {"a": 1, "b": 2, "c": 3}}`, "c", false, `{"s": {"a": 1, "b": 2}}`},
		{JSON, "s", `{"s": {"a": 1, "b": 2, "c": 3}}`, "b", false, `{"s": {"a": 1, "c": 3}}`},
		{
			JSON, "s", `{"s": {"a": 1 /* x */ , "b": 2 /* y */, "c": 3}}`, "a b", false,
			`{"s": { /* x */   /* y */ "c": 3}}`,
		},
		{
			JSON, "s", `{"s": {"a": 1 /* x */ , "b": 2 /* y */, "c": 3}}`, "c", false,
			`{"s": {"a": 1 /* x */ , "b": 2 /* y */}}`,
		},
		{JSON, "s", several, "b", false, "{\"s\": {\n  \"a\": 1, \n  \"c\": 3, \"d\": 4\n}}"},
		{JSON, "s", several, "a", false, "{\"s\": {\n  \"b\": 2,\n  \"c\": 3, \"d\": 4\n}}"},
		{JSON, "s", several, "c", false, "{\"s\": {\n  \"a\": 1, \"b\": 2,\n  \"d\": 4\n}}"},
		{JSON, "s", several, "d", false, "{\"s\": {\n  \"a\": 1, \"b\": 2,\n  \"c\": 3\n}}"},
		{JSON, "s", "{\"s\": {\n  \"a\": 1,\n  \"b\": 2 // c\n}}", "b", false, "{\"s\": {\n  \"a\": 1\n  // c\n}}"},
		{
			JSON, "s", "{\n\"s\": {\n\"a\": 1\n}}", "", true,
			"{\n\"s\": {\n\"a\": 1,\n\"new\": {\n  \"command\": \"x\"\n}\n}}",
		},
		{
			JSON, "s", "\r\n{\"s\": {}}", "", true,
			"\r\n{\"s\": {\r\n  \"new\": {\r\n    \"command\": \"x\"\r\n  }\r\n}}",
		},
		{JSON, "s", "\n{\"s\": {}}", "", true, "\n{\"s\": {\n  \"new\": {\n    \"command\": \"x\"\n  }\n}}"},
		{
			JSON, "s.t", `{"s": {"t": {"a": 1}, "u": 2}, "t": {"a": 1}}`, "a", true,
			`{"s": {"t": {"new": {"command": "x"}}, "u": 2}, "t": {"a": 1}}`,
		},
		{TOML, "s.t", "[s.t.a]\nx = 1\n[s.u]\ny = 1\n", "a", true, "[s.t.new]\ncommand = \"x\"\n[s.u]\ny = 1\n"},
		{TOML, "s", "[s.a]\nx = 1\n[s.b]\ny = 1\n[s.a.env]\nA = \"b\"\n[t]\nz = 1\n", "a b", false, "[t]\nz = 1\n"},
		{
			TOML, "s", "[s.a]\nx = 1\n[s.b]\ny = 1\n[s.a.env]\nA = \"b\"\n[t]\nz = 1\n", "b", true,
			"[s.a]\nx = 1\n[s.new]\ncommand = \"x\"\n[s.a.env]\nA = \"b\"\n[t]\nz = 1\n",
		},
		{TOML, "s", "[s.a]\nx = 1", "", true, "[s.a]\nx = 1\n[s.new]\ncommand = \"x\"\n"},
		{
			TOML, "s", "[s]\na = { x = 1 }\nb = 2\n[s.c]\nx = 1\n", "c", true,
			"[s]\na = { x = 1 }\nb = 2\nnew = { command = \"x\" }\n",
		},
		{YAML, "s.t", "s:\n  t:\n    a: 1\n  u: 2\n", "a", true, "s:\n  t:\n    new:\n      command: \"x\"\n  u: 2\n"},
		{YAML, "s", "s:\n  a: 1", "", true, "s:\n  a: 1\n  new:\n    command: \"x\"\n"},
		{YAML, "s", "s:\n  a:\n    x: 1\n# c\n    y: 2\n  b: 3\n", "a", false, "s:\n  b: 3\n"},
		{YAML, "s", "s:\n  a:\n    x: 1\n#c\n  b: 3\n", "a", false, "s:\n#c\n  b: 3\n"},
	} {
		table, err := Parse(c.form, "settings", []byte(c.in), strings.Split(c.path, ".")...)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		var add []Member
		if c.add {
			add = append(add, table.New("new", Object{{Name: "command", Value: "x"}}))
		}
		got, err := table.Change(strings.Fields(c.remove), add...)
		if err != nil || string(got) != c.want {
			t.Errorf("%q without %q:\ngot  %q, %v\nwant %q", c.in, c.remove, got, err, c.want)
		}
	}
}

// A member written as a table is inserted after the lines of another table.
func TestMovedTablesOfTOML(t *testing.T) {
	from := must.Get(Parse(TOML, "f", []byte("[s.n]\nx = 1\n"), "s"))(t)
	for _, c := range []struct{ in, remove, want string }{
		{"[s]\na = 1\n[t]\nz = 1\n", "", "[s]\na = 1\n[t]\nz = 1\n[s.n]\nx = 1\n"},
		{"[s]\na = 1\nb = 2\n", "a", "[s]\nb = 2\n[s.n]\nx = 1\n"},
		{"[s.b]\ny = 1\n[t]\nz = 1", "", "[s.b]\ny = 1\n[s.n]\nx = 1\n[t]\nz = 1"},
	} {
		to := must.Get(Parse(TOML, "f", []byte(c.in), "s"))(t)
		got, err := to.Change(strings.Fields(c.remove), from.Members()...)
		if err != nil || string(got) != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
}

// A change whose result differs from the request is refused, even if the text is valid.
func TestChangeIsVerified(t *testing.T) {
	for _, c := range []struct {
		form   Form
		in     string
		remove []string
		add    []Member
	}{
		{JSON, `{"s":{}}`, []string{"absent"}, nil},
		{JSON, `{"s":{"a":1}}`, nil, []Member{{Name: "a", Value: json.Number("1"), Text: `"a": 1`}}},
		{JSON, `{"s":{"a":1}}`, []string{"a"}, []Member{{Name: "b", Value: json.Number("1"), Text: `"b": 2`}}},
		{JSON, `{"s":{"a":1}}`, []string{"a"}, []Member{{Name: "b", Value: json.Number("1"), Text: `"b": `}}},
		{JSON, `{"s":{"a":1}}`, []string{"a"}, []Member{{Name: "b", Value: json.Number("1"), Text: `"b": 1}, "t": {`}}},
		{YAML, "o: &k 1\ns:\n  a: &k 2\n  b: 3\nt: *k\n", []string{"a"}, nil},
	} {
		table, err := Parse(c.form, "f", []byte(c.in), "s")
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		got, err := table.Change(c.remove, c.add...)
		if err == nil || !strings.Contains(err.Error(), ":1: s is written in a way") {
			t.Errorf("%q: got %q, %v", c.in, got, err)
		}
	}
}

func TestNamesAndTextsAreQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"plain-name_1": "plain-name_1", "nothing": "nothing",
		"": `""`, "a b": `"a b"`, "1a": `"1a"`, "a.b": `"a.b"`, "ä": `"ä"`,
		"true": `"true"`, "False": `"False"`, "null": `"null"`, "YES": `"YES"`, "no": `"no"`, "on": `"on"`,
		"off": `"off"`, "y": `"y"`, "n": `"n"`,
	} {
		if got := quoteUnless(name); got != want {
			t.Errorf("%q is written %s, want %s", name, got, want)
		}
	}
	if got, want := quote("<&>\x7f\n\""), `"<&>\u007f\n\""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Lines count from 1 in every format.
func TestMembersHaveTheirLine(t *testing.T) {
	for form, text := range map[Form]string{
		JSON: "{\n \"s\": {\n  \"a\": 1, \"b\": 2,\n  \"c\": [\n3]}}",
		TOML: "\n[s]\na = 1\nb.x = 2\nc.y = 3\n",
		YAML: "\ns:\n  a: 1\n  b: 2\n  c: 3\n",
	} {
		table := must.Get(Parse(form, "f", []byte(text), "s"))(t)
		var lines []int
		for _, m := range table.Members() {
			lines = append(lines, m.Line)
		}
		want := []int{3, 4, 5}
		if form == JSON {
			want = []int{3, 3, 4}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%q: lines %v, want %v", text, lines, want)
		}
		if table.Member("d") != nil || table.Member("c") == nil {
			t.Errorf("%q: %v, %v", text, table.Member("c"), table.Member("d"))
		}
	}
}

// Closed brackets do not count as depth, and a file may be as large as the limit.
func TestBoundsOfATable(t *testing.T) {
	for _, siblings := range []string{"[]", "{}"} {
		text := `{"s": {"a": [` + strings.Repeat(siblings+",", 1100) + `1]}}`
		if _, err := Parse(JSON, "f", []byte(text), "s"); err != nil {
			t.Error(err)
		}
	}
	for size, want := range map[int]string{
		64<<20 + 1: "f:1:1: this file has more than 64 MiB",
		64 << 20:   "f:1:1: this is no text in UTF-8",
	} {
		if _, err := Parse(JSON, "f", make([]byte, size), "s"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Texts that two programs could read differently, or that can't be changed without changing
// more, are refused with the position.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		form Form
		in   string
		want string
	}{
		{JSON, "{\n \"s\": {\"a\": 1, \"b\"}}", "f:2:19: this is no JSON"},
		{JSON, "{\"s\": {\"a\": 1,\n \"a\": 2}}", `f:2:2: "a" stands here twice`},
		{JSON, "{\"ä\": 1, \"s\": []}", "f:1:15: the file.s: expected an object"},
		{JSON, "[]", "f:1:1: the file: expected an object"},
		{JSON, "\xff\xfe{\x00", "f:1:1: this is no text in UTF-8"},
		{JSON, strings.Repeat("[", 2000), "f:1:1001: this is nested more than 1000 deep"},
		{JSON, "<plist/>", "f:1:1: this is no JSON"},
		{JSON, "1", "f:1:1: the file: expected an object"},
		{JSON, "{\"s\x00\": {}}", "f:1:4: this is no text in UTF-8"},
		{JSON, strings.Repeat("{", 1001), "f:1:1001: this is nested more than 1000 deep"},
		{JSON, "{\"s\": [{\"a\": 1, \"a\": 2}]}", `f:1:17: "a" stands here twice`},
		{TOML, "x", "f:1:"},
		{TOML, "[s.a]\nx = 1\nx = 2\n", "f:3:1: this is no TOML"},
		{TOML, "x = 1\n[s.a\n", "f:2:"},
		{TOML, "s = 1\n", "f:1:1: s: expected a table"},
		{TOML, "s = { a = { x = 1 } }\n", "f:1:1: s is written in a way"},
		{YAML, "s:\n  a: 1\n  a: 2\n", "f:3:3: "},
		{YAML, "s: {a: {x: 1}}\n", "f:1:4: this is written in braces"},
		{YAML, "s: [1]\n", "f:1:4: expected names with values"},
		{YAML, "s:\n  a: &x {c: 1}\nt: *x\n", "f:2:1: s is written in a way"},
		{YAML, "s:\n  a: 1\r  b: 2\n", "f:2:7: programs differ in whether a line ends here"},
		{YAML, "t: \"\u2028\"\n", "f:1:5: programs differ in whether a line ends here"},
		{YAML, "t: 1\n", "f:1:1: there is no s to change"},
		{TOML, "", "f:1:1: there is no s to change"},
		{JSON, "{}", "f:1:1: there is no s to change"},
	} {
		table, err := Parse(c.form, "f", []byte(c.in), "s")
		if err == nil {
			_, err = table.Change([]string{"a"}, table.New("assent", assent()))
		}
		var place *Error
		if !errors.As(err, &place) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.in, err, c.want)
		}
	}
}

// Only values that are not hidden are shown.
func TestMasked(t *testing.T) {
	hide := func(path []string) bool { return len(path) < 3 || path[2] == "env" }
	for in, want := range map[string]string{
		`{"k": "S", "s": {"a": {"command": "x", "env": {"A": "S"}}}}`: `{"k": "***", "s": {"a": {"command": "x", "env": {"A": ` +
			`"***"}}}}`,
	} {
		masked(t, JSON, in, want, hide)
	}

	masked(t, JSON, `{"s": {"a": {"env": ["S", {"K": "S"}], "b": ["x"]}}}`,
		`{"s": {"a": {"env": ["***", {"K": "***"}], "b": ["x"]}}}`, hide)
	masked(t, YAML, "s:\n  a:\n    env: [S, {K: S}]\n    b: [x]\n",
		"s:\n  a:\n    env: [\"***\", {K: \"***\"}]\n    b: [x]\n", hide)
	masked(t, TOML, "k = 'S'\n[s.a]\ncommand='x'\nenv = {A = 'S', B=[\"S\"]}\n",
		"k = \"***\"\n[s.a]\ncommand='x'\nenv = {A = \"***\", B=\"***\"}\n", hide)
	masked(t, YAML, "k: S\ns:\n  a:\n    command: x\n    env:\n      A: >\n        S\n      B: \"S\"\n",
		"k: \"***\"\ns:\n  a:\n    command: x\n    env:\n      A: \"***\"\n      B: \"***\"\n", hide)
}

func masked(t *testing.T, form Form, in, want string, hide func([]string) bool) {
	t.Helper()
	table := must.Get(Parse(form, "f", []byte(in), "s"))(t)
	if got := string(table.Masked(hide)); got != want {
		t.Errorf("%q is shown as %q, want %q", in, got, want)
	}
}
