package condition

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	bounded "github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// The golden files have the result of Parse for each file in testdata/parse, and the findings
// with the text that the caret points at.
func TestParseGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/parse/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		must.Do(t, err)
		e, findings := read(t, string(src))
		var b strings.Builder
		for _, f := range findings {
			fmt.Fprintf(
				&b,
				"%d:%d %s %s: %s\n",
				f.Range.Start.Line,
				f.Range.Start.Column,
				f.Severity,
				f.Rule,
				f.Message,
			)
			fmt.Fprintf(&b, "    at %q\n", cutRange(string(src), f.Range))
			if f.Expected != "" {
				fmt.Fprintf(&b, "    expected %s\n", f.Expected)
			}
			if f.Nearest != "" {
				fmt.Fprintf(&b, "    nearest %s\n", f.Nearest)
			}
			if f.File != "" || f.Stops != (f.Severity == diag.Error) {
				t.Errorf("%s: file %q, stops %v", f.Message, f.File, f.Stops)
			}
		}

		for i, g := range e.Groups {
			fmt.Fprintf(&b, "group %d, no args_match %v\n", i, g.NoArgsMatch)
			for j := range g.Matchers {
				m := &g.Matchers[j]
				fmt.Fprintf(&b, "    %q literal %v: %s\n", m.Key, m.Literal, describe(m))
			}
		}

		golden.Equal(t, filepath.Join("parse", strings.TrimSuffix(filepath.Base(file), ".yaml")+".golden"), b.String())
	}
}

func cutRange(src string, r diag.Range) string {
	lines := strings.SplitAfter(src, "\n")
	if r.Start.Line == r.End.Line {
		return string([]rune(lines[r.Start.Line-1])[r.Start.Column-1 : r.End.Column-1])
	}
	return string([]rune(lines[r.Start.Line-1])[r.Start.Column-1:]) + "…"
}

func TestParseNothing(t *testing.T) {
	if e, findings := Parse(nil, AgentFormat); e == nil || len(e.Groups) != 0 || findings != nil {
		t.Errorf("%v %v", e, findings)
	}
}

// Everything that could not be read asks.
func TestUnreadableConditionsAsk(t *testing.T) {
	for _, text := range []string{
		`5`, `[5]`, `{args_match: 5}`, match("a: [1]"), match("a: null"), match("a: {gt: x}"), match("a: {in: {}}"),
		match("a: {in: [[]]}"), match("a: {pattern: '(?!x)'}"), match("a: .nan"), match("a: {resembles: x}"),
	} {
		e, findings := read(t, text)
		if len(findings) == 0 {
			t.Errorf("%s: no finding", text)
		}
		for _, doc := range []string{`{}`, `{"a":1}`, `{"a":"x"}`, `{"a":null}`, `{"a":[]}`} {
			if truth, _ := eval(
				t,
				ToolArgs,
				Semantics{OnMissing: NoMatch, OnMismatch: NoMatch},
				e,
				doc,
			); truth != Unknown {
				t.Errorf("%s on %s: %v", text, doc, truth)
			}
		}
	}
}

// An Expr built in code may have parts that Parse refuses. They ask, too.
func TestHandMadeNonsenseAsks(t *testing.T) {
	for _, test := range []Test{
		{Op: Gt, Operand: text("1")},
		{Op: Pattern, Operand: text("(")},
		{Op: Pattern, Operand: Scalar{Kind: value.Number, Text: "x"}},
		{Op: Eq, Operand: Scalar{Kind: value.Array}},
		{Op: In, List: []Scalar{text("a"), {}}},
		{Op: "near"},
	} {
		e := &Expr{Groups: []Group{{Matchers: []Matcher{{Key: "a", Tests: []Test{test}}}}}}
		truth, seen := eval(t, ToolArgs, Semantics{}, e, `{"a":"1"}`)
		if truth != Unknown || seen[0].Why != WhyUnreadableTest {
			t.Errorf("%v: %v %v", &test, truth, seen)
		}
		if can, _ := NewAnalyzer(ToolArgs, Semantics{}, 0).CanBeFalse(e); can != No {
			t.Errorf("%v can be false: %v", &test, can)
		}
	}

	odd := newTest(&Test{Op: Ne, Operand: text("a")}, Semantics{}, nil)
	if got := odd.truth(&value.Slot{Kind: 99}, nil); got != Unknown {
		t.Errorf("a kind that does not exist: %v", got)
	}
}

