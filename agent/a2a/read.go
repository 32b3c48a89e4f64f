package a2a

import (
	"encoding/json"

	"github.com/assent-dev/assent/value"
)

// limits bounds a document. Artifacts may come with a task.
var limits = value.Limits{MaxBytes: 64 << 20, MaxDepth: 128}

// DecodeTask reads a task, or the answer or stream event of an A2A server that holds one under task or statusUpdate. Names are taken as
// A2A writes them and in no other spelling, members of other names are ignored, a key twice is an error. Errors are of type *Error.
func DecodeTask(src []byte) (*Task, error) {
	v, err := value.Parse(src, limits)
	if err != nil {
		return nil, wrap(BadMessage, "", err)
	}
	idKey := "id"
	if inner, ok := v.Get("task"); ok {
		v = inner
	} else if inner, ok := v.Get("statusUpdate"); ok {
		v, idKey = inner, "taskId"
	}
	r := reader{}
	t := r.task(v, idKey)
	if r.err != nil {
		return nil, r.err
	}
	return t, nil
}

// DecodeMessage reads a message; see DecodeTask.
func DecodeMessage(src []byte) (*Message, error) {
	v, err := value.Parse(src, limits)
	if err != nil {
		return nil, wrap(BadMessage, "", err)
	}
	r := reader{}
	m := r.message(v)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// reader keeps the first thing that is wrong.
type reader struct{ err error }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = refuse(BadMessage, "", format, args...)
	}
}

func (r *reader) object(v value.Value, what string) bool {
	if v.Kind != value.Object {
		r.fail("%s must be an object, found a %s", what, v.Kind)
	}
	return v.Kind == value.Object
}

// text reads a member; null is the same as absent, as in all JSON of protobuf.
func (r *reader) text(v value.Value, key string) string {
	m, _ := v.Get(key)
	switch m.Kind {
	case value.String:
		return m.Text
	case value.Absent, value.Null:
	default:
		r.fail("%s must be a text, found a %s", key, m.Kind)
	}
	return ""
}

func (r *reader) needText(v value.Value, key string) string {
	out := r.text(v, key)
	if out == "" {
		r.fail("%s is missing", key)
	}
	return out
}

func (r *reader) task(v value.Value, idKey string) *Task {
	if !r.object(v, "a task") {
		return nil
	}
	out := &Task{ID: r.needText(v, idKey), ContextID: r.text(v, "contextId")}
	status, _ := v.Get("status")
	if r.object(status, "status") {
		out.Status = Status{State: State(r.needText(status, "state")), Timestamp: r.text(status, "timestamp")}
		if m, _ := status.Get("message"); m.Kind != value.Absent && m.Kind != value.Null {
			out.Status.Message = r.message(m)
		}
	}
	return out
}

func (r *reader) message(v value.Value) *Message {
	if !r.object(v, "a message") {
		return nil
	}
	out := &Message{
		MessageID: r.needText(v, "messageId"),
		ContextID: r.text(v, "contextId"),
		TaskID:    r.text(v, "taskId"),
		Role:      Role(r.needText(v, "role")),
	}
	parts, _ := v.Get("parts")
	if parts.Kind != value.Array {
		r.fail("parts must be a list, found a %s", parts.Kind)
	}
	for _, p := range parts.Items {
		out.Parts = append(out.Parts, r.part(p))
	}
	return out
}

// part reads the one content that a part has.
func (r *reader) part(v value.Value) Part {
	if !r.object(v, "a part") {
		return Part{}
	}
	out := Part{Filename: r.text(v, "filename"), MediaType: r.text(v, "mediaType")}
	n := 0
	for _, one := range []struct {
		key string
		to  **string
	}{{"text", &out.Text}, {"url", &out.URL}, {"raw", &out.Raw}} {
		if m, _ := v.Get(one.key); m.Kind != value.Absent && m.Kind != value.Null {
			s := r.text(v, one.key)
			*one.to = &s
			n++
		}
	}
	if m, ok := v.Get("data"); ok { // null is data, too
		out.Data = json.RawMessage(m.AppendJSON(nil))
		n++
	}
	if n != 1 {
		r.fail("a part must have one of text, raw, url and data, found %d", n)
	}
	return out
}
