package content

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Members of the additional properties that are assent's, and Python's.
const (
	noteProperty        = "assent"
	unconfirmedProperty = "requires_confirmation" // in assent; Python's requests have no member for it
	answerProperty      = "tool_approval"
	reasonProperty      = "reason"
	alwaysProperty      = "always_approve"
)

func emptyObject(raw json.RawMessage) bool {
	if !isObject(raw) {
		return false
	}
	_, more := first(string(raw), space(string(raw), 0))
	return !more
}

// place is where a member of an object stands.
type place struct {
	key              string
	from, value, end int
}

func places(object json.RawMessage) []place {
	var out []place
	s := string(object)
	i, more := first(s, space(s, 0))
	for more {
		name, at := key(s, i)
		out = append(out, place{name, i, at, skip(s, at)})
		i, more = next(s, out[len(out)-1].end)
	}
	return out
}

// take returns a member of an object and the object without it, nil when nothing is left. What is no object has no members.
func take(object json.RawMessage, name string) (taken, rest json.RawMessage) {
	if !isObject(object) {
		return nil, object
	}
	all := places(object)
	i := slices.IndexFunc(all, func(p place) bool { return p.key == name })
	switch {
	case i < 0:
		return nil, object
	case len(all) == 1:
		return object[all[i].value:all[i].end], nil
	}
	from, to := all[i].from, all[i].end
	if i > 0 {
		from = all[i-1].end
	} else {
		to = all[1].from
	}
	return object[all[i].value:all[i].end], slices.Concat(object[:from], object[to:])
}

// put returns an object with a member in the last place. Nothing else of its text changes.
func put(object json.RawMessage, name string, raw json.RawMessage) json.RawMessage {
	_, rest := take(object, name)
	if !isObject(rest) || emptyObject(rest) {
		return append(appendMember(json.RawMessage("{"), name, raw), '}')
	}
	all := places(rest)
	end := all[len(all)-1].end
	return slices.Concat(appendMember(slices.Clone(rest[:end]), name, raw), rest[end:])
}

// appendMember writes a member behind a bracket or another member.
func appendMember(dst json.RawMessage, key string, raw json.RawMessage) json.RawMessage {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(appendString(dst, key), ':')
	return append(dst, raw...)
}

// textOf reads a JSON string; it is false for everything else.
func textOf(raw json.RawMessage) (string, bool) {
	if kindOf(raw) != "a string" {
		return "", false
	}
	return unquote(strings.TrimSpace(string(raw))), true
}

// takeNote moves assent's note out of the properties. One that can't be read stays there: nothing rests on it.
func takeNote(c *Common) Note {
	raw, rest := take(c.Properties, noteProperty)
	n, ok := readNote(raw)
	if !ok || n == (Note{}) {
		return Note{}
	}
	c.Properties = rest
	return n
}

func readNote(raw json.RawMessage) (Note, bool) {
	var n Note
	ok := isObject(raw)
	if !ok {
		return n, false
	}
	each(raw, func(key string, raw json.RawMessage) bool {
		ok = n.set(key, raw)
		return ok
	})
	return n, ok
}

func (n *Note) set(key string, raw json.RawMessage) bool {
	text, ok := textOf(raw)
	switch key {
	case "message":
		n.Message = text
	case "where":
		n.Where = text
	case "agent":
		n.Agent = text
	case "expires":
		t, err := time.Parse(time.RFC3339, text)
		n.Expires, ok = t.UTC(), ok && err == nil && t.UTC().Year() <= 9999
	default:
		return true // of a newer release
	}
	return ok
}

// withNote returns properties with a note in them.
func withNote(props json.RawMessage, n Note) json.RawMessage {
	if n == (Note{}) {
		return props
	}
	raw := json.RawMessage("{")
	for _, m := range n.members() {
		if m[1] != "" {
			raw = appendMember(raw, m[0], appendString(nil, m[1]))
		}
	}
	return put(props, noteProperty, append(raw, '}'))
}

func (n Note) members() [4][2]string {
	expires := ""
	if !n.Expires.IsZero() {
		expires = n.Expires.UTC().Format(time.RFC3339Nano)
	}
	return [...][2]string{{"message", n.Message}, {"expires", expires}, {"where", n.Where}, {"agent", n.Agent}}
}

// takeUnconfirmed reads NoConfirmation where it stands in assent's note.
func takeUnconfirmed(c *Common) bool {
	note, props := take(c.Properties, noteProperty)
	value, note := take(note, unconfirmedProperty)
	if string(value) != "false" {
		return false
	}
	if note != nil {
		props = put(props, noteProperty, note)
	}
	c.Properties = props
	return true
}

// withUnconfirmed writes NoConfirmation into assent's note, which is written by then.
func withUnconfirmed(props json.RawMessage) json.RawMessage {
	note, _ := take(props, noteProperty)
	return put(props, noteProperty, put(note, unconfirmedProperty, json.RawMessage("false")))
}

// takeAnswer moves what Python keeps beside an answer out of the properties.
func takeAnswer(r *ToolApprovalResponse) {
	answer, props := take(r.Properties, answerProperty)
	if answer == nil {
		return
	}
	reason, rest := take(answer, reasonProperty)
	if text, ok := textOf(reason); ok {
		r.Reason, answer = text, rest
	}
	always, rest := take(answer, alwaysProperty)
	if scope, ok := alwaysNames[strings.TrimSpace(string(always))]; ok {
		r.Always, answer = scope, rest
	}
	if answer != nil {
		props = put(props, answerProperty, answer)
	}
	r.Properties = props
}

var alwaysNames = map[string]AlwaysScope{`"tool"`: AlwaysTool, `"tool_with_arguments"`: AlwaysArguments}

// withAnswer writes what takeAnswer reads.
func withAnswer(props json.RawMessage, r *ToolApprovalResponse) json.RawMessage {
	answer, _ := take(props, answerProperty)
	if r.Reason != "" {
		answer = put(answer, reasonProperty, appendString(nil, r.Reason))
	}
	for name, scope := range alwaysNames {
		if scope == r.Always {
			answer = put(answer, alwaysProperty, json.RawMessage(name))
		}
	}
	if r.Reason == "" && r.Always == AlwaysNot {
		return props
	}
	return put(props, answerProperty, answer)
}

// mediaTypeOf reads the media type of a data URI.
func mediaTypeOf(uri string) string {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		return ""
	}
	head, _, _ := strings.Cut(rest, ",")
	head, _ = strings.CutSuffix(head, ";base64")
	return head
}
