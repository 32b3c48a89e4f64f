package ledger

import (
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// VerifyError is the reason why a log, an export, a proof or a checkpoint can't be verified.
type VerifyError struct {
	Index   int64  // index of the wrong entry, from 0; -1 if it is not about one entry
	Problem string // what was found and what was expected; never contains a sealed value
}

// Error returns the entry followed by the problem.
func (e *VerifyError) Error() string {
	if e.Index < 0 {
		return e.Problem
	}
	return fmt.Sprintf("entry %d: %s", e.Index, e.Problem)
}

func fault(index int64, format string, args ...any) *VerifyError {
	return &VerifyError{index, fmt.Sprintf(format, args...)}
}

// quote returns outside text as a quoted string on one line, truncated if it is long.
func quote(s string) string {
	const most = 128
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// integer returns a non-negative integer.
func integer(v value.Value) (int64, error) {
	if v.Kind == value.Number {
		if n, err := strconv.ParseInt(v.Num.Canonical(), 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("found a JSON value of kind %s, expected a whole number from 0", v.Kind)
}
