package diag

import "github.com/assent-dev/assent/internal/safetext"

// Printable returns s with everything escaped that could control a terminal or be invisible:
// control characters, format characters (bidirectional marks, zero-width ones, tags),
// private-use ones, line and paragraph separators and marks that could cover other text become
// \u{202e}; bytes that are not UTF-8 become \x80.
func Printable(s string) string { return safetext.Printable(s) }
