// Package pattern compiles regular expressions when they are first
// used. `assent hook` starts before every tool of a coding agent, and
// what it never asks about would be a tenth of its time.
package pattern

import (
	"regexp"
	"sync"
)

// Of is a regular expression of Go's syntax, as a function that compiles
// it once. It panics at the first use of one that is none: for texts
// that stand in the code.
func Of(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
