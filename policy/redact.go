package policy

import (
	"slices"
	"strings"
)

// Hides reports whether the value at a path of the arguments is hidden, by itself or with what it stands in. The path is
// given by its segments: names of objects, indexes of arrays. A path of the policy names a value by its whole key or by
// its segments with dots between them; ** in it stands for any number of segments, none included.
func (a Arguments) Hides(path ...string) bool {
	for end := 1; end <= len(path); end++ {
		if a.Names(path[:end]...) {
			return true
		}
	}

	return false
}

// Names reports whether the policy names exactly this path, and with it all that stands in it.
func (a Arguments) Names(path ...string) bool {
	if len(a.Redact) == 0 || len(path) == 0 {
		return false
	}
	at := strings.Join(path, ".")

	return slices.ContainsFunc(a.Redact, func(pattern string) bool { return names(pattern, at) })
}

// names reports whether a pattern names exactly this path.
func names(pattern, path string) bool {
	if !strings.Contains(pattern, anySegments) {
		return pattern == path
	}

	return matchSegments(strings.Split(pattern, "."), strings.Split(path, "."))
}

const anySegments = "**"

// matchSegments goes through the path once for each segment of the pattern: the cost is the product of their lengths.
func matchSegments(pattern, path []string) bool {
	reached := make([]bool, len(path)+1) // how much of the path the pattern so far can name
	reached[0] = true
	for _, segment := range pattern {
		next := make([]bool, len(path)+1)
		for i, ok := range reached {
			switch {
			case segment == anySegments:
				next[i] = ok || i > 0 && next[i-1]
			case ok && i < len(path) && path[i] == segment:
				next[i+1] = true
			}
		}
		reached = next
	}

	return reached[len(path)]
}
