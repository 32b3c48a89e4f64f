package listing

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// listed lists the agent and the policies of testdata.
func listed(t *testing.T, opt resolve.Options, policies ...string) Agent {
	t.Helper()
	read := func(name string) []byte {
		src, err := os.ReadFile(filepath.Join("testdata", name))
		must.Do(t, err)
		return src
	}
	agent, findings := schema.Parse("agent.agf.yaml", read("agent.agf.yaml"))
	if agent == nil {
		t.Fatal(findings)
	}
	var all []*policy.Policy
	for _, name := range policies {
		p, findings := policy.Parse(name, read(name))
		if p == nil {
			t.Fatal(findings)
		}
		all = append(all, p)
	}

	set, _ := policy.NewSet(all...)
	plan, err := resolve.Compile(agent, set, opt)
	if plan == nil {
		t.Fatal(err)
	}
	return Of(agent, plan)
}

// TestGolden lists one agent with every kind of target and rule, names
// that would act on each format, and one whose policy is missing.
func TestGolden(t *testing.T) {
	agents := []Agent{
		listed(t, resolve.Options{AllowTimeoutApprove: true}, "p.policy.yaml"),
		listed(t, resolve.Options{}),
	}
	for _, format := range Formats() {
		var out bytes.Buffer
		must.Do(t, Write(&out, format, agents))
		golden.Equal(t, "listing."+format, out.String())
		active := format == "html" || format == "markdown"
		if active && strings.Contains(out.String(), "<script") || strings.Contains(out.String(), "\u202e") {
			t.Errorf("%s shows what acts", format)
		}
	}
}

// TestCellsAreNoFormulas for spreadsheets, and stay what they are in
// between.
func TestCellsAreNoFormulas(t *testing.T) {
	a := Agent{ID: "=1", Rows: []Row{{Target: "tool a", When: `"x", y`}}}
	for _, formula := range []string{
		"=1+1", "+1", "-1", "@SUM(A1)", " =1", "'=1", "＝1", "\t=1", "\r=1", "|calc", "%0",
	} {
		a.Rows = append(a.Rows, Row{Target: formula})
	}
	var out bytes.Buffer
	must.Do(t, Write(&out, "csv", []Agent{a}))
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != len(a.Rows)+1 || rows[1][0] != "'=1" || rows[1][3] != "tool a" ||
		rows[1][5] != `"x", y` {
		t.Fatalf("%v %q", err, rows)
	}
	for _, row := range rows[2:] {
		if cell := row[3]; strings.IndexAny(cell, "'\\") != 0 {
			t.Errorf("%q may be a formula", cell)
		}
	}
}

// TestOddConditionsHaveWords, those too that no file can have.
func TestOddConditionsHaveWords(t *testing.T) {
	for want, e := range map[string]*condition.Expr{
		"always":                            {},
		"a is anything":                     {Groups: []condition.Group{{Matchers: []condition.Matcher{{Key: "a"}}}}},
		"a is one of nothing":               testing1(condition.In),
		"a is tested by what can't be read": testing1(condition.Unreadable),
	} {
		if got := Condition(e); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}

	if got := Condition(testing1("later")); !strings.HasPrefix(got, "a later") {
		t.Errorf("an operator without words is %q", got)
	}
}

// testing1 returns a condition of one test without operands.
func testing1(op condition.Op) *condition.Expr {
	return &condition.Expr{Groups: []condition.Group{{Matchers: []condition.Matcher{{
		Key:   "a",
		Tests: []condition.Test{{Op: op}},
	}}}}}
}

// TestEveryOperatorHasWords, so that a new one is not forgotten.
func TestEveryOperatorHasWords(t *testing.T) {
	for _, op := range condition.Operators(condition.Policy11) {
		if op.InLists() == "" {
			t.Errorf("%s has no words", op)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestWriteFails(t *testing.T) {
	for _, format := range Formats() {
		if err := Write(full{}, format, []Agent{{}}); err == nil {
			t.Errorf("%s: nobody hears that the disk is full", format)
		}
	}
	if err := Write(io.Discard, "pdf", nil); err == nil || !strings.Contains(err.Error(), "text, markdown, html, csv") {
		t.Error(err)
	}
}
