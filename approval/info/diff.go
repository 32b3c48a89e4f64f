package info

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// LineKind is the kind of a line in a diff.
type LineKind string

// The kinds of lines.
const (
	Header  LineKind = "header" // names of files, and everything before the first hunk
	Hunk    LineKind = "hunk"   // @@ -1,2 +1,3 @@
	Same    LineKind = "same"
	Added   LineKind = "added"
	Removed LineKind = "removed"
	Remark  LineKind = "remark" // \ No newline at end of file
)

// Line is one line of a diff, including its sign.
type Line struct {
	Kind LineKind
	Text string
}

var hunkHead = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// ParseDiff parses a unified diff strictly: every hunk must have exactly the number of lines in its
// header, so that a line can't be mistaken for another kind. The error contains the number of the
// wrong line.
func ParseDiff(text string) ([]Line, error) {
	var out []Line
	var old, next int // remaining lines of the current hunk
	hunks := 0
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		kind, err := lineKind(line, old > 0 || next > 0, hunks > 0)
		if err != nil {
			return nil, fmt.Errorf("a unified diff: line %d %w", i+1, err)
		}
		switch kind {
		case Hunk:
			m := hunkHead.FindStringSubmatch(line)
			old, next = count(m[1]), count(m[2])
			hunks++
		case Same:
			old--
			next--
		case Removed:
			old--
		case Added:
			next--
		}

		if old < 0 || next < 0 {
			return nil, fmt.Errorf("a unified diff: line %d is more than its hunk says it has", i+1)
		}

		out = append(out, Line{kind, line})
	}

	switch {
	case hunks == 0:
		return nil, errors.New("a unified diff: it has no hunk, such as @@ -1,2 +1,3 @@")
	case old > 0 || next > 0:
		return nil, errors.New("a unified diff: its last hunk has fewer lines than it says")
	}

	return out, nil
}

// lineKind returns the kind of a line. inside reports whether the current hunk has lines left, and
// begun whether there has been a hunk.
func lineKind(line string, inside, begun bool) (LineKind, error) {
	switch {
	case strings.HasPrefix(line, `\ `) && begun:
		return Remark, nil
	case inside && line == "":
		return Same, nil // an editor removed the trailing space
	case inside:
		switch line[0] {
		case ' ':
			return Same, nil
		case '+':
			return Added, nil
		case '-':
			return Removed, nil
		}

		return "", errors.New("begins with none of space, + and -")
	case hunkHead.MatchString(line):
		return Hunk, nil
	case begun && line != "" && strings.ContainsRune("+- @", rune(line[0])) &&
		!strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "+++ "):
		return "", errors.New("is in no hunk")
	}

	return Header, nil
}

func count(text string) int {
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1 // larger than any diff
	}

	return n
}
