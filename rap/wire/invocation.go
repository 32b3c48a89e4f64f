package wire

import (
	"encoding/json"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

const maxAncestors = 1000

// ParseInvocation parses an invocation. After an error the returned invocation still has
// CallbackURL, GroupID, ID and CallID, if they are valid: with the first three, the error can
// be sent as a result. Errors are *Error.
func ParseInvocation(body []byte) (Invocation, error) {
	o := document(body, "operation", "arguments", "id", "call_id", "callback_url", "group_id", "thread_ancestors",
		"user_id")
	sender := Invocation{
		ID:          o.id("id"),
		CallID:      o.optionalID("call_id"),
		CallbackURL: o.url("callback_url"),
		GroupID:     o.id("group_id"),
	}
	all := sender
	all.Operation = o.id("operation")
	all.Arguments = o.arguments()
	if o.Raw("thread_ancestors") != nil {
		all.Ancestors = o.strings("thread_ancestors", maxAncestors, o.opaque)
	}
	if user := o.optionalID("user_id"); user != nil {
		all.UserID = *user
	}
	if err := o.err(); err != nil {
		return sender, err
	}
	return all, nil
}

// arguments returns the arguments, or {} if they are absent.
func (o object) arguments() json.RawMessage {
	if o.Raw("arguments") == nil {
		return json.RawMessage("{}")
	}
	return o.rawObject("arguments")
}

// Append appends the encoded invocation to dst. Arguments that are not an object are written as
// false, which every reader refuses. If there are none, {} is written.
func (i *Invocation) Append(dst []byte) []byte {
	w := open(dst)
	w.str("operation", i.Operation)
	if args := jsonmsg.Trim(i.Arguments); len(args) == 0 {
		w.raw("arguments", json.RawMessage("{}"), value.Object)
	} else {
		w.raw("arguments", args, value.Object)
	}
	w.str("id", i.ID)
	w.optional("call_id", i.CallID)
	w.str("callback_url", i.CallbackURL)
	w.str("group_id", i.GroupID)
	if len(i.Ancestors) > 0 {
		w.strings("thread_ancestors", i.Ancestors)
	}
	w.nonEmpty("user_id", i.UserID)
	return w.close()
}
