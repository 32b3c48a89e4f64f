package content

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Members of the additional properties that assent and Python use.
const (
	noteProperty        = "assent"
	unconfirmedProperty = "requires_confirmation" // a member of assent; Python's requests have no member for it
	answerProperty      = "tool_approval"
	reasonProperty      = "reason"
	alwaysProperty      = "always_approve"
)

// takeNote moves assent's note out of the properties. A note that can't be read stays there,
// since no decision depends on it.
func (o *object) takeNote(c *Common) Note {
	if c.Properties == nil || !jsonmsg.IsObject(c.Properties) {
		return Note{}
	}
	properties := o.d.splitAt(o.at[propertiesField])
	alone := len(properties) == 1
	i := slices.IndexFunc(properties, func(m named) bool { return m.name == noteProperty })
	if i < 0 || o.d.text[properties[i].at.From] != '{' {
		return Note{}
	}
	n, ok := readNote(o.d.text, o.d.splitAt(properties[i].at))
	if !ok || n.IsZero() {
		return Note{}
	}

	if alone {
		c.Properties = nil
	} else {
		_, c.Properties = jsonmsg.Take(c.Properties, noteProperty)
	}
	return n
}

func readNote(text string, members []named) (Note, bool) {
	var n Note
	for _, m := range members {
		if !n.set(m.name, text[m.at.From:m.at.To]) {
			return n, false
		}
	}
	return n, true
}

func (n *Note) set(key, raw string) bool {
	ok := raw[0] == '"'
	text := ""
	if ok {
		text = jsonmsg.String(raw)
	}
	switch key {
	case "message":
		n.Message = text
	case "where":
		n.Where = text
	case "agent":
		n.Agent = text
	case "context":
		ok = json.Unmarshal([]byte(raw), &n.Context) == nil && info.Check(n.Context) == nil
	case "expires":
		t, err := time.Parse(time.RFC3339, text)
		n.Expires, ok = t.UTC(), ok && err == nil && t.UTC().Year() <= 9999
	default:
		return true // a member of a newer release
	}

	return ok
}

// noted returns the properties of a request with its note added.
func (e *encoder) noted(c *Common, n *Note) json.RawMessage {
	props := e.properties(c)
	if n.IsZero() {
		return props
	}
	var bad *info.Error
	if errors.As(info.Check(n.Context), &bad) {
		e.fail(BadShape, e.w.name(propertiesField)+"."+noteProperty+"."+bad.Path, "expected "+bad.Want, bad)
		return props
	}

	raw, _ := jsonmsg.Object(func(w *jsonmsg.Writer) {
		for _, m := range n.members() {
			w.Optional(m[0], validUTF8(m[1]))
		}
		if len(n.Context) > 0 {
			w.Name("context")
			w.List(len(n.Context), func(w *jsonmsg.Writer, i int) { writeItem(w, &n.Context[i]) })
		}
	})
	return jsonmsg.Put(props, noteProperty, raw)
}

func writeItem(w *jsonmsg.Writer, it *info.Item) {
	w.Object(func(w *jsonmsg.Writer) {
		w.Member("label", it.Label)
		w.Optional("text", it.Text)
		w.Optional("link", it.Link)
		w.Optional("diff", it.Diff)
	})
}

func (n *Note) members() [4][2]string {
	expires := ""
	if !n.Expires.IsZero() {
		expires = n.Expires.UTC().Format(time.RFC3339Nano)
	}
	return [...][2]string{{"message", n.Message}, {"expires", expires}, {"where", n.Where}, {"agent", n.Agent}}
}

// takeUnconfirmed reads NoConfirmation from assent's note.
func takeUnconfirmed(c *Common) bool {
	note, props := jsonmsg.Take(c.Properties, noteProperty)
	value, note := jsonmsg.Take(note, unconfirmedProperty)
	if string(value) != "false" {
		return false
	}
	if note != nil {
		props = jsonmsg.Put(props, noteProperty, note)
	}
	c.Properties = props
	return true
}

// withUnconfirmed adds NoConfirmation to assent's note, which has been written already.
func withUnconfirmed(props json.RawMessage) json.RawMessage {
	note, _ := jsonmsg.Take(props, noteProperty)
	return jsonmsg.Put(props, noteProperty, jsonmsg.Put(note, unconfirmedProperty, json.RawMessage("false")))
}

// takeAnswer moves the reason and scope of an answer, which Python keeps in the properties, out
// of them.
func takeAnswer(r *ToolApprovalResponse) {
	answer, props := jsonmsg.Take(r.Properties, answerProperty)
	if answer == nil {
		return
	}
	reason, rest := jsonmsg.Take(answer, reasonProperty)
	if text, ok := jsonmsg.ReadString(reason); ok {
		r.Reason, answer = text, rest
	}
	always, rest := jsonmsg.Take(answer, alwaysProperty)
	if scope, ok := alwaysNames[strings.TrimSpace(string(always))]; ok {
		r.Always, answer = scope, rest
	}
	if answer != nil {
		props = jsonmsg.Put(props, answerProperty, answer)
	}
	r.Properties = props
}

var alwaysNames = map[string]AlwaysScope{`"tool"`: AlwaysTool, `"tool_with_arguments"`: AlwaysArguments}

// withAnswer writes the members that takeAnswer reads.
func withAnswer(props json.RawMessage, r *ToolApprovalResponse) json.RawMessage {
	answer, _ := jsonmsg.Take(props, answerProperty)
	if r.Reason != "" {
		answer = jsonmsg.Put(answer, reasonProperty, jsonmsg.AppendString(nil, r.Reason))
	}
	for name, scope := range alwaysNames {
		if scope == r.Always {
			answer = jsonmsg.Put(answer, alwaysProperty, json.RawMessage(name))
		}
	}
	if r.Reason == "" && r.Always == AlwaysNot {
		return props
	}
	return jsonmsg.Put(props, answerProperty, answer)
}

// mediaTypeOf returns the media type of a data URI.
func mediaTypeOf(uri string) string {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		return ""
	}
	head, _, _ := strings.Cut(rest, ",")
	head, _ = strings.CutSuffix(head, ";base64")
	return head
}
