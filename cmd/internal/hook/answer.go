package hook

import (
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// outcome is the kind of answer that the hook gives to the product.
type outcome int

const (
	denied     outcome = iota // the call doesn't run
	allowed                   // the call runs, with the arguments of the verdict
	unanswered                // an MCP server gets no answer, because no person gave one
	deferred                  // the product ends, and asks again when it is resumed
	silent                    // nothing: the product goes by its own rules, or the call has run
)

// verdict is the decision about one call.
type verdict struct {
	outcome outcome
	args    []byte // allowed: the whole of the arguments, or of the answer
	why     string // reason for the model, if denied or unanswered
}

func denies(why string) verdict { return verdict{outcome: denied, why: why} }

func allows(args []byte) verdict { return verdict{outcome: allowed, args: args} }

// mostWhy limits the reason given to the model, in bytes: Claude Code cuts texts at 10,000
// characters.
const mostWhy = 8000

// text returns the answer for standard output: one line of JSON, or nil if the verdict is silent.
func (v verdict) text(e *event) ([]byte, error) {
	if v.outcome == silent {
		return nil, nil
	}
	if len(v.why) > mostWhy {
		v.why = v.why[:mostWhy] + "…" // the writer replaces a character that is cut in half
	}
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) { e.product.say(w, e, v) })

	return append(text, '\n'), err
}

// word returns the outcome as the word that all five products share.
func (v verdict) word() string {
	switch v.outcome {
	case allowed:
		return "allow"
	case deferred:
		return "defer"
	}

	return "deny"
}

func sayClaude(w *jsonmsg.Writer, e *event, v verdict) {
	if e.moment == elicits {
		sayElicitation(w, v)
		return
	}
	w.Name("hookSpecificOutput").Object(func(w *jsonmsg.Writer) {
		if e.moment == dialog {
			w.Member("hookEventName", "PermissionRequest")
			w.Name("decision").Object(func(w *jsonmsg.Writer) { sayBehavior(w, v, v.edits(e)) })
			return
		}
		w.Member("hookEventName", "PreToolUse")
		w.Member("permissionDecision", v.word())
		w.Optional("permissionDecisionReason", v.why)
		if v.edits(e) {
			w.Name("updatedInput").Verbatim(v.args)
			w.Member("additionalContext", note(v.args))
		}
	})
}

// note returns the line that tells the model about an edit. Products
// cut or refuse longer ones.
func note(args []byte) string {
	text := approval.EditNote(args)
	if len(text) > mostWhy {
		text = text[:mostWhy] + "…" // the writer replaces half a character
	}
	return text
}

// edits reports whether the call runs with arguments other than those in the product's document.
// Arguments are written to the answer only in this case.
func (v verdict) edits(e *event) bool {
	return v.outcome == allowed && string(v.args) != string(e.call.Args)
}

// sayBehavior writes the answer that replaces a permission dialog.
func sayBehavior(w *jsonmsg.Writer, v verdict, edits bool) {
	w.Member("behavior", v.word())
	w.Optional("message", v.why)
	if edits {
		w.Name("updatedInput").Verbatim(v.args)
	}
}

// sayCodex writes the same answer as sayClaude, except for dialogs: Codex rejects changed arguments
// there.
func sayCodex(w *jsonmsg.Writer, e *event, v verdict) {
	if e.moment != dialog {
		sayClaude(w, e, v)
		return
	}
	w.Name("hookSpecificOutput").Object(func(w *jsonmsg.Writer) {
		w.Member("hookEventName", "PermissionRequest")
		w.Name("decision").Object(func(w *jsonmsg.Writer) { sayBehavior(w, v, false) })
	})
}

func sayCopilot(w *jsonmsg.Writer, e *event, v verdict) {
	if e.moment == dialog {
		sayBehavior(w, v, false)
		return
	}
	w.Member("permissionDecision", v.word())
	w.Optional("permissionDecisionReason", v.why)
	if v.edits(e) {
		w.Name("modifiedArgs").Verbatim(v.args)
		w.Member("additionalContext", note(v.args))
	}
	if !e.camel {
		sayClaude(w, e, v)
	}
}

func sayCursor(w *jsonmsg.Writer, e *event, v verdict) {
	w.Member("permission", v.word())
	w.Optional("user_message", v.why)
	if v.edits(e) && !e.fixed {
		w.Member("agent_message", note(v.args))
		w.Name("updated_input").Verbatim(v.args)
		return
	}
	w.Optional("agent_message", v.why)
}

func sayGemini(w *jsonmsg.Writer, e *event, v verdict) {
	w.Member("decision", v.word())
	w.Optional("reason", v.why)
	if v.edits(e) {
		w.Name("hookSpecificOutput").Object(func(w *jsonmsg.Writer) {
			w.Member("hookEventName", "BeforeTool")
			w.Name("tool_input").Verbatim(v.args)
		})
	}
}

// takes returns the reason why the product can't run an approved call with args, or an empty string
// if it can.
func (e *event) takes(args []byte) string {
	switch {
	case string(args) == string(e.call.Args):
		return ""
	case e.fixed, e.moment == dialog && e.product.name != "claude-code":
		return e.product.title + " runs the arguments of the model at this point, and no others"
	case !e.product.merges:
		return ""
	}

	for _, m := range jsonmsg.Members(e.call.Args) {
		if jsonmsg.Get(args, m.Name) == nil {
			return e.product.title + " can't take the argument " + m.Name + " out of a call"
		}
	}
	return ""
}
