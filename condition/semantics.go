package condition

// Semantics are a runtime owner's choices where the standard is silent. The zero value is the
// fail-safe reading of docs/design/001-semantics.md.
type Semantics struct {
	// OnMissing is the result of a test if the argument is missing or null
	// (docs/design/001-semantics.md, rows "argument missing, positive matcher" and "argument
	// null"). It does not apply to ne and not_in: they are Unknown for a missing argument, and
	// True for null, which is another value.
	OnMissing Silence

	// OnMismatch is the result of a test for a value of another type, including arrays and
	// objects (rows "type mismatch", "argument is an array", "pattern on non-string"). It does
	// not apply to ne and not_in, which are True for any other type. It also holds for texts,
	// lists and currencies for which an operator of Policy11 is Unknown.
	OnMismatch Silence

	// Anchor says how much of the text a pattern must match (row "regex anchoring"). It also holds
	// for not_pattern, which is then true more often.
	Anchor Anchor

	// Trim says which texts a pattern is tried on (row "regex flags"). It also holds for
	// not_pattern, and for ends_with.
	Trim Trim
}

// Silence is the reaction to a case that the standard does not define.
type Silence uint8

// Ask makes the test Unknown, so that an approval asks. NoMatch makes it False.
const (
	Ask Silence = iota
	NoMatch
)

// String returns "ask" or "no_match".
func (s Silence) String() string { return choose(uint8(s), "ask", "no_match") }

// Anchor says how much of the text a pattern must match.
type Anchor uint8

// Unanchored searches anywhere in the text. It matches whatever Full matches, so it can only
// ask more often. Full requires the whole text to match.
const (
	Unanchored Anchor = iota
	Full
)

// String returns "unanchored" or "full".
func (a Anchor) String() string { return choose(uint8(a), "unanchored", "full") }

// Trim says which texts a pattern is tried on.
type Trim uint8

// RawAndTrimmed tries the raw text, and the text without trailing Unicode white space, so that
// a final newline can't evade `\.com$`. RawOnly tries only the raw text.
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
