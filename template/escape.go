package template

import "github.com/assent-dev/assent/internal/safetext"

// Escape makes a text from another source safe to show on one line of plain text. It is
// lossless: the output of two different texts always looks different.
//
//   - Every character that could be invisible, start a line or reorder text is shown as
//     \u{202e}. That includes joiners inside emoji, and characters that are too new for the
//     Unicode version of the Go release.
//   - A combining mark is shown only after a letter, and at most four in a row. Others, and
//     those that strike out or enclose a letter, are escaped, because marks can cover the
//     text next to them.
//   - Three or more of the same escaped character are written once with their count,
//     \u{200b*40}. So are nine or more spaces, because padding can push text out of sight.
//   - A byte that is not UTF-8 is shown as \x{ff}.
//   - A backslash is unchanged, unless it would look like the start of an escape or of the
//     note at a cut; then it is \u{5c}.
//
// Letters of right-to-left scripts stay readable. They must be isolated when they are inserted
// into a line; Render does that. Markup must be escaped by the channel that interprets it.
func Escape(s string) string { return safetext.Escape(s) }

const (
	// maxValue is the maximum of characters for one value in a message, including escapes.
	maxValue = 2000
	// minValue is the minimum for each value, however many a template has.
	minValue = 200
	// maxValues is the maximum for all values of a message together.
	maxValues = 32_000
)

// valueLimit returns the maximum of characters for each value of a template that uses n.
func valueLimit(n int) int {
	return max(minValue, min(maxValue, maxValues/max(n, 1)))
}
