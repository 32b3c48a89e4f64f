package posture

import (
	"slices"
	"strconv"
	"strings"
)

// mostNames limits the number of states that cells may visit.
const mostNames = 20_000

// cell is a set of names that match the same patterns.
type cell struct {
	name    string   // one of them
	literal bool     // it is the only one
	matches []string // the patterns with a star that match them
}

// words describes the names of a cell. It returns an empty string if the cell is a single name.
func (c cell) words(what string) string {
	switch {
	case c.literal:
		return ""
	case len(c.matches) == 0:
		return what + " that neither side names"
	}

	return what + " that match " + strings.Join(quoteAll(c.matches), " and ") + " and that neither side names"
}

func quoteAll(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strconv.Quote(s))
	}
	return out
}

// cells partitions all names by the globs that match them (policy.Glob). It reads names letter by
// letter with all globs at once, and returns false if that takes too many states.
func cells(globs []string) ([]cell, bool) {
	globs = slices.Compact(slices.Sorted(slices.Values(globs)))
	w := walker{other: strange(globs), seen: map[string]bool{}}
	for _, g := range globs {
		w.globs = append(w.globs, []rune(g))
	}
	var start []spot
	for i := range w.globs {
		start = w.add(start, spot{i, 0})
	}
	told := map[string]bool{}
	var out []cell
	queue := []reached{{spots: start}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at.name != "" {
			if c, key := w.cell(at, globs); !told[key] {
				told[key] = true
				out = append(out, c)
			}
		}

		for _, letter := range w.letters(at.spots) {
			next := reached{name: at.name + string(letter), spots: w.step(at.spots, letter)}
			if key := spotsKey(next.spots); !w.seen[key] {
				w.seen[key] = true
				queue = append(queue, next)
			}
		}

		if len(w.seen) > mostNames {
			return nil, false
		}
	}

	return out, true
}

// spot is a position in a glob that a prefix of a name has reached.
type spot struct{ glob, at int }

type reached struct {
	name  string
	spots []spot
}

type walker struct {
	globs [][]rune
	other rune // represents all letters that no glob has
	seen  map[string]bool
}

// add adds a spot, and the spots after stars that may match the empty string.
func (w *walker) add(spots []spot, s spot) []spot {
	for {
		if slices.Contains(spots, s) {
			return spots
		}
		spots = append(spots, s)
		if s.at == len(w.globs[s.glob]) || w.globs[s.glob][s.at] != '*' {
			return spots
		}
		s.at++
	}
}

// step returns the spots after one more letter.
func (w *walker) step(spots []spot, letter rune) []spot {
	var next []spot
	for _, s := range spots {
		switch g := w.globs[s.glob]; {
		case s.at == len(g):
		case g[s.at] == '*':
			next = w.add(next, s)
		case g[s.at] == letter:
			next = w.add(next, spot{s.glob, s.at + 1})
		}
	}

	return next
}

// letters returns one letter for each different step from these spots.
func (w *walker) letters(spots []spot) []rune {
	out := []rune{w.other}
	for _, s := range spots {
		if g := w.globs[s.glob]; s.at < len(g) && g[s.at] != '*' &&
			!slices.Contains(out, g[s.at]) {
			out = append(out, g[s.at])
		}
	}

	return out
}

// cell returns the cell of a name, and a key of the globs that match it.
func (w *walker) cell(at reached, globs []string) (cell, string) {
	c := cell{name: at.name}
	var key []string
	for _, s := range at.spots {
		if s.at != len(w.globs[s.glob]) {
			continue
		}
		key = append(key, strconv.Itoa(s.glob))
		if g := globs[s.glob]; strings.Contains(g, "*") {
			c.matches = append(c.matches, g)
		} else {
			c.literal = true
		}
	}

	slices.Sort(key)
	slices.Sort(c.matches)

	return c, strings.Join(key, " ")
}

func spotsKey(spots []spot) string {
	sorted := slices.Clone(spots)
	slices.SortFunc(sorted, func(a, b spot) int {
		if a.glob != b.glob {
			return a.glob - b.glob
		}
		return a.at - b.at
	})
	var b []byte
	for _, s := range sorted {
		b = strconv.AppendInt(append(b, ' '), int64(s.glob), 36)
		b = strconv.AppendInt(append(b, ':'), int64(s.at), 36)
	}

	return string(b)
}

// strange returns a letter that no glob contains.
func strange(globs []string) rune {
	all := strings.Join(globs, "")
	for letter := 'x'; ; letter++ {
		if !strings.ContainsRune(all, letter) && letter != '*' {
			return letter
		}
		if letter == 'z' {
			letter = 0x4e00
		}
	}
}
