package condition

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// when reads the `when` of a rule.
func when(t *testing.T, text string) (*Expr, bool) {
	t.Helper()
	doc, findings := yamldoc.Parse("w", []byte(text), yamldoc.Limits{})
	if doc == nil {
		t.Fatalf("%s: %v", text, findings)
	}
	e, findings := ParseWhen(doc.Root)
	return e, !yamldoc.Stops(findings)
}

const office = `{time: {during: {
  zone: Europe/Berlin, days: [mon-fri], hours: ["08:00-18:00"], not_dates: ["2026-01-06"],
}}}`

func TestWindowsInConditions(t *testing.T) {
	inside, outside := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC), time.Date(2026, 1, 6, 12, 0, 0, 0, time.UTC)
	e, ok := when(t, office)
	if !ok {
		t.Fatal("the window is refused")
	}
	p := NewCompiler(Semantics{}).Add(Governance, And(nil, e))
	for at, want := range map[time.Time]string{
		inside:  "true matched Mon 2026-01-05 13:00",
		outside: "false",
		{}:      "unknown missing_time ",
	} {
		truth, seen := p.Explain(&View{At: at})
		got := truth.String()
		if truth != False {
			got += " " + seen[0].Why + " " + seen[0].Seen
		}
		if got != want || p.Eval(&View{At: at}) != truth || e.Groups[0].Matchers[0].Time.Truth(at) != truth {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}

	for _, bad := range []string{
		`{time: {}}`, `{time: {other: {zone: UTC}}}`, `{time: {during: {}}}`, `{time: {during: {zone: 1}}}`,
		`{time: {during: {zone: right/UTC}}}`, `{time: {during: {zone: UTC, days: []}}}`,
		`{time: {during: {zone: UTC, days: [x]}}}`,
		`{time: {during: {zone: UTC, hours: ["8"]}}}`, `{time: {during: {zone: UTC, hours: ["8-9"]}}}`,
		`{time: {during: {zone: UTC, dates: ["2026-02-30"]}}}`,
	} {
		if e, ok := when(t, bad); ok || e.Groups[0].Matchers[0].Tests[0].Op != Unreadable {
			t.Errorf("%s is read", bad)
		}
	}
	all := `{time: {outside: {
  zone: UTC, hours: ["22:00-06:00", "12:00-13:30"], dates: ["2026-12-24..2026-12-26", "2027-01-01"],
}}}`
	e, _ = when(t, all)
	const words = "outside 22:00-06:00,12:00-13:30 2026-12-24..2026-12-26,2027-01-01 UTC"
	night := e.Groups[0].Matchers[0].Time
	if got := night.String(); got != words {
		t.Error(got)
	}
	if morning := time.Date(2026, 12, 27, 5, 0, 0, 0, time.UTC); night.Truth(morning) != False ||
		night.Truth(morning.Add(time.Hour)) != True {
		t.Error("a night belongs to another day than that on which it starts")
	}
}

