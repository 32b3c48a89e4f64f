package yamldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	yaml "gopkg.in/yaml.v3"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/internal/must"
)

// The golden files have the text report of the findings in each testdata/bad/*.yaml.
func TestBad(t *testing.T) {
	for _, file := range glob(t, "testdata/bad/*.yaml") {
		src := read(t, file)
		name := filepath.Base(file)
		_, fs := Parse(name, src, Limits{})
		if len(fs) == 0 {
			t.Errorf("%s: no findings", file)
		}
		var out bytes.Buffer
		w := diag.NewText(&out, diag.Options{Source: func(string) []byte { return src }})
		must.Do(t, w.File(diag.Report{File: name, Findings: fs}))
		golden.Equal(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")+".golden", out.String())
	}
}

// The golden files have the tree of each testdata/good/*.yaml: kinds, ranges, texts, comments.
func TestGood(t *testing.T) {
	for _, file := range glob(t, "testdata/good/*.yaml") {
		d, fs := Parse(file, read(t, file), Limits{})
		if d == nil || len(fs) > 0 {
			t.Errorf("%s: %v", file, fs)
			continue
		}
		var out strings.Builder
		dump(&out, d.Root, "")
		for _, c := range d.Comments {
			fmt.Fprintf(&out, "comment %d %q alone=%v\n", c.Line, c.Text, c.Alone)
		}
		golden.Equal(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")+".golden", out.String())
	}
}

func dump(out *strings.Builder, n *Node, name string) {
	r := n.Range
	fmt.Fprintf(out, "%d:%d-%d:%d %s%s", r.Start.Line, r.Start.Column, r.End.Line, r.End.Column, name, n.Kind)
	if n.Kind < Sequence {
		fmt.Fprintf(out, " %q", n.Text)
	}
	out.WriteString("\n")
	for i, item := range n.Items {
		dump(out, item, fmt.Sprintf("%s%d: ", strings.Repeat(" ", len(name)), i))
	}
	for _, f := range n.Fields {
		dump(out, f.Value, strings.Repeat(" ", len(name))+f.Key.Text+": ")
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no files: ", pattern, err)
	}
	return files
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(file))(t)
}

func parseOne(t *testing.T, text string) *Node {
	t.Helper()
	d, fs := Parse("f", []byte(text), Limits{})
	if d == nil {
		t.Fatalf("%q: %v", text, fs)
	}
	return d.Root
}

// Each line of the table has a scalar, our kind and value, and the rule that warns of another
// reading.
func TestScalars(t *testing.T) {
	for line := range strings.Lines(string(read(t, "testdata/scalars.txt"))) {
		text, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		d, fs := Parse("f", []byte("k: "+text+"\n"), Limits{})
		if d == nil {
			t.Errorf("%s: %v", text, fs)
			continue
		}
		rule := ""
		if len(fs) > 0 {
			rule = fs[0].Rule
		}
		v := d.Root.Get("k").Any()
		if got := fmt.Sprintf("%T %v\t%s", v, v, rule); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}

	if f, ok := parseOne(t, "k: .NaN\n").Get("k").Any().(float64); !ok || !math.IsNaN(f) {
		t.Error(".NaN is not NaN")
	}
}

func num(s string) json.Number { return json.Number(s) }

func TestKeysAllowed(t *testing.T) {
	for _, key := range []string{
		"a",
		"x y",
		"y",
		"n",
		"'1'",
		`"on"`,
		"a.b.c",
		"$ref",
		"日本",
		"x-vendor",
		"'<<'",
		"''",
		"!!str a",
	} {
		if d, fs := Parse("f", []byte(key+": v\n"), Limits{}); d == nil || len(fs) > 0 {
			t.Errorf("%s: %v", key, fs)
		}
	}
}

func TestAccess(t *testing.T) {
	n := parseOne(t, "a: {b: [1, x]}\n")
	if got := n.Get("a").Get("b").Items[1].Text; got != "x" {
		t.Error(got)
	}
	if n.Get("z") != nil || n.Field("z") != nil || n.Get("z").Get("y") != nil || n.Field("a").Key.Text != "a" {
		t.Error("absent fields")
	}
	want := map[string]any{"a": map[string]any{"b": []any{num("1"), "x"}}}
	if got := n.Any(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for k, want := range []string{"null", "boolean", "number", "string", "array", "object"} {
		if got := Kind(k).String(); got != want {
			t.Errorf("%d: %s", k, got)
		}
	}
}

// Each rule reports its bad example, no rule reports its good one, and there are no other
// rules.
func TestRules(t *testing.T) {
	known := map[string]bool{}
	last := ""
	for _, r := range Rules() {
		if r.ID <= last || r.Title == "" || r.Why == "" || r.Good == "" || r.Spec == "" {
			t.Errorf("%s is not complete or not in order", r.ID)
		}
		last = r.ID
		known[r.ID] = true
		if d, fs := Parse("f", []byte(r.Good), Limits{}); d == nil || len(fs) > 0 {
			t.Errorf("%s: the good example: %v", r.ID, fs)
		}
		if r.Bad == "" {
			continue
		}
		_, fs := Parse("f", []byte(r.Bad), Limits{})
		if len(fs) != 1 || fs[0].Rule != r.ID || fs[0].Severity != r.Severity ||
			fs[0].Stops != (r.Severity == diag.Error) ||
			fs[0].File != "f" {
			t.Errorf("%s: the bad example: %v", r.ID, fs)
		}
	}

	for _, file := range glob(t, "testdata/bad/*.yaml") {
		_, fs := Parse(file, read(t, file), Limits{})
		for _, f := range fs {
			if !known[f.Rule] {
				t.Errorf("%s: %s is not in Rules", file, f.Rule)
			}
		}
	}
}

func TestAliases(t *testing.T) {
	n := parseOne(t, "base: &b {x: [1, 2]}\none: *b\ntwo: [*b, *b]\ntext: &t hi\nmore: *t\n&k key: *t\n")
	if n.Get("one") != n.Get("base") || n.Get("two").Items[1] != n.Get("base") || n.Get("more").Text != "hi" ||
		n.Get("key").Text != "hi" {
		t.Error("an alias is not its anchor's node")
	}
	if end := n.Get("two").Range.End; end != (diag.Position{Line: 3, Column: 14}) {
		t.Error(end)
	}
}

func TestLimits(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		bomb += fmt.Sprintf(
			"%c: &%c [*%s, *%s, *%s, *%s, *%s, *%s, *%s, *%s, *%s, *%s]\n",
			c,
			c,
			p,
			p,
			p,
			p,
			p,
			p,
			p,
			p,
			p,
			p,
		)
	}

	deep := func(n int) string {
		return strings.Repeat("[", n) + strings.Repeat("]", n) + "\n"
	}
	for name, c := range map[string]struct {
		text string
		lim  Limits
		rule string
	}{
		"bytes":            {"a: 1\n", Limits{MaxBytes: 4}, ruleTooLarge},
		"nodes":            {"[a, b, c]\n", Limits{MaxNodes: 3}, ruleTooLarge},
		"nodes json":       {`["a", "b", "c"]`, Limits{MaxNodes: 3}, ruleTooLarge},
		"depth":            {deep(65), Limits{}, ruleTooDeep},
		"depth json":       {`{"a":` + deep(64) + `}`, Limits{}, ruleTooDeep},
		"depth yaml.v3":    {strings.Repeat("[", 20_000), Limits{}, ruleSyntax},
		"depth block":      {strings.Repeat("- ", 65) + "x\n", Limits{}, ruleTooDeep},
		"depth by aliases": {"a: &a [[[x]]]\nb: [[*a]]\n", Limits{MaxDepth: 5}, ruleTooDeep},
		"alias bomb":       {bomb, Limits{}, ruleAlias},
		"alias nodes":      {"a: &a [x, x, x]\nb: [*a, *a]\n", Limits{MaxAliasNodes: 7}, ruleAlias},
		"aliases as nodes": {"a: &a [x, x, x]\nb: [*a, *a]\n", Limits{MaxNodes: 12}, ruleTooLarge},
		"self":             {"a: &a [b, *a]\n", Limits{}, ruleAlias},
		"self in mapping":  {"a: &a {b: *a}\n", Limits{}, ruleAlias},
		"long number":      {"a: 1" + strings.Repeat("0", 2000) + "\n", Limits{}, ruleNumber},
		"long fraction":    {"a: 0." + strings.Repeat("1", 2000) + "\n", Limits{}, ruleNumber},
		"long hex":         {"a: 0x" + strings.Repeat("f", 2000) + "\n", Limits{}, ruleNumber},
		"huge hex":         {"a: 0x" + strings.Repeat("f", 900) + "\n", Limits{}, ruleNumber},
		"overflow":         {"a: 1.0e+400\n", Limits{}, ruleNumber},
		"underflow":        {"a: 1.0e-400\n", Limits{}, ruleNumber},
	} {
		d, fs := Parse("f", []byte(c.text), c.lim)
		if d != nil || len(fs) != 1 || fs[0].Rule != c.rule || !fs[0].Stops {
			t.Errorf("%s: %v", name, fs)
		}
	}

	if d, fs := Parse("f", []byte(deep(64)), Limits{}); d == nil {
		t.Error(fs)
	}
	if d, fs := Parse("f", []byte("a: &a [x, x, x]\nb: [*a, *a]\n"), Limits{MaxAliasNodes: 8, MaxNodes: 17}); d == nil {
		t.Error(fs)
	}
}

// A file over the limit is refused by its size alone.
func TestHundredMegabytes(t *testing.T) {
	big := make([]byte, 100<<20)
	allocated := testing.AllocsPerRun(1, func() {
		if d, fs := Parse("f", big, Limits{}); d != nil || len(fs) != 1 || fs[0].Rule != ruleTooLarge {
			t.Error(fs)
		}
	})
	if allocated > 50 {
		t.Errorf("%v allocations", allocated)
	}
}

// Files with any repeated content are read or refused, and the number of findings is limited.
func TestHostileShapes(t *testing.T) {
	for _, unit := range []string{
		"#\n",
		"[",
		"{a: ",
		"- ",
		"? ",
		"a:\n",
		"a: 1 # x\n# y\n",
		"&a ",
		"- &a b\n- *a\n",
		"word ",
		"\n",
		" ",
		"\"\\u0041",
		"- yes\n",
		"a: 1\n",
		"---\n",
		"- !!str a\n",
		"- |\n  x\n",
		"- a\n\n# c\n\n",
		"a:\n  b: 1\n  # c\n\n",
		"[]\n",
		": ",
		"[[],",
		"%A\n",
		"! ",
		"é: ",
		"\t",
		"'",
		"`",
		"- >-\n\n",
	} {
		if _, fs := Parse("f", []byte(strings.Repeat(unit, 64<<10/len(unit))), Limits{}); len(fs) > 2*maxFindings {
			t.Errorf("%q: %d findings", unit, len(fs))
		}
	}
}

func TestEncodings(t *testing.T) {
	if got := parseOne(t, "\ufeffkey: v\n"); got.Get("key").Range.Start != (diag.Position{Line: 1, Column: 6}) {
		t.Errorf("the byte order mark counts: %v", got.Get("key").Range)
	}
	for text, want := range map[string]string{
		"\xff\xfea\x00":           "1:1 yaml-encoding the file is UTF-16",
		"\xfe\xff\x00a":           "1:1 yaml-encoding the file is UTF-16",
		"\xff\xfe\x00\x00a\x00":   "1:1 yaml-encoding the file is UTF-32",
		"\x00\x00\xfe\xff":        "1:1 yaml-encoding the file is UTF-32",
		"a\x00:\x00":              "1:1 yaml-encoding the file is UTF-16",
		"\x00a\x00:":              "1:1 yaml-encoding the file is UTF-16",
		"a: é\nb: \xe9\n":         "2:4 yaml-encoding byte 0xE9 is not UTF-8",
		"a: \xed\xa0\x80\n":       "1:4 yaml-encoding byte 0xED is not UTF-8",
		"a: \x00\n":               "1:4 yaml-character control character U+0000",
		"a: \x1b[0m\n":            "1:4 yaml-character control character U+001B",
		"a: \x7f\n":               "1:4 yaml-character control character U+007F",
		"a: \u0090\n":             "1:4 yaml-character control character U+0090",
		"a: \u0085\n":             "1:4 yaml-character line break that readers disagree about: U+0085",
		"# a\u2029\n":             "1:4 yaml-character line break that readers disagree about: U+2029",
		"a: x\ufeffy\n":           "1:5 yaml-character byte order mark inside the text: U+FEFF",
		"a: \uffff\n":             "1:4 yaml-character forbidden character U+FFFF",
		"{\"a\": \"\x01\"}":       "1:8 yaml-character control character U+0001",
		`{"a": "\ud83d"}`:         "1:8 yaml-character half of a surrogate pair",
		`{"a": "\ude00\ud83d"}`:   "1:8 yaml-character half of a surrogate pair",
		`{"\\\ud83d\u0041": "x"}`: "1:5 yaml-character half of a surrogate pair",
	} {
		d, fs := Parse("f", []byte(text), Limits{})
		if d != nil || len(fs) != 1 {
			t.Errorf("%q: %v", text, fs)
			continue
		}
		p := fs[0].Range.Start
		if got := fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, fs[0].Rule, fs[0].Message); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestLineBreaks(t *testing.T) {
	want := map[string]any{"a": "x y", "b": "l1\nl2\n", "c": num("1")}
	for _, br := range []string{"\n", "\r\n", "\r"} {
		n := parseOne(t, strings.ReplaceAll("a: x\n  y\nb: |\n  l1\n  l2\nc: 1\n", "\n", br))
		if got := n.Any(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v", br, got)
		}
		if r := n.Get("b").At(3, 2); r.Start != (diag.Position{Line: 5, Column: 3}) ||
			r.End != (diag.Position{Line: 5, Column: 5}) {
			t.Errorf("%q: %v", br, r)
		}
	}
}

func TestJSONFiles(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"a.json", `{"a":1e4,"b":"\ud83d\ude00\/\t"}`, ""},
		{"a.yaml", `{"a":1e4}`, "1:6 yaml-11-number"},
		{"a.yaml", "{\"a\":\t[true,null,\"x\"]}\n", ""},
		{"a.json", "", "1:1 yaml-empty"},
		{"a.json", "a: 1\n", "1:1 yaml-syntax"},
		{"a.json", `{"a":1`, "1:6 yaml-syntax"},
		{"a.json", `{"a":1,}`, "1:8 yaml-syntax"},
		{"a.yaml", `{"a":1,}`, ""},
		{"a.json", `{"a":1e999}`, "1:6 yaml-number"},
		{"a.json", `{"a":1,"b":{},"\u0061":2}`, "1:15 yaml-duplicate-key"},
	} {
		_, fs := Parse(c.file, []byte(c.text), Limits{})
		got := ""
		for _, f := range fs {
			got += fmt.Sprintf("%d:%d %s", f.Range.Start.Line, f.Range.Start.Column, f.Rule)
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.file, c.text, got, c.want)
		}
	}

	n := parseOne(t, `{"a": "x\ud83d\ude00y"}`).Get("a")
	if r := n.At(1, 4); n.Text != "x😀y" || r.Start.Column != 9 || r.End.Column != 21 {
		t.Errorf("%q %v", n.Text, r)
	}
}

