package wire

import (
	"encoding/json"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Append writes the message on one line. Params and Result keep their bytes, except that line
// breaks between values become spaces.
func (m *Message) Append(dst []byte) ([]byte, error) {
	start := len(dst)
	w := jsonmsg.Append(dst)
	w.Object(m.write)
	if err := w.Err(); err != nil {
		return dst, err
	}
	oneLine(w.Text[start:])
	return w.Text, nil
}

// write writes the members, with the id before the content, as most peers do.
func (m *Message) write(w *jsonmsg.Writer) {
	w.Member("jsonrpc", "2.0")
	switch {
	case !m.ID.IsZero():
		w.Name("id").Verbatim([]byte(m.ID.text))
	case m.Kind() == Response:
		w.Name("id").Verbatim([]byte("null"))
	}

	switch {
	case m.Kind() != Response:
		w.Member("method", m.Method)
		if m.Params != nil {
			w.Name("params").Verbatim(m.Params)
		}
	case m.Error != nil:
		w.Name("error").Object(m.Error.WriteMembers)
	default:
		w.Name("result").Verbatim(m.Result)
	}
}

// WriteMembers writes the members of the error.
func (e *Error) WriteMembers(w *jsonmsg.Writer) {
	w.Name("code").Int(int64(e.Code))
	w.Member("message", e.Message)
	if e.Data != nil {
		w.Name("data").Verbatim(e.Data)
	}
}

// oneLine replaces line breaks, which can occur only between values.
func oneLine(text []byte) {
	for i, c := range text {
		if c == '\n' || c == '\r' {
			text[i] = ' '
		}
	}
}

// Answer returns the response to a request.
func Answer(id ID, result json.RawMessage, err *Error) *Message {
	return &Message{ID: id, Result: result, Error: err}
}
