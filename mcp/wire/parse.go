package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// members are the members of an object by name, each with its untouched
// text.
type members map[string][]byte

// Parse parses one message. If it fails, the error is the answer to the sender, and the message has
// the id if it could be read. The caller has to split batches first (Batch).
//
// Of params only the names of its own members are checked here. The reader for the method parses
// their values (ReadCall, ReadMeta …).
func Parse(text []byte, lim value.Limits) (Message, *Error) {
	text = bytes.TrimSpace(text)
	if err := bounded(text, lim); err != nil {
		return salvage(text), err
	}
	all, err := split(text, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return salvage(text), unreadable(err)
	}

	m := Message{}
	if raw, there := all["id"]; there {
		id, sound := ReadID(raw)
		if !sound && !isNullAnswer(all) {
			if jsonmsg.Describe(raw) == "a number" && len(raw) <= maxIDText {
				m.ID = ID{text: string(raw)} // the sender hears of it by its own id
			}
			return m, Fail(CodeInvalidRequest, "id: expected a string or a whole number within 2^53")
		}

		if sound {
			m.ID = id
		}
	}

	return m, m.read(all)
}

// isNullAnswer reports whether a message is the answer to a message that its sender could not
// parse. Such an answer has the id null.
func isNullAnswer(all members) bool {
	return string(all["id"]) == "null" && all["method"] == nil && all["error"] != nil
}

// bounded refuses a text that is too large or too deeply nested, or that is no object.
func bounded(text []byte, lim value.Limits) *Error {
	if lim.MaxBytes > 0 && len(text) > lim.MaxBytes {
		return Fail(CodeInvalidRequest, "the message is larger than %d bytes", lim.MaxBytes)
	}
	if tooDeep(text, lim.MaxDepth) {
		return Fail(CodeInvalidRequest, "the message is nested deeper than %d levels", lim.MaxDepth)
	}

	if len(text) > 0 && text[0] == '[' {
		return Fail(CodeInvalidRequest, "expected one message, found a batch")
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return Fail(CodeParse, "the message has a NUL byte")
	}

	return nil
}

// tooDeep counts brackets outside of strings. It checks nothing else.
func tooDeep(text []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}

		if depth > most && most > 0 {
			return true
		}
	}

	return false
}

// read reads the values of the members.
func (m *Message) read(all members) *Error {
	if version, _ := jsonmsg.ReadString(all["jsonrpc"]); version != "2.0" {
		return Fail(CodeInvalidRequest, `jsonrpc: expected "2.0"`)
	}
	if all["method"] == nil {
		return m.readResponse(all)
	}
	method, sound := jsonmsg.ReadString(all["method"])
	if !sound || method == "" {
		return Fail(CodeInvalidRequest, "method: expected a string")
	}
	if all["result"] != nil || all["error"] != nil {
		return Fail(CodeInvalidRequest, "expected a request or a response, found both")
	}
	m.Method = method
	return m.readParams(all)
}

// readParams keeps params unchanged. Arrays, which JSON-RPC allows, are not part of this protocol.
// Null is treated as absent, because some clients send it for requests without params.
func (m *Message) readParams(all members) *Error {
	raw, there := all["params"]
	if !there || string(raw) == "null" {
		return nil
	}
	if !jsonmsg.IsObject(raw) {
		return Fail(CodeInvalidParams, "params: expected an object, found %s", jsonmsg.Describe(raw))
	}
	m.Params = raw
	return nil
}

// readResponse reads an answer, which has either a result or an error. A result is validated as a
// whole, so that every reader of the forwarded text parses it alike.
func (m *Message) readResponse(all members) *Error {
	result, failed := all["result"], all["error"]
	switch {
	case (result == nil) == (failed == nil):
		return Fail(CodeInvalidRequest, "expected a method, a result or an error")
	case failed != nil:
		return m.readError(failed)
	case m.ID.IsZero():
		return Fail(CodeInvalidRequest, "id: expected that of the request whose result this is")
	case !jsonmsg.IsObject(result):
		return Fail(CodeInvalidRequest, "result: expected an object, found %s", jsonmsg.Describe(result))
	}

	if _, err := jsonmsg.Check(result, Limits()); err != nil {
		return unreadable(err)
	}
	m.Result = result
	return nil
}

// readError reads the error of an answer.
func (m *Message) readError(raw []byte) *Error {
	f := jsonmsg.Read(raw, Limits())
	m.Error = &Error{
		Code:    int(f.Int("code", -1<<31, 1<<31-1)),
		Message: f.Text("message"),
		Data:    f.Raw("data"),
	}
	if f.Err() != nil {
		return Fail(CodeInvalidRequest, "error: %v", f.Err())
	}
	return nil
}

// split splits an object into members whose values are validated later. The names of known members
// must be exact, and no name may occur twice.
func split(text []byte, known ...string) (members, error) {
	all := members{}
	for m, err := range value.SplitObject(text) {
		if err != nil {
			return nil, err
		}
		if err := all.add(m, known); err != nil {
			return nil, err
		}
	}

	return all, nil
}

// errName is an error about the name of a member.
type errName struct{ text string }

func (e *errName) Error() string { return e.text }

// add adds a member. It returns an error if the name occurs twice or could be mistaken for a known
// one.
func (all members) add(m value.RawMember, known []string) error {
	if _, twice := all[m.Key]; twice {
		return &errName{text: fmt.Sprintf("the member %q stands there twice", m.Key)}
	}
	for _, name := range known {
		if m.Key != name && strings.EqualFold(m.Key, name) {
			return &errName{text: fmt.Sprintf("unknown member %q: expected %q", m.Key, name)}
		}
	}
	all[m.Key] = m.Raw
	return nil
}

// unreadable returns the answer to a text that is no valid message.
func unreadable(err error) *Error {
	var bad *value.Error
	if errors.As(err, &bad) && bad.Code == value.Syntax {
		return Fail(CodeParse, "the message is no JSON: %v", err)
	}
	return Fail(CodeInvalidRequest, "%v", err)
}

// Batch splits a batch into its messages. It returns false if the text is no batch. Only the
// version 2025-03-26 has batches.
func Batch(text []byte, lim value.Limits) (all [][]byte, is bool, err *Error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '[' {
		return nil, false, nil
	}
	if lim.MaxBytes > 0 && len(text) > lim.MaxBytes || tooDeep(text, lim.MaxDepth) {
		return nil, true, Fail(CodeInvalidRequest, "the batch is too large or nested too deep")
	}
	for item, bad := range value.SplitArray(text) {
		if bad != nil {
			return nil, true, unreadable(bad)
		}
		all = append(all, item)
	}

	if len(all) == 0 {
		return nil, true, Fail(CodeInvalidRequest, "expected a message in the batch")
	}
	return all, true, nil
}
