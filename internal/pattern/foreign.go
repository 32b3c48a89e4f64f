package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"
)

// Bounds limit a foreign pattern: a regular expression that a peer, a
// file or a user wrote. RE2 takes time and memory in proportion to the
// text times the program, and a short pattern can make a program of
// hundreds of thousands of instructions, so the program is what counts.
// A test makes sure that no other package compiles text that it got from
// outside.
type Bounds struct {
	Bytes  int // of the pattern's text
	Size   int // steps once its repetitions are written out, see Size
	Groups int // capturing groups; 0: any number
}

// SizeError says which bound a pattern exceeds. The pattern itself may be correct.
type SizeError struct{ What string }

// Error names the bound.
func (e *SizeError) Error() string { return "pattern is too large: " + e.What }

// Parse reads a pattern in RE2 syntax without compiling it. The error is
// a *SizeError or a *syntax.Error.
func (b Bounds) Parse(text string) (*syntax.Regexp, error) {
	if len(text) > b.Bytes {
		return nil, &SizeError{fmt.Sprintf("%d bytes, at most %d are read", len(text), b.Bytes)}
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if groups := re.MaxCap(); b.Groups > 0 && groups > b.Groups {
		return nil, &SizeError{fmt.Sprintf("%d groups, at most %d are read", groups, b.Groups)}
	}
	if Size(re) > b.Size {
		return nil, &SizeError{fmt.Sprintf("more than %d steps once its repetitions are written out", b.Size)}
	}

	return re, nil
}

// Compile compiles a pattern that is within the bounds. The error is
// that of Parse.
func (b Bounds) Compile(text string) (*regexp.Regexp, error) {
	if _, err := b.Parse(text); err != nil {
		return nil, err
	}

	return regexp.Compile(text)
}

// MustCompile is Compile for a pattern that was parsed within these
// bounds before. It panics if the pattern is not.
func (b Bounds) MustCompile(text string) *regexp.Regexp {
	re, err := b.Compile(text)
	if err != nil {
		panic("pattern: " + err.Error())
	}

	return re
}

// Size estimates how many instructions an expression compiles to,
// without compiling it. A program has at most three times as many.
func Size(re *syntax.Regexp) int {
	n := max(1, len(re.Rune))
	if re.Op == syntax.OpCharClass { // one instruction, however many ranges
		n = 1
	}
	for _, sub := range re.Sub {
		n += Size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}

	return n
}

// Work is the remaining budget for matching, in bytes of text times the size of the pattern. A
// million takes about 30 ms.
type Work struct{ Left int }

// WorkError means that a text is too long for its pattern.
type WorkError struct{}

// Error returns the message.
func (*WorkError) Error() string { return "the text is too long for its pattern" }

// Foreign is a foreign pattern that is compiled when it is first
// matched. It is safe for concurrent use.
type Foreign struct {
	text   string
	bounds Bounds

	once sync.Once
	re   *regexp.Regexp
	size int
	err  error
}

// NewForeign returns a pattern without parsing its text. If the text is no pattern or exceeds the
// bounds, Match returns the error.
func NewForeign(text string, bounds Bounds) *Foreign { return &Foreign{text: text, bounds: bounds} }

// String returns the text of the pattern.
func (f *Foreign) String() string { return f.text }

// Match reports whether a text contains a match, and subtracts the work from the budget. If too
// little is left, it returns a *WorkError.
func (f *Foreign) Match(text string, work *Work) (bool, error) {
	f.once.Do(func() {
		tree, err := f.bounds.Parse(f.text)
		if err != nil {
			f.err = err

			return
		}
		f.size = Size(tree)
		f.re, f.err = regexp.Compile(f.text)
	})
	if f.err != nil {
		return false, f.err
	}
	cost := (1 + len(text)) * f.size
	if cost > work.Left {
		work.Left = 0

		return false, &WorkError{}
	}
	work.Left -= cost

	return f.re.MatchString(text), nil
}
