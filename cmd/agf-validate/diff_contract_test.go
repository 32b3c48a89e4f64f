package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint/posture"
)

// TestDiffContract: the page names every flag, field, verdict, effect
// and aspect, and what is tighter in each.
func TestDiffContract(t *testing.T) {
	testfiles.CheckFlags(
		t,
		"diff.md",
		compiling{}.diffCommand().Flags().FlagUsages()+compiling{}.askCommand().Flags().FlagUsages(),
	)
	text := testfiles.Contract(t, "diff.md")
	for _, a := range posture.Aspects() {
		if row := "| `" + a.Name + "` | " + a.Tighter + " |"; !strings.Contains(text, row) {
			t.Errorf("the contract has no row %s", row)
		}
	}
	all := posture.Change{
		AgentID: "d",
		Kind:    "tool",
		Tool:    "t",
		Server:  "s",
		Agent:   "a",
		Skill:   "k",
		Region:  "every call",
		Asks:    "amount > 1",
		Below:   "desk",
		Witness: []byte("{}"),
		Old:     &posture.Position{File: "f", Line: 1, Column: 1},
		New:     &posture.Position{File: "f"},
		Why:     "too large",
		Note:    "no longer escalates",
	}
	var b strings.Builder
	v := compiling{}
	v.Out = &b
	report := posture.NewReport([]posture.Change{all})
	report.Edits[0].EditedRule = &posture.EditedRule{
		Policy: "acme.p",
		Rule:   "large",
		Parts:  []posture.Part{{Aspect: "condition"}},
		Old:    &posture.Position{},
		New:    &posture.Position{},
	}
	must.Do(t, v.printReport("json", report))
	names := regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(b.String(), -1)
	if len(names) < 20 {
		t.Errorf("only %d fields in %s", len(names), b.String())
	}
	for _, m := range names {
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("the field %s is not in the contract", m[1])
		}
	}

	for _, word := range []string{
		string(posture.Equivalent), string(posture.VerdictTightens), string(posture.VerdictLoosens),
		string(posture.Mixed), string(posture.VerdictUndecided), string(posture.Changes),
	} {
		if !strings.Contains(text, "`"+word+"`") {
			t.Errorf("the contract lacks %s", word)
		}
	}
}
