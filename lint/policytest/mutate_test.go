package policytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// world returns the world of testdata.
func world(t testing.TB) (*World, *Built) {
	t.Helper()
	f, b := prepared(t, "passing"+Suffix, read(t, "passing"+Suffix), testWorld(t))
	w, err := Load(f, testWorld(t))
	must.Do(t, err)

	return w, b
}

// TestCreate checks the created file, and that it exercises everything that can be exercised.
func TestCreate(t *testing.T) {
	_, b := world(t)
	text, err := Create(Header{Agent: "desk.agf.yaml", Policies: []string{"policies"}}, b)
	must.Do(t, err)
	golden.Equal(t, "created.golden", string(text))

	f, b := prepared(t, "created.test.yaml", text, testWorld(t))
	c := &Coverage{}
	c.Observe(b, f, every)
	if met, all := c.Finish(); met < all {
		var out strings.Builder
		c.text(&out)
		t.Error(out.String())
	}
}

// TestMutate checks which changes handwritten tests don't notice, with a call that shows each.
// Created tests notice all of them.
func TestMutate(t *testing.T) {
	w, b := world(t)
	f, _ := Parse("passing"+Suffix, read(t, "passing"+Suffix))
	s := Mutate([]*Suite{{Files: []*File{f}, World: w, Built: b}})
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		must.Do(t, s.Write(&out, format))
		golden.Equal(t, "mutate."+format+".golden", out.String())
	}

	text, err := Create(Header{Agent: "desk.agf.yaml", Policies: []string{"policies"}}, b)
	must.Do(t, err)
	made, _ := Parse("created"+Suffix, text)
	if s := Mutate([]*Suite{{Files: []*File{made}, World: w, Built: b}}); s.Percent() < 100 || s.Killed < 40 {
		t.Errorf("%d%% of what makes a difference\n%s", s.Percent(), s.text())
	}
}

// TestWitnessesAreTrue checks that each printed call is decided differently before and after the
// change, as printed.
func TestWitnessesAreTrue(t *testing.T) {
	w, b := world(t)
	none, _ := Parse("none"+Suffix, []byte("schema_version: \"1.0.0\"\nagent: desk.agf.yaml\ncalls: []\n"))
	suite := &Suite{Files: []*File{none}, World: w, Built: b}
	s := Mutate([]*Suite{suite})
	if s.Killed > 0 || len(s.Survivors) < 40 {
		t.Fatalf("without tests %d changes are noticed, %d are not", s.Killed, len(s.Survivors))
	}
	for _, x := range s.Survivors {
		if x.Witness == "" {
			continue
		}
		after, ok := suite.stage(&x.Mutant, true).mutated(&x.Mutant)
		if !ok {
			t.Errorf("%s: %s can't be built", at(x.File, x.Range), x.What)
			continue
		}
		c, err := resolve.ParseCall([]byte(x.Witness), value.Limits{})
		must.Do(t, err)
		if was, is := apart(b.Plan.Decide(c), after.Plan.Decide(c)); was == is || was != x.Before || is != x.After {
			t.Errorf("%s: %s: %s\n%s\n%s", at(x.File, x.Range), x.What, x.Witness, was, is)
		}
	}
}

// TestMutateLeavesOutWhatIsNotTouched checks that each change has the same result as with all tests
// and the whole agent, and that the order is that of the files.
func TestMutateLeavesOutWhatIsNotTouched(t *testing.T) {
	w, b := world(t)
	f, _ := Parse("passing"+Suffix, read(t, "passing"+Suffix))
	none, _ := Parse("none"+Suffix, []byte("schema_version: \"1.0.0\"\nagent: a.agf.yaml\ncalls: []\n"))
	made := hundred(t, 3)
	few := *made
	file := *made.Files[0]
	few.Files = []*File{&file}
	file.Calls = file.Calls[:len(file.Calls)/3]
	empty := *made
	empty.Files = []*File{none}
	byHand := &Suite{Files: []*File{f}, World: w, Built: b}
	for name, suites := range map[string][]*Suite{
		"by hand": {byHand},
		"made":    {made},
		"few":     {&few},
		"none":    {&empty},
		"both":    {byHand, &few},
	} {
		fast, whole := mutate(suites, false), mutate(suites, true)
		if got, want := fates(t, fast), fates(t, whole); got != want {
			t.Errorf("%s: got\n%s\nexpected\n%s", name, got, want)
		}
	}
}

// fates is everything that a score says.
func fates(t *testing.T, s *Score) string {
	t.Helper()
	var out strings.Builder
	must.Do(t, s.Write(&out, "json"))

	return fmt.Sprint(s.Unusable, " unusable\n", out.String())
}
