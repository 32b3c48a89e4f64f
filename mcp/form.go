package mcp

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/value"
)

// methodElicit is the method that asks the user of a client.
const methodElicit = "elicitation/create"

const (
	longestForm   = 2000 // characters of a form: what a client may be able to show
	bindingDigits = 12   // of a binding that a form shows
)

// formText returns the text of a form for a question: the whole call in plain text. fits is false
// if the call is too long or part of it is hidden.
func formText(r *approval.Request) (text string, fits bool) {
	call := &r.Current().Call
	args, err := value.AppendCanonicalText(nil, []byte(call.Args), value.DefaultLimits())
	if err != nil || len(r.Hidden()) > 0 {
		return "", false
	}
	digits := r.Binding()[len("sha256:"):][:bindingDigits]
	text = "assent: " + textMayRun + "\n" + safetext.Line(call.Server) + ": " + safetext.Line(call.Tool) + "\n" +
		safetext.Line(string(args)) + "\n" + digits
	return text, utf8.RuneCountInString(text) <= longestForm
}

// formParams returns the params of a form. Only versions that have several modes of elicitation get
// the mode.
func formParams(r *server.Request, text string) json.RawMessage {
	return written(func(w *jsonmsg.Writer) {
		if r.Modern || r.Version == wire.V20251125 {
			w.Member("mode", "form")
		}
		w.Member("message", text)
		w.Name("requestedSchema").Verbatim([]byte(`{"type":"object","properties":{"decision":{"type":"string",` +
			`"enum":["approve","deny"]}},"required":["decision"]}`))
	})
}

// The words by which a client answers.
const (
	saidApprove = "approve"
	saidDeny    = "deny"
	saidDecline = "decline"
)

// saidIn returns the answer in the result of a form, or an empty string if there is none. A client
// may cancel, time out or make something up: only an explicit approval approves.
func saidIn(result json.RawMessage) string {
	action, _ := jsonmsg.ReadString(jsonmsg.Get(result, "action"))
	decision, _ := jsonmsg.ReadString(jsonmsg.Get(jsonmsg.Get(result, "content"), "decision"))
	switch {
	case action == saidDecline:
		return saidDecline
	case action == "accept" && (decision == saidApprove || decision == saidDeny):
		return decision
	}

	return ""
}

// linkParams returns the params of a link to the page of a request. The link carries no secret,
// because the page requires a sign-in. An empty id is left out.
func linkParams(id, page string) json.RawMessage {
	return written(func(w *jsonmsg.Writer) {
		w.Member("mode", "url")
		w.Optional("elicitationId", id)
		w.Member("message", "This call waits for people to decide. Open the request?")
		w.Member("url", page)
	})
}

// linkNeeded returns the error that makes a client of 2025-11-25 open a page, and call again when
// it is notified that the request there was answered.
func linkNeeded(id, page string) *wire.Error {
	bad := wire.Fail(wire.CodeURLElicitation, "Not run yet. Waits for people to decide.")
	bad.Data = written(func(w *jsonmsg.Writer) {
		w.Name("elicitations").Elements([][]byte{linkParams(id, page)})
	})
	return bad
}
