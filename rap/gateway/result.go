package gateway

import (
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/wire"
)

// maxResult limits a tool_result, because runtimes read at most some megabytes of a callback.
const maxResult = 3 << 20

// errorOutcome returns the outcome of a call that failed or did not run.
func errorOutcome(text string) rap.Outcome {
	if !strings.HasPrefix(text, "Error: ") {
		text = "Error: " + text
	}
	return rap.Outcome{Text: text}
}

// resultBody encodes the result of a call. If out can't be encoded, or the encoding would not
// be understood, the result is an error with the reason, and sent is false.
func resultBody(c *call, out rap.Outcome) (body []byte, sent bool) {
	body = encodeResult(c, out)
	if len(body) > maxResult {
		return encodeResult(c, errorOutcome("the operation ran, but its result is too large to be sent")), false
	}
	if _, err := wire.ParseCallback(body); err != nil {
		return encodeResult(
			c,
			errorOutcome("the operation ran, but its result can't be written as a tool_result"),
		), false
	}

	return body, true
}

func encodeResult(c *call, out rap.Outcome) []byte {
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
