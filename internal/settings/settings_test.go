package settings

import (
	"errors"
	"strings"
	"testing"
)

func assent() Object {
	return Object{
		{Name: "command", Value: "assent"},
		{Name: "args", Value: []string{"mcp", "gateway"}},
		{Name: "env", Value: Object{{Name: "A", Value: "b"}}},
	}
}

// changes are texts with what becomes of them when the members named
// are moved away and one of ours is put there.
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
			table, err := Parse(c.form, "settings", []byte(c.in), "s")
			if err != nil {
				t.Fatal(err)
			}
			got, err := table.Change(strings.Fields(c.remove), table.New("assent", assent()))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestAddAtTheEnd: with nothing to replace, members come behind the
// last one.
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

func added(t *testing.T, form Form, in, want string, entry Object) {
	t.Helper()
	table, err := Parse(form, "settings", []byte(in), "s")
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.Change(nil, table.New("new", entry))
	if err != nil || string(got) != want {
		t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
	}
}

// TestRefusals: what two programs could read differently, or can't be
// changed without changing more, is refused with its place.
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

// TestMasked: only what is not hidden is shown.
func TestMasked(t *testing.T) {
	hide := func(path []string) bool { return len(path) < 3 || path[2] == "env" }
	for in, want := range map[string]string{
		`{"k": "S", "s": {"a": {"command": "x", "env": {"A": "S"}}}}`: `{"k": "***", "s": {"a": {"command": "x", "env": {"A": ` +
			`"***"}}}}`,
	} {
		masked(t, JSON, in, want, hide)
	}

	masked(t, TOML, "k = 'S'\n[s.a]\ncommand='x'\nenv = {A = 'S', B=[\"S\"]}\n",
		"k = \"***\"\n[s.a]\ncommand='x'\nenv = {A = \"***\", B=\"***\"}\n", hide)
	masked(t, YAML, "k: S\ns:\n  a:\n    command: x\n    env:\n      A: >\n        S\n      B: \"S\"\n",
		"k: \"***\"\ns:\n  a:\n    command: x\n    env:\n      A: \"***\"\n      B: \"***\"\n", hide)
}

func masked(t *testing.T, form Form, in, want string, hide func([]string) bool) {
	t.Helper()
	table, err := Parse(form, "f", []byte(in), "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(table.Masked(hide)); got != want {
		t.Errorf("%q is shown as %q, want %q", in, got, want)
	}
}
