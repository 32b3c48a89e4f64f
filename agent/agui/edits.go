package agui

import (
	"errors"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/value"
)

// decision is the payload of an answer to an approval request.
type decision struct {
	approved bool
	reason   string
	edits    []value.Member
	whole    bool // the edits replace all arguments
}

// decide reads a payload. Only true and false are decisions, not "true", 1 or null.
func decide(id string, payload value.Value, args arguments) (decision, error) {
	var d decision
	payload = unwrap(payload)
	if payload.Kind != value.Object {
		return d, refuse(CodeInvalid, id, "the payload must be an object, found a %s", payload.Kind)
	}

	if err := d.readApproved(id, payload); err != nil {
		return d, err
	}
	for _, m := range payload.Members {
		if !isReserved(m.Key) {
			d.edits = append(d.edits, m)
		}
	}
	if err := d.readWhole(id, payload); err != nil {
		return d, err
	}
	return d, d.readReason(id, payload, args)
}

// readReason reads the reason. If an approved call has an argument named reason, this member is
// ambiguous: Microsoft's Agent Framework for Python takes it as an edit of the argument. So it
// is refused, unless it changes nothing. With editedArgs it can only be the reason of the
// decision.
func (d *decision) readReason(id string, payload value.Value, args arguments) error {
	v, ok := payload.Get(reasonKey)
	if !ok {
		return nil
	}
	if argument, named := args.get(reasonKey); named && d.approved && !d.whole {
		if content.SameArguments(v.AppendJSON(nil), argument.AppendJSON(nil)) {
			return nil
		}
		return refuse(CodeInvalidResponse, id,
			"the call has an argument named reason: edit it in editedArgs, with all other arguments; "+
				"beside these, reason is about the decision")
	}

	if v.Kind != value.String {
		return refuse(CodeInvalid, id, "reason must be a text")
	}
	d.reason = v.Text
	return nil
}

// unwrap parses an object in a string, which is the form in which clients send tool results.
func unwrap(payload value.Value) value.Value {
	if payload.Kind == value.String {
		if v, err := value.Parse([]byte(payload.Text), value.Limits{}); err == nil {
			return v
		}
	}
	return payload
}

// readApproved accepts either name, and both if they agree.
func (d *decision) readApproved(id string, payload value.Value) error {
	found := false
	for _, key := range []string{approvedKey, acceptedKey} {
		v, ok := payload.Get(key)
		if !ok {
			continue
		}
		if v.Kind != value.Bool {
			return refuse(CodeInvalid, id, "%s must be true or false, found a %s", key, v.Kind)
		}
		if found && v.Bool != d.approved {
			return refuse(CodeInvalid, id, "approved and accepted differ")
		}
		d.approved, found = v.Bool, true
	}

	if !found {
		return refuse(CodeInvalid, id, "the payload must say whether it is approved")
	}
	return nil
}

func (d *decision) readWhole(id string, payload value.Value) error {
	v, ok := payload.Get(editedKey)
	if !ok || v.Kind == value.Null {
		return nil
	}
	if v.Kind != value.Object || len(d.edits) > 0 {
		return refuse(CodeInvalidResponse, id, "editedArgs must be an object and the only edit")
	}
	d.edits, d.whole = v.Members, true
	return nil
}

// approve approves the call, with edited arguments if they differ from the requested ones.
func approve(q *content.ToolApprovalRequest, args arguments, d decision) (content.Content, error) {
	if len(d.edits) == 0 && !d.whole {
		return q.CreateApproval(d.reason), nil
	}
	if _, ok := q.Call.(*content.FunctionCall); !ok || !args.readable {
		return nil, refuse(CodeInvalidResponse, q.RequestID, "the arguments of this call can't be edited")
	}

	edited, err := merge(q.RequestID, args.members, d)
	if err != nil {
		return nil, err
	}
	doc := value.Value{Kind: value.Object, Members: edited}.AppendJSON(nil)
	if content.SameArguments(doc, q.Call.Args()) {
		return q.CreateApproval(d.reason), nil // a form that sends all arguments back
	}
	out, err := q.CreateEdit(doc, d.reason)
	if err != nil {
		return nil, &ResumeError{
			Code:        CodeInvalidResponse,
			InterruptID: q.RequestID,
			Detail:      err.Error(),
			Err:         err,
		}
	}

	return out, nil
}

// merge replaces arguments with edits of the same name and type. Edits can't add or remove
// arguments.
func merge(id string, members []value.Member, d decision) ([]value.Member, error) {
	edits := map[string]value.Value{}
	for _, m := range d.edits {
		edits[m.Key] = m.Value
	}
	var out []value.Member
	var problems []error
	for _, m := range members {
		v, ok := edits[m.Key]
		delete(edits, m.Key)
		switch {
		case !ok && d.whole:
			problems = append(
				problems,
				refuse(CodeInvalidResponse, id, "editedArgs lacks the argument %q", m.Key),
			)
		case ok && !sameType(m.Value, v):
			problems = append(problems, refuse(CodeInvalidResponse, id, "the argument %q must stay of type %s",
				m.Key, typeName(m.Value)))
		case ok:
			m.Value = v
		}

		out = append(out, m)
	}

	for _, m := range d.edits {
		if _, left := edits[m.Key]; left {
			problems = append(problems, refuse(CodeInvalidResponse, id, "the call has no argument %q", m.Key))
		}
	}

	return out, errors.Join(problems...)
}

// sameType allows an integer in place of a number with a fraction, but not the reverse.
func sameType(old, edited value.Value) bool {
	if old.Kind == value.Number && edited.Kind == value.Number {
		return !old.Num.IsInt() || edited.Num.IsInt()
	}
	return old.Kind == edited.Kind
}
