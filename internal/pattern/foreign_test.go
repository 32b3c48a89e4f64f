package pattern

import (
	"errors"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// hostile is a pattern of 955 bytes whose program has 240,000 instructions.
var hostile = "^(" + strings.Repeat(".{0,999}", 119) + ")x$"

func TestForeignPatternsAreBounded(t *testing.T) {
	bounds := Bounds{Bytes: 1000, Size: 2000, Groups: 3}
	for _, c := range []struct {
		name, text string
		size, bad  bool // a *SizeError, a *syntax.Error
	}{
		{name: "a plain one", text: `^[A-Z]{3}-\d{4,10}$`},
		{name: "at the bound", text: ".{0,999}"},
		{name: "a short text with a huge program", text: hostile, size: true},
		{name: "nested repetitions", text: "((x{9}y){9}z){11}", size: true},
		{name: "a long text", text: strings.Repeat("x", 1001), size: true},
		{name: "many groups", text: "()()()()", size: true},
		{name: "no pattern", text: "(", bad: true},
		{name: "more than RE2 repeats", text: "x{1001}", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := bounds.Compile(c.text)
			var size *SizeError
			var bad *syntax.Error
			if errors.As(err, &size) != c.size || errors.As(err, &bad) != c.bad || (err != nil) != (c.size || c.bad) {
				t.Errorf("Compile: %v", err)
			}
			_, later := NewForeign(c.text, bounds).Match("", &Work{Left: 1 << 20})
			if (later != nil) != (err != nil) {
				t.Errorf("Match: %v, but Compile: %v", later, err)
			}
			defer func() {
				if (recover() != nil) != (err != nil) {
					t.Error("MustCompile and Compile differ")
				}
			}()
			bounds.MustCompile(c.text)
		})
	}
}

// TestSizeBoundsTheProgram compares the estimate with the size of the compiled program.
func TestSizeBoundsTheProgram(t *testing.T) {
	for _, text := range []string{"", "x", "x*y+z?", "[a-c]{5}", "(a|b|cd){2,7}", ".{0,999}", "(?i)straße", `\pL{9}`} {
		tree := must.Get(syntax.Parse(text, syntax.Perl))(t)
		size := Size(tree)
		program := must.Get(syntax.Compile(tree.Simplify()))(t)
		if len(program.Inst) > 3*size+4 {
			t.Errorf("%q: %d instructions, the estimate is %d", text, len(program.Inst), size)
		}
	}
}

func TestMatchingStopsAtItsWork(t *testing.T) {
	pattern := NewForeign("a.{0,98}b", Bounds{Bytes: 100, Size: 1000}) // of a size near 200
	work := &Work{Left: 45_000}
	var over *WorkError
	for i, length := range []int{100, 100, 100} {
		ok, err := pattern.Match("a"+strings.Repeat("b", length-1), work)
		if i < 2 && (!ok || err != nil) {
			t.Errorf("match %d: %t, %v", i, ok, err)
		}
		if i == 2 && (ok || !errors.As(err, &over)) {
			t.Errorf("match %d ran over the work: %t, %v", i, ok, err)
		}
	}
	if _, err := pattern.Match("ab", work); !errors.As(err, &over) {
		t.Errorf("after the work was used up a short text was matched: %v", err)
	}
}
