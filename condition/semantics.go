package condition

// Semantics are the points on which the standard is silent and a
// runtime owner may choose. The zero value is the fail-safe reading of
// docs/design/001-semantics.md.
type Semantics struct {
	// OnMissing is what a test makes of an argument that is missing or
	// null (docs/design/001-semantics.md, rows "argument missing,
	// positive matcher" and "argument null"). It does not touch ne and
	// not_in: a missing argument is Unknown to them, and null is
	// another value, so True.
	OnMissing Silence

	// OnMismatch is what a test makes of a value of another type,
	// arrays and objects included (rows "type mismatch", "argument is
	// an array", "pattern on non-string"). It does not touch ne and
	// not_in, to which another type is another value, so True.
	OnMismatch Silence

	// Anchor is how much of the text a pattern must match (row "regex
	// anchoring").
	Anchor Anchor

	// Trim is which texts a pattern is tried on (row "regex flags").
	Trim Trim
}

// Silence is what to do where the standard says nothing about a value.
type Silence uint8

// Ask makes the test Unknown, so that an approval asks. NoMatch makes
// it False.
const (
	Ask Silence = iota
	NoMatch
)

// String returns "ask" or "no_match".
func (s Silence) String() string { return choose(uint8(s), "ask", "no_match") }

// Anchor is how much of the text a pattern must match.
type Anchor uint8

// Unanchored searches anywhere in the text: it matches at least
// whatever Full matches, so it only asks more. Full wants the whole
// text to match.
const (
	Unanchored Anchor = iota
	Full
)

// String returns "unanchored" or "full".
func (a Anchor) String() string { return choose(uint8(a), "unanchored", "full") }

// Trim is which texts a pattern is tried on.
type Trim uint8

// RawAndTrimmed tries the raw text and the text without trailing
// Unicode white space, so that a final newline cannot dodge `\.com$`.
// RawOnly tries the raw text alone.
const (
	RawAndTrimmed Trim = iota
	RawOnly
)

// String returns "raw_and_trimmed" or "raw_only".
func (t Trim) String() string { return choose(uint8(t), "raw_and_trimmed", "raw_only") }

func choose(v uint8, zero, other string) string {
	if v == 0 {
		return zero
	}
	return other
}
