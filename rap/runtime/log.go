package runtime

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// refusal is the reason to refuse a callback: a status for the tool, and a text that only our
// log gets.
type refusal struct {
	code   int
	reason string
}

func (e *refusal) Error() string { return e.reason }

// callName names a call for people. It is a digest, because ids are opaque and may have any
// length and content.
func callName(key string) string {
	thread, id, _ := strings.Cut(key, "/")
	return fmt.Sprintf("%.12s/%.12s", thread, id)
}

// plainError returns a text of limited length, on one line and without control characters, for
// a log or a result.
func plainError(err error) string {
	if err == nil {
		return "no reason given"
	}
	const most = 500
	return diag.Printable(firstBytes(err.Error(), most))
}