func TestDuplicatesInLargeMappings(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "k%d: x\n", i)
	}
	for _, again := range []string{"k0: x\n", "k39: x\n", "k12: x\n"} {
		_, fs := Parse("f", []byte(b.String()+again), Limits{})
		if len(fs) != 1 || fs[0].Rule != ruleDuplicateKey || fs[0].Range.Start.Line != 41 || len(fs[0].Related) != 1 ||
			fs[0].Related[0].File != "f" {
			t.Errorf("%s: %v", again, fs)
		}
	}
}

func TestDocumentOutlivesItsSource(t *testing.T) {
	src := []byte("a: 'x y'\n")
	d, _ := Parse("f", src, Limits{})
	clear(src)
	if n := d.Root.Get("a"); n.Text != "x y" || n.At(2, 1).Start.Column != 7 {
		t.Error("shares memory with its source")
	}
}

// BenchmarkYAMLv3 is the lower bound for Parse: yaml.v3's own decoding of the same file.
func BenchmarkYAMLv3(b *testing.B) {
	src := must.Get(os.ReadFile("testdata/good/agent.yaml"))(b)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(next(yaml.NewDecoder(bytes.NewReader(src))))(b)
	}
}

func BenchmarkParse(b *testing.B) {
	src := must.Get(os.ReadFile("testdata/good/agent.yaml"))(b)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if d, fs := Parse("f", src, Limits{}); d == nil {
			b.Fatal(fs)
		}
	}
}

