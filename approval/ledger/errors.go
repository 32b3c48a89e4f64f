package ledger

import (
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// VerifyError says why a log, an export, a proof or a checkpoint does
// not verify.
type VerifyError struct {
	Index   int64  // of the entry that is wrong, from 0; -1 when it is the whole, or when none can be named
	Problem string // what was found and what was expected, never a sealed value
}

// Error puts the entry before the sentence.
func (e *VerifyError) Error() string {
	if e.Index < 0 {
		return e.Problem
	}
	return fmt.Sprintf("entry %d: %s", e.Index, e.Problem)
}

func fault(index int64, format string, args ...any) *VerifyError {
	return &VerifyError{index, fmt.Sprintf(format, args...)}
}

// quote shows outside text on one line and not at length.
func quote(s string) string {
	const most = 128
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// integer reads a number that is not negative.
func integer(v value.Value) (int64, error) {
	if v.Kind == value.Number {
		if n, err := strconv.ParseInt(v.Num.Canonical(), 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("found a JSON value of kind %s, expected a whole number from 0", v.Kind)
}
