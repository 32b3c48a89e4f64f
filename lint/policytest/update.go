package policytest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// edit replaces the text of a value.
type edit struct {
	at   *yamldoc.Node
	text string
}

// Update returns the text of the file with the actual values instead of the expected ones, and
// everything else unchanged. Failures that only a person can fix, and expectations with a comment
// inside, are not changed and are counted in left. It returns an error and no text if the changed
// file would not pass, for example because of a shared anchor.
func (f *File) Update(b *Built, results []Result) (updated []byte, left int, err error) {
	var edits []edit
	for _, r := range results {
		for _, failure := range r.Failures {
			switch {
			case failure.fix == nil || f.commented(failure.fix.at.Range):
				left++
			case !slices.ContainsFunc(edits, func(e edit) bool { return e.at == failure.fix.at }):
				edits = append(edits, *failure.fix)
			}
		}
	}

	if len(edits) == 0 {
		return f.Text, left, nil
	}
	slices.SortFunc(edits, func(a, b edit) int { return compare(b.at.Range.Start, a.at.Range.Start) })
	updated = slices.Clone(f.Text)
	for _, e := range edits {
		from, to := offset(f.Text, e.at.Range.Start), offset(f.Text, e.at.Range.End)
		updated = slices.Replace(updated, from, to, []byte(e.text)...)
	}

	return updated, left, f.verify(updated, b, results, left)
}

// verify checks that a changed file can be read, has the same tests, and passes except for what is
// left.
func (f *File) verify(updated []byte, b *Built, before []Result, left int) error {
	next, findings := Parse(f.Path, updated)
	if next == nil {
		return fmt.Errorf("the file can't be updated in place: %w", refused(findings))
	}
	ran := func(name string) bool {
		return slices.ContainsFunc(before, func(r Result) bool { return r.Name == name })
	}
	failures := 0
	for _, r := range next.Run(b, ran) {
		failures += len(r.Failures)
	}
	if failures != left || next.Tests() != f.Tests() {
		return errors.New("the file can't be updated in place: an expectation is shared by several tests (an anchor)")
	}

	return nil
}

// commented reports whether there is a comment inside a range.
func (f *File) commented(at diag.Range) bool {
	return slices.ContainsFunc(f.Doc.Comments, func(c yamldoc.Comment) bool {
		return compare(at.Start, c.Range.Start) < 0 && compare(c.Range.Start, at.End) < 0
	})
}

func compare(a, b diag.Position) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// offset returns the byte offset of a position in a text.
func offset(src []byte, at diag.Position) int {
	i := 0
	for line := 1; line < at.Line && i < len(src); i++ {
		if src[i] == '\n' {
			line++
		}
	}
	for column := 1; column < at.Column && i < len(src); column++ {
		_, size := utf8.DecodeRune(src[i:])
		i += size
	}

	return i
}

// bare matches texts that YAML reads as plain strings in every place: words and durations.
var bare = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_.*/-]*( [A-Za-z0-9_.*/-]+)*|([0-9]+[hms])+)$`)

// word matches texts that some YAML parsers read as something other than a string.
var word = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n|nan|inf)$`)

// plain writes a text as a scalar of YAML.
func plain(text string) string {
	if bare.MatchString(text) && !word.MatchString(text) {
		return text
	}

	return strconv.Quote(text)
}
