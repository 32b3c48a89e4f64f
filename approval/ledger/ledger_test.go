package ledger

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/value"
)

func TestSealGolden(t *testing.T) {
	r := seal(t, testEntry(1), fixed(0))
	golden.Equal(t, "record.txt", string(r.Leaf)+"\n"+string(r.Openings)+"\n")
}

func TestSealNothing(t *testing.T) {
	r := seal(t, Entry{Time: time.Unix(0, 0), Tenant: "t", Type: "x"}, nil)
	want := `{"actor":"","facts":{},"sealed":{},"subject":"","tenant":"t","time":"1970-01-01T00:00:00.000000Z",` +
		`"type":"x","v":1}`
	if string(r.Leaf) != want || r.Openings != nil {
		t.Errorf("got %s, %q", r.Leaf, r.Openings)
	}
}

func TestSealHidesValues(t *testing.T) {
	e := testEntry(1)
	e.Sealed = map[string]string{"args": "secret"}
	a, b := seal(t, e, fixed(0)), seal(t, e, fixed(1))
	if strings.Contains(string(a.Leaf), "secret") {
		t.Error("the leaf shows a sealed value")
	}
	if string(a.Leaf) == string(b.Leaf) {
		t.Error("equal values with different salts have equal digests")
	}
	e.Sealed = map[string]string{"a": "same", "b": "same"}
	rand := strings.NewReader("0123456789abcdefghijklmnopqrstuv")
	l, err := ParseLeaf(seal(t, e, rand).Leaf)
	if err != nil || l.Sealed["a"] == l.Sealed["b"] {
		t.Errorf("two values of an entry share a salt (%v)", err)
	}
}

func TestSealRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Entry)
		want   string
	}{
		"no time":        {func(e *Entry) { e.Time = time.Time{} }, "has no time"},
		"nearly no time": {func(e *Entry) { e.Time = time.Time{}.Add(1) }, "has no time"},
		"year":           {func(e *Entry) { e.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "year 10000"},
		"no tenant":      {func(e *Entry) { e.Tenant = "" }, "no tenant"},
		"tenant":         {func(e *Entry) { e.Tenant = "a\nb" }, "control characters"},
		"no type":        {func(e *Entry) { e.Type = "" }, "has no type"},
		"utf-8":          {func(e *Entry) { e.Actor = "\xff" }, "not valid UTF-8"},
		"facts":          {func(e *Entry) { e.Facts = map[string]any{"n": math.NaN()} }, "facts: at n"},
		"long facts": {func(e *Entry) {
			e.Facts = map[string]any{"n": strings.Repeat("x", maxLeaf)}
		}, "facts: more than"},
		"long leaf": {func(e *Entry) { e.Subject = strings.Repeat("x", maxLeaf) }, "seal what is long"},
		"name":      {func(e *Entry) { e.Sealed = map[string]string{"Args": ""} }, `"Args" can't name`},
		"no name":   {func(e *Entry) { e.Sealed = map[string]string{"": ""} }, "has 0 bytes"},
		"sealed utf-8": {func(e *Entry) {
			e.Sealed = map[string]string{"args": "hidden\xff"}
		}, "value args is not valid UTF-8"},
		"long openings": {func(e *Entry) {
			e.Sealed = map[string]string{"args": strings.Repeat("x", maxOpenings)}
		}, "openings have"},
	} {
		t.Run(name, func(t *testing.T) {
			e := testEntry(1)
			tt.change(&e)
			_, err := e.Seal(fixed(0))
			fails(t, err, tt.want)
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}

	broken := errors.New("no entropy")
	if _, err := testEntry(1).Seal(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := testEntry(1).Seal(strings.NewReader("short")); err == nil {
		t.Error("half a salt must be refused")
	}
}

func drawEntry(t *rapid.T) Entry {
	name := rapid.StringMatching(`[a-z][a-z0-9_.-]{0,8}`)
	fact := rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.Just(any(nil)),
		rapid.Float64Range(-1e300, 1e300).AsAny(), rapid.SliceOf(rapid.String().AsAny()).AsAny())
	micros := rapid.Int64Range(-62135596799999999, 253402300799999999).Draw(t, "time") // years 1 to 9999
	return Entry{
		Time:    time.UnixMicro(micros).Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ns"))),
		Tenant:  rapid.StringMatching(`[^\x00-\x1f\x7f]{1,9}`).Draw(t, "tenant"),
		Type:    rapid.StringMatching(`.{1,9}`).Draw(t, "type"),
		Subject: rapid.String().Draw(t, "subject"),
		Actor:   rapid.String().Draw(t, "actor"),
		Facts:   rapid.MapOf(rapid.String(), fact).Draw(t, "facts"),
		Sealed:  rapid.MapOfN(name, rapid.String(), 0, 4).Draw(t, "sealed"),
	}
}

// TestSealReadsBack: every sealed entry can be parsed and is in canonical form, and every subset of
// its openings can be verified.
func TestSealReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		r, err := e.Seal(fixed(0))
		must(t, err)
		l, err := ParseLeaf(r.Leaf)
		if err != nil {
			t.Fatalf("%s: %v", r.Leaf, err)
		}
		if !l.Time.Equal(e.Time.Truncate(time.Microsecond)) || l.Tenant != e.Tenant || l.Type != e.Type ||
			l.Subject != e.Subject ||
			l.Actor != e.Actor {
			t.Fatalf("got %+v, want %+v", l, e)
		}
		facts, err := value.FromGo(e.Facts, value.Limits{})
		if err != nil || facts.Digest() != l.Facts.Digest() {
			t.Fatalf("facts changed: %v", err)
		}
		o, err := ParseOpenings(r.Openings)
		if err != nil || len(o) != len(e.Sealed) {
			t.Fatalf("openings %v, %v", o, err)
		}
		for name, opening := range o {
			if opening.Value != e.Sealed[name] {
				t.Fatalf("%s changed", name)
			}
		}
		drop := rapid.SliceOfDistinct(rapid.SampledFrom(append(slices.Sorted(maps.Keys(e.Sealed)), "none")), rapid.ID).
			Draw(t, "drop")
		left, err := Redact(r.Openings, drop...)
		must(t, err)
		gone := len(drop)
		if slices.Contains(drop, "none") && e.Sealed["none"] == "" {
			gone--
		}
		if redacted, err := Check(r.Leaf, left); err != nil || redacted != gone {
			t.Fatalf("%d redacted, want %d: %v", redacted, gone, err)
		}
	})
}
