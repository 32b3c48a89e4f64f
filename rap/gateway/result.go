package gateway

import (
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/wire"
)

// maxGateResult bounds a tool_result: runtimes read no more than some
// megabytes of a callback.
const maxResult = 3 << 20

// errorOutcome is the outcome of a call that came to nothing.
func errorOutcome(text string) rap.Outcome {
	if !strings.HasPrefix(text, "Error: ") {
		text = "Error: " + text
	}
	return rap.Outcome{Text: text}
}

// resultBody writes the result of a call. What can't be written or
// would not be understood becomes an error that says so, and sent is
// false: a result always follows.
func resultBody(c *call, out rap.Outcome) (body []byte, sent bool) {
	body = maxWrites(c, out)
	if len(body) > maxResult {
		return maxWrites(c, errorOutcome("the operation ran, but its result is too large to be sent")), false
	}
	if _, err := wire.ParseCallback(body); err != nil {
		return maxWrites(
			c,
			errorOutcome("the operation ran, but its result can't be written as a tool_result"),
		), false
	}

	return body, true
}

func maxWrites(c *call, out rap.Outcome) []byte {
	r := wire.Result{
		GroupID:      c.Thread,
		ID:           c.ID,
		CallID:       c.CallID,
		Subscription: out.Subscription,
	}
	if out.Content != nil {
		r.Content = out.Content
	} else {
		text := strings.ToValidUTF8(out.Text, "\uFFFD")
		r.Text = &text
	}

	if json.Valid(out.DisplayAs) {
		r.DisplayAs = out.DisplayAs
	}
	return r.Append(nil)
}
