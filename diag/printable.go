package diag

import "github.com/assent-dev/assent/internal/safetext"

// Printable returns s with everything that could act on a terminal or
// hide in it shown as an escape: control characters, format characters
// (bidirectional marks, zero-width ones, tags), private-use ones, line
// and paragraph separators and marks that could cover other text as
// \u{202e}, bytes that are not UTF-8 as \x80.
func Printable(s string) string { return safetext.Printable(s) }