// Fields of large mappings are found without comparing all others, in YAML and in JSON. A node
// whose fields were removed does not find them.
func TestFieldsOfLargeMappingsAreFound(t *testing.T) {
	for _, form := range []string{"{%s}", "# YAML\n{%s}"} {
		growth.Linear(t, 5000, func(size int) func() {
			var text strings.Builder
			for i := range size {
				fmt.Fprintf(&text, "\"k%d\": %d,\n", i, i)
			}
			doc, findings := Parse("x", fmt.Appendf(nil, form, text.String()+`"last": true`), Limits{})
			if len(findings) > 0 {
				t.Fatal(findings[0])
			}
			return func() {
				for i := range doc.Root.Fields {
					f := &doc.Root.Fields[i]
					if doc.Root.Field(f.Key.Text) != f || doc.Root.Field(f.Key.Text+"-") != nil {
						t.Fatalf("%s is not found", f.Key.Text)
					}
				}
			}
		})
	}

	doc, _ := Parse("x", []byte("a: 1\n"+strings.Join(manyKeys(20), "")), Limits{})
	left := *doc.Root
	left.Fields = left.Fields[1:]
	if left.Get("a") != nil || left.Get("k19") == nil || left.Get("k0") != left.Fields[0].Value {
		t.Error("a node is searched by the fields that it had")
	}
}

func manyKeys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("k%d: x\n", i)
	}

	return out
}