// Windows are facts in comparisons: a cell has a moment, its region has words, and what no moment
// has is no cell.
func TestWindowsInComparisons(t *testing.T) {
	gate := func(text string) []Gate {
		e, _ := when(t, text)
		return []Gate{{Use: Governance, When: e}}
	}
	never := `{time: {outside: {zone: UTC}, during: {zone: UTC, days: [sat]}}}`
	c := NewComparison(0)
	other := strings.ReplaceAll(office, "during", "outside")
	cells, ok := c.Cells(Calls{NoParent: true}, nil, gate(office), gate(other), gate(never))
	var words []string
	for _, cell := range cells {
		at, given, found := Moment(cell.Witness)
		args, _, _ := SplitDocument(cell.Witness)
		if !found || given == at.IsZero() || len(args.Members) > 0 || cell.Found != Yes {
			t.Errorf("%v %v %v %+v", at, given, found, cell)
		}
		words = append(words, cell.Region.String())
	}
	text := strings.Join(words, " | ")
	const during = "during mon,tue,wed,thu,fri 08:00-18:00 not 2026-01-06 Europe/Berlin"
	if !ok || len(cells) != 3 || !strings.Contains(text, during) ||
		!strings.Contains(text, "outside mon") || !strings.Contains(text, "at an unknown time") {
		t.Errorf("%v %s", ok, text)
	}

	w, _ := when(t, office)
	key := TimePlace(w.Groups[0].Matchers[0].Time)
	member := func(key string, v value.Value) value.Value {
		inner := value.Value{Kind: value.Object, Members: []value.Member{{Key: key, Value: v}}}
		return value.Value{Kind: value.Object, Members: []value.Member{{Key: "parent.time", Value: inner}}}
	}
	for _, doc := range []value.Value{
		member("{", value.Value{Kind: value.Bool}), member(key[1], value.Value{Kind: value.Null}),
		member(`{"zone":"UTC"}`, value.Value{Kind: value.Bool}),
		member(`{"zone":"Nowhere"}`, value.Value{Kind: value.Bool}),
	} {
		if _, given, found := Moment(doc); found || !given {
			t.Errorf("%s has a moment", doc.AppendJSON(nil))
		}
	}
	if _, given, found := Moment(value.Value{Kind: value.Object}); given || !found {
		t.Error("a document without windows has a moment")
	}
}

