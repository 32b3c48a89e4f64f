package template

import "github.com/assent-dev/assent/internal/safetext"

// Escape makes a text that came from elsewhere safe to show on one line
// of plain text. It hides nothing and loses nothing: two different
// texts never look the same afterwards.
//
//   - Every character that could be invisible, start a line or reorder text is shown
//     as \u{202e}. Joiners inside emoji are no exception. A character that is too new
//     for the Unicode version of the Go release is escaped.
//   - A combining mark is shown only behind a letter, at most four in a row. Others,
//     and those that strike out or enclose a letter, are escaped, so marks can't cover
//     the text beside them.
//   - Three or more of the same escaped character are written once with their number,
//     \u{200b*40}; so are nine or more spaces. Padding can't push text out of sight.
//   - A byte that is not UTF-8 is shown as \x{ff}.
//   - A backslash stays as it is, unless it would read as the start of an escape or
//     of the note at a cut; then it is \u{5c}.
//
// Letters of scripts that run right to left stay readable. They can't
// be mixed into a line without isolating them; Render does that. Markup
// is the business of the channel that understands it.
func Escape(s string) string { return safetext.Escape(s) }

const (
	// maxValue is how many characters one value may take in a message,
	// escapes counted as they are written.
	maxValue = 2000
	// minValue is what every value gets, however many a template has.
	minValue = 200
	// maxValues is what all values of a message share.
	maxValues = 32_000
)

// valueLimit is the number of characters for each value of a template
// that uses n.
func valueLimit(n int) int {
	return max(minValue, min(maxValue, maxValues/max(n, 1)))
}