// A pattern of any size gets a finding or works. It never causes a panic or a machine of
// millions of steps.
func TestPatternBounds(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		rule    string
	}{
		"a thousand groups":      {strings.Repeat("(a)", 1000), ""},
		"more groups":            {strings.Repeat("(a)", 1001), ruleRegexSize},
		"eight kilobytes":        {strings.Repeat("a", maxPatternBytes), ""},
		"more":                   {strings.Repeat("a", maxPatternBytes+1), ruleRegexSize},
		"nested repetition":      {"x{1000}{1000}", ruleRegex},
		"repeated repetition":    {"((x{100}){100}){100}", ruleRegexSize},
		"repetitions in a row":   {strings.Repeat("x{1000}", 11), ruleRegexSize},
		"depth":                  {strings.Repeat("(", 400) + strings.Repeat(")*", 400), ""},
		"more depth":             {strings.Repeat("(", 2000) + strings.Repeat(")*", 2000), ruleRegexSize},
		"open":                   {strings.Repeat("(", 4000), ruleRegex},
		"stray":                  {strings.Repeat(")", 4000), ruleRegex},
		"alternatives":           {strings.Repeat("a|", 4000), ""},
		"Unicode classes":        {strings.Repeat(`\pL\PL`, 1300), ""},
		"repeated Unicode class": {`(\pL\s?){1000}`, ""},
	} {
		e, findings := read(t, match("a: {pattern: '"+c.pattern+"'}"))
		findings = slices.DeleteFunc(findings, func(f diag.Finding) bool { return f.Severity != diag.Error })
		rule := ""
		if len(findings) > 0 {
			rule = findings[0].Rule
		}
		if rule != c.rule {
			t.Errorf("%s: %q, want %q", name, rule, c.rule)
		}
		truth, _ := eval(t, ToolArgs, Semantics{}, e, `{"a":"`+strings.Repeat("a", 1000)+`"}`)
		if c.rule != "" && truth != Unknown {
			t.Errorf("%s: %v", name, truth)
		}
		a := NewAnalyzer(ToolArgs, Semantics{}, 500)
		if can, _ := a.Satisfiable(e); can == Yes && c.rule != "" {
			t.Errorf("%s is satisfiable", name)
		}
		vacuous(a, e)
	}
}

// The estimated size is at least that of the compiled pattern, except for constant costs.
func TestSizeIsAnUpperBound(t *testing.T) {
	for _, text := range []string{
		"a",
		"abc",
		"a*",
		"(a|b)+?",
		"[ab]{3,7}",
		"(x{10}y){20}",
		`\pL{40}`,
		"a{0}",
		"(a{2,}b){5}",
		"((a?){3}){4}",
	} {
		re, err := syntax.Parse(text, syntax.Perl)
		must.Do(t, err)
		prog, err := syntax.Compile(re.Simplify())
		must.Do(t, err)
		if estimate := 3*bounded.Size(re) + 4; len(prog.Inst) > estimate {
			t.Errorf("%s: %d instructions, estimate %d", text, len(prog.Inst), estimate)
		}
	}
}

func TestRulesAreDescribed(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	var ids []string
	for _, r := range Rules() {
		ids = append(ids, r.ID)
		if !kebab.MatchString(r.ID) || r.Title == "" || r.Why == "" || r.Spec == "" {
			t.Errorf("%+v", r)
		}
		if got := ruleIDs(t, r.Bad); !slices.Equal(got, []string{r.ID}) {
			t.Errorf("%s: the bad example reports %v", r.ID, got)
		}
		if got := ruleIDs(t, r.Good); got != nil {
			t.Errorf("%s: the good example reports %v", r.ID, got)
		}
	}

	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != len(Rules()) {
		t.Errorf("ids %v", ids)
	}
}

// ruleIDs returns the rules reported for an example: a condition, the args_match of one, or a policy
// with one rule.
func ruleIDs(t *testing.T, text string) []string {
	t.Helper()
	if rest, ok := strings.CutPrefix(text, "condition:\n"); ok {
		text = rest
	}
	root := nodes(t, text)
	if root.Get("policy_ref") != nil {
		root = root.Get("rules").Items[0].Get("approval").Get("condition")
	}
	_, findings := Parse(root, Policy11)
	var ids []string
	for _, f := range findings {
		ids = append(ids, f.Rule)
	}
	return slices.Compact(ids)
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/parse/*.yaml")
	must.Do(f, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		must.Do(f, err)
		f.Add(string(src), `{"a":1,"b":"x"}`)
	}

	f.Add(match("a.b: {gt: 1e308}, a: {pattern: '(a|b)*$'}"), `{"a":{"b":2}}`)
	f.Fuzz(func(t *testing.T, src, args string) {
		doc, _ := yamldoc.Parse("f.yaml", []byte(src), yamldoc.Limits{})
		if doc == nil {
			return
		}
		e, findings := Parse(doc.Root, Policy11)
		for _, f := range findings {
			if f.Range.Start.Line == 0 || f.Message == "" || f.Stops != (f.Severity == diag.Error) {
				t.Errorf("finding %+v", f)
			}
		}
		for use := ToolArgs; use <= Route; use++ {
			c := NewCompiler(Semantics{})
			p := c.Add(use, e)
			if v, err := tryScan(c, use, args); err == nil {
				if truth, _ := p.Explain(v); truth != p.Eval(v) {
					t.Errorf("Explain says %v", truth)
				}
			}
			a := NewAnalyzer(use, Semantics{}, 200)
			if can, witness := a.Satisfiable(e); can == Yes {
				if v, err := tryScan(c, use, string(witness.AppendJSON(nil))); err != nil || p.Eval(v) != True {
					t.Errorf("witness %s: %v", witness.AppendJSON(nil), err)
				}
			}
			if can, witness := a.CanBeFalse(e); can == Yes {
				if v, err := tryScan(c, use, string(witness.AppendJSON(nil))); err != nil || p.Eval(v) != False {
					t.Errorf("witness %s: %v", witness.AppendJSON(nil), err)
				}
			}
		}
	})
}