// And combines groups; Takes needs the argument itself.
func TestCombinedConditions(t *testing.T) {
	a, b := sound(t, "[{args_match: {x: 1}}, {args_match: {y: 1}}]"), sound(t, "[{args_match: {z: 1}}]")
	empty := &Expr{}
	if And(a, nil) != a || And(a, empty) != a || And(empty, a) != a || len(And(a, b).Groups) != 2 ||
		len(And(a, b).Groups[0].Matchers) != 2 {
		t.Error("conditions are not combined")
	}
	takes := And(Takes([]string{"a.b"}), b)
	for text, want := range map[string]Truth{
		`{"a.b":1,"z":1}`: True, `{"a":{"b":1},"z":1}`: False, `{"a.b":null,"z":1}`: False, `{"a.b":1}`: Unknown,
	} {
		doc, _ := value.Parse([]byte(text), value.Limits{})
		if got, err := Evaluate(Governance, Semantics{}, takes, doc); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	c := NewCompiler(Semantics{})
	p := c.Add(Governance, Takes([]string{"k"}))
	args, _ := c.Shapes()
	var v View
	if err := args.Scan([]byte(`{"k":1}`), value.Limits{}, &v.Args); err != nil {
		t.Fatal(err)
	}
	if truth, seen := p.Explain(&v); truth != True || len(seen) != 1 || seen[0].Why != WhyAlways {
		t.Errorf("%s %+v", truth, seen)
	}
	found, doc := NewAnalyzer(Governance, Semantics{}, 0).Satisfiable(takes)
	if v, ok := doc.Get("a.b"); found != Yes || !ok || v.Kind == value.Null {
		t.Errorf("%s %s", found, doc.AppendJSON(nil))
	}
	found, _ = NewAnalyzer(Governance, Semantics{}, 0).Satisfiable(Takes([]string{"parent.x"}))
	if found != Undecided {
		t.Errorf("an argument that looks like the caller's input: %s", found)
	}
}

// Moments are found wherever two windows differ: within a range of dates, in a repeated hour, between
// zones of other times, and on one date.
func TestMomentsOfDifferences(t *testing.T) {
	for _, pair := range [][2]string{
		{`zone: Europe/London, hours: ["08:00-18:00"], dates: ["2030-01-01..2030-12-31"]`,
			`zone: UTC, hours: ["08:00-18:00"], dates: ["2030-01-01..2030-12-31"]`},
		{`zone: Europe/Berlin, dates: ["2026-10-25"], hours: ["02:10-02:20"]`,
			`zone: Africa/Lagos, dates: ["2026-10-25"], hours: ["02:10-02:20"]`},
		{`zone: Europe/Berlin, days: [mon]`, `zone: Europe/Paris, days: [mon]`},
		{`zone: Asia/Kolkata, hours: ["02:10-02:20"]`, `zone: Asia/Colombo, hours: ["02:10-02:20"]`},
		{`zone: UTC, not_dates: ["2044-02-29"]`, `zone: UTC`},
	} {
		windows := make([]*Window, 2)
		for i, text := range pair {
			e, _ := when(t, "{time: {during: {"+text+"}}}")
			windows[i] = e.Groups[0].Matchers[0].Time.Window
		}
		at, found := momentOf(windows, []bool{true, false})
		if !found {
			at, found = momentOf(windows, []bool{false, true})
		}
		if !found || windows[0].Has(at) == windows[1].Has(at) {
			t.Errorf("%v: %v %v", pair, at, found)
		}
		if _, found := momentOf([]*Window{windows[0], windows[0]}, []bool{true, false}); found {
			t.Errorf("%s differs from itself", pair[0])
		}
	}
}

// More windows than are combined are compared in pairs.
func TestManyWindows(t *testing.T) {
	var gates [][]Gate
	for _, day := range dayNames[:mostCombined+1] {
		e, _ := when(t, "{time: {during: {zone: UTC, days: ["+day+"]}}}")
		gates = append(gates, []Gate{{Use: Governance, When: e}})
	}
	cells, ok := NewComparison(0).Cells(Calls{NoParent: true}, nil, gates...)
	if !ok || len(cells) != len(gates)+2 { // each day, another one, and an unknown time
		t.Errorf("%d cells, %v", len(cells), ok)
	}
}

func TestListsOfABox(t *testing.T) {
	e, _ := when(t, "{args_match: {a: {any: {gt: 5}}}}")
	q := NewAnalyzer(Governance, Semantics{}, 0).ask()
	boxes := q.boxes(e, True)
	for text, want := range map[string]bool{"[1]": false, "[1, 7]": true} {
		list, err := value.Parse([]byte(text), value.Limits{})
		doc := value.Value{Kind: value.Object, Members: []value.Member{{Key: "a", Value: list}}}
		has := slices.ContainsFunc(boxes, func(b box) bool { return q.contains(b, doc) })
		if err != nil || has != want {
			t.Errorf("%s: %v, %v", text, has, err)
		}
	}
}

func TestTextsOutsideOfAllAreNone(t *testing.T) {
	all := texts{but: true}
	without := texts{but: true, outside: []*texts{&all}}
	if got := without.reduced(nil); !got.empty() {
		t.Errorf("%+v", got)
	}
}

// The database of the machine is not read: with it, two machines could decide one call differently.
func TestZonesDoNotDependOnTheMachine(t *testing.T) {
	dir := t.TempDir()
	utc := zoneRules("UTC")
	must.Do(t, errors.Join(os.Mkdir(filepath.Join(dir, "Europe"), 0o700),
		os.WriteFile(filepath.Join(dir, "Europe", "Berlin"), utc, 0o600),
		os.WriteFile(filepath.Join(dir, "Mine"), utc, 0o600)))
	t.Setenv("ZONEINFO", dir)

	zone, err := zoneOf("Europe/Berlin")
	must.Do(t, err)
	if _, offset := time.Date(2026, 7, 1, 12, 0, 0, 0, zone).Zone(); offset != 2*60*60 {
		t.Errorf("the offset in July is %d s", offset)
	}
	if _, err = zoneOf("Mine"); err == nil {
		t.Error("a zone of the machine was loaded")
	}
	files, err := zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
	must.Do(t, err)
	for _, f := range files.File {
		if _, err := zoneOf(f.Name); (err == nil) == (f.Name == "Factory" || strings.HasSuffix(f.Name, "/")) {
			t.Errorf("%s: %v", f.Name, err)
		}
		r := must.Get(f.Open())(t)
		if want := must.Get(io.ReadAll(r))(t); !bytes.Equal(zoneRules(f.Name), want) {
			t.Errorf("%s has other rules", f.Name)
		}
	}
}
