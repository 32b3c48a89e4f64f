// Package pattern compiles regular expressions when they are first
// used: those of packages that stand in the program of `assent hook`,
// which starts before every tool of a coding agent and needs few of
// them. To compile them at each start takes a millisecond.
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
