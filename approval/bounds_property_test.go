package approval

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// TestBoundsOnlyNarrow draws bounds that an approver may choose, and calls. A call that is covered
// has all other arguments equal, and each of its texts is covered by a bound of that argument. A
// tighter bound covers nothing that the other one refuses, nor do the bounds of two approvers
// together. Examples are true.
func TestBoundsOnlyNarrow(t *testing.T) {
	seen := map[string]int{}
	families := []family{
		{
			[]string{"docs/x/a.md", "docs/a.md", "a"},
			[]string{"docs", ".", "docs/x", "docs/", "docs/x/", "d", "docs/y/b"},
			[]string{"docs/x/b", "docs/b", "docs/../b", "docs", "b", "docs/.env", "docs/a b", "/docs/b",
				"docs/y/b", "docs/x/$b"},
			`docs/[ -~]{0,8}`,
		},
		{
			[]string{"https://a.example/x", "http://a.example/", "https://a.example"},
			[]string{"a.example", "https://a.example/", "https://a.example/x/", "https://a.example/y"},
			[]string{"https://a.example/x/y", "https://a.example/y", "https://a.example.evil.example/",
				"http://a.example/y"},
			`https://a.example[ -~]{0,8}`,
		},
		{
			[]string{"go test ./a", "go test", "go test ./x ./y", "cat a"},
			[]string{"go test *", "go test * ./y", "go test ./a", "go test ./a *", "cat *", "go test ", "go test ./b"},
			[]string{"go test -v ./b", "go test ./a; rm x", "go test ./b ./y", "go test ./b",
				"go test ./a ./b", "cat b", "cat /b"},
			`(go test|cat) [ -~]{0,8}`,
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			drawBounds(t, rapid.SampledFrom(families).Draw(t, "family"), seen)
		}
	})
	for _, kind := range policy.AllBoundKinds()[2:] {
		if seen[string(kind)] == 0 {
			t.Errorf("no drawn call was covered by %s: %v", kind, seen)
		}
	}
	if seen["tighter"] == 0 || seen["joined"] == 0 || seen["example"] == 0 {
		t.Errorf("one-sided: %v", seen)
	}
}

// family has texts of one sort.
type family struct {
	approved, values []string // of bounds
	texts            []string // of calls
	of               string   // further texts
}

func drawBounds(t *rapid.T, f family, seen map[string]int) {
	approved := value.Value{Kind: value.String, Text: rapid.SampledFrom(f.approved).Draw(t, "approved")}
	var valid []Bound
	for _, kind := range policy.AllBoundKinds()[2:] {
		for _, v := range append(append([]string{""}, f.values...), f.texts...) {
			if b := (Bound{Path: "x", Kind: kind, Value: v}); b.check(&approved) == "" {
				valid = append(valid, b)
			}
		}
	}
	a, b := rapid.SampledFrom(valid).Draw(t, "a"), rapid.SampledFrom(valid).Draw(t, "b")
	text := rapid.OneOf(rapid.SampledFrom(f.texts), rapid.StringMatching(f.of))
	got := value.Value{Kind: value.String, Text: text.Draw(t, "got")}
	inA, inB := a.covers(&approved, &got, nil), b.covers(&approved, &got, nil)
	if a.tighter(b, &approved) {
		seen["tighter"]++
		if inA && !inB {
			t.Fatalf("%+v is no tighter than %+v: only it covers %q", a, b, got.Text)
		}
	}

	args, _ := json.Marshal(map[string]string{"x": approved.Text, "y": "same"})
	one := &GrantOffer{Bounds: []Bound{a}}
	joined := one.join(GrantOffer{Bounds: []Bound{b}}, args).Bounds
	other := rapid.SampledFrom([]string{"same", "same", "another"}).Draw(t, "other")
	call, _ := json.Marshal(map[string]string{"x": got.Text, "y": other})
	for _, bounds := range [][]Bound{{a}, {b}, joined} {
		covered := narrows(args, call, leeway{bounds: bounds})
		if covered && (other != "same" || got.Text != approved.Text && !inA && !inB) {
			t.Fatalf("%v cover %s", bounds, call)
		}
		if len(bounds) == 1 && covered && got.Text != approved.Text {
			seen[string(bounds[0].Kind)]++
		}
	}
	if narrows(args, call, leeway{bounds: joined}) && got.Text != approved.Text {
		seen["joined"]++
		if !inA || !inB {
			t.Fatalf("%+v and %+v together cover %q", a, b, got.Text)
		}
	}
	for _, e := range examplesOf(args, []Bound{a}) {
		x := value.Value{Kind: value.String, Text: e.Text}
		if a.covers(&approved, &x, nil) != e.Covered {
			t.Fatalf("a wrong example of %+v: %+v", a, e)
		}
		seen["example"]++
	}
}

// FuzzParseBound: a bound that is read has a path and a known kind, and is read again from its parts.
func FuzzParseBound(f *testing.F) {
	for _, text := range []string{
		"command=words:go test *", "content=any-text", "a=equals:b=c:d", "=words:a", "a", "a=regexp:x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBound(text)
		if err != nil {
			return
		}
		again, err := ParseBound(b.Path + "=" + string(b.Kind) + ":" + b.Value)
		if err != nil || again != b || b.Path == "" || !policy.IsBoundKind(b.Kind) {
			t.Errorf("%q: %+v, %+v, %v", text, b, again, err)
		}
	})
}
