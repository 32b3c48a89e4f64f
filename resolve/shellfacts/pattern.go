package shellfacts

import (
	"regexp"
	"sync"

	patterns "github.com/assent-dev/assent/internal/pattern"
)

// pattern is a regular expression that is compiled at its first use: a process decides about one call,
// and most calls need few of them.
type pattern struct{ compiled func() *regexp.Regexp }

func lazily(text string) *pattern {
	bounds := patterns.Bounds{Bytes: 4096, Size: 1 << 16}
	return &pattern{sync.OnceValue(func() *regexp.Regexp { return bounds.MustCompile(text) })}
}

// MatchString reports whether a text contains a match.
func (p *pattern) MatchString(text string) bool { return p.compiled().MatchString(text) }
