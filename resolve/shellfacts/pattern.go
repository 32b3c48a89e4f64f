package shellfacts

import (
	"regexp"

	patterns "github.com/assent-dev/assent/internal/pattern"
)

// pattern is a regular expression that is compiled at its first use: a process decides about one call,
// and most calls need few of them.
type pattern struct{ compiled func() *regexp.Regexp }

func lazily(text string) *pattern { return &pattern{patterns.Of(text)} }

// MatchString reports whether a text contains a match.
func (p *pattern) MatchString(text string) bool { return p.compiled().MatchString(text) }
