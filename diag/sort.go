package diag

import (
	"cmp"
	"slices"
)

// Stamp sets the file of every finding that has none yet.
func Stamp(fs []Finding, file string) {
	for i := range fs {
		if fs[i].File == "" {
			fs[i].File = file
		}
	}
}

// Sort sorts findings in the order of all outputs: file, position, rule, message, severity.
// Equal findings keep their order.
func Sort(fs []Finding) { slices.SortStableFunc(fs, Compare) }

// Compare compares findings in the order of Sort.
func Compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File),
		comparePositions(a.Range.Start, b.Range.Start),
		comparePositions(a.Range.End, b.Range.End),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(b.Severity, a.Severity),
	)
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
