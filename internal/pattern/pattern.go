// Package pattern compiles regular expressions on first use. It is for packages that are linked
// into `assent hook`, which starts before every tool call of a coding agent and needs few of them.
// Compiling all of them at each start takes a millisecond.
package pattern

import (
	"regexp"
	"sync"
)

// Of returns a function that compiles a regular expression on its first call. The function panics
// if the text is no regular expression, so text must be a constant in the code.
func Of(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
