package diag

import (
	"slices"
	"strings"
)

// Nearest returns the known name that was probably meant by name, or an empty string. Case and
// the separators _ - . and space are ignored, and a swap of neighbours counts as one edit.
// Short names allow one edit, longer ones one per three letters up to three. The first of
// equally near names wins.
func Nearest(name string, known []string) string {
	best, bestDist := "", int(^uint(0)>>1)
	n := fold(name)
	limit := min(max(1, len(n)/3), 3)
	for _, k := range known {
		f := fold(k)
		if k == name || len(f) > len(n)+limit || len(n) > len(f)+limit {
			continue
		}
		if d := distance(n, f); d <= limit && d < bestDist && d < max(len(n), len(f)) {
			best, bestDist = k, d
		}
	}

	return best
}

// Suggest is like Nearest, for names that people write from memory. If no name has a similar
// spelling, it returns one that has the name among its words (agents for local_agents), one
// that is a word of the name (requires_approval for approval), a synonym (allow for approve),
// or one with a word that begins with the name (allow for allowed_tools).
func Suggest(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return near
	}
	own := words(name)
	for _, k := range known {
		if len(own) == 1 && k != name && slices.Contains(words(k), own[0]) {
			return k
		}
	}
	for _, k := range known {
		if len(own) > 1 && slices.Contains(own, strings.ToLower(k)) {
			return k
		}
	}
	if other := synonym(strings.ToLower(name)); slices.Contains(known, other) {
		return other
	}
	const least = 4 // minimum of letters for a prefix
	for _, k := range known {
		if len(own) == 1 && len(own[0]) >= least && k != name && slices.ContainsFunc(
			words(k),
			func(w string) bool { return strings.HasPrefix(w, own[0]) },
		) {
			return k
		}
	}

	return ""
}

func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_-. ", r) })
}

// synonym returns our word for a synonym, or an empty string.
func synonym(word string) string {
	switch word {
	case "allow", "accept", "permit":
		return "approve"
	case "reject", "refuse", "block", "forbid":
		return "deny"
	case "when", "if":
		return "condition"
	}

	return ""
}

// fold removes case and separators, which people often get wrong.
func fold(s string) []rune {
	s = strings.ToLower(s)
	return []rune(strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ':
			return -1
		}
		return r
	}, s))
}

// Distance returns the number of letters of a that must be changed, inserted, deleted or
// swapped with a neighbour to get b. If the lengths differ very much, it returns only a lower
// bound.
func Distance(a, b string) int {
	long, short := len(a), len(b)
	if long < short {
		long, short = short, long
	}
	if long > 4*short+16 { // lengths are in bytes
		return long - short
	}
	return distance([]rune(a), []rune(b))
}

// distance returns the optimal string alignment distance: Levenshtein with swaps of neighbours.
func distance(a, b []rune) int {
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}

		before, last = last, before
		last, row = row, last
	}

	return last[len(b)]
}
