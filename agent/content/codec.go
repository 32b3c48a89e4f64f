package content

import (
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// A Codec writes and reads messages and contents in one of the JSON formats of existing
// frameworks. The zero value is DotNet.
//
// Reading rejects everything that two parsers could read differently: duplicate keys, including
// keys that differ only in case if the format ignores case, invalid UTF-8 and unpaired
// surrogates. It also rejects documents larger than 64 MiB and, in an array of messages, deeper
// than 128 levels. Unknown parts are kept and written back unchanged: contents of other kinds
// as *Unknown, other members in Common.Extra. A decoded value doesn't share memory with src.
// Its raw texts may be slices of one buffer, so they must not be changed in place.
//
// Writing never produces a document that reading would reject. Every error of a Codec is a
// *BadError.
type Codec struct{ w *wire }

// DotNet returns the format of Microsoft.Extensions.AI: $type, camelCase, arguments as an object. It
// also reads the names of older releases.
func DotNet() Codec { return Codec{wires[dotNet]} }

// Python returns the format of Microsoft's Agent Framework for Python: type, snake_case, arguments
// as a JSON string. Whether an approval is about a hosted MCP call is encoded in members that
// every client can set (hosted, and server_label in older releases), so a decoded *MCPCall
// doesn't prove that the call is hosted. The format has no member for a message's time.
func Python() Codec { return Codec{wires[python]} }

// GoFramework returns the format of Microsoft's Agent Framework for Go: Type, PascalCase, arguments
// as a JSON string.
func GoFramework() Codec { return Codec{wires[goFramework]} }

func (c Codec) wire() *wire {
	if c.w == nil {
		return wires[dotNet]
	}
	return c.w
}

var limits = jsonmsg.Limits()

// argumentLimits leaves room for the levels around the arguments. Arguments that are nested
// more deeply, or that can't be parsed, are written as a string.
var argumentLimits = value.Limits{MaxBytes: 64 << 20, MaxDepth: 96}

// within returns the limits for a part that will be nested under that many levels in an array
// of messages. A part that is read with these limits can be written there.
func within(around int) value.Limits {
	return value.Limits{MaxBytes: limits.MaxBytes, MaxDepth: limits.MaxDepth - around}
}

// The number of levels around a message and around a content.
const (
	aroundMessage = 1
	aroundContent = 3
)

// AppendMessages writes messages as one JSON array.
func (c Codec) AppendMessages(dst []byte, ms []*Message) ([]byte, error) {
	return c.write(dst, 0, func(e *encoder) { e.messages(ms) })
}

// AppendMessage writes one message.
func (c Codec) AppendMessage(dst []byte, m *Message) ([]byte, error) {
	return c.write(dst, aroundMessage, func(e *encoder) { e.message(m) })
}

// AppendContent writes one content.
func (c Codec) AppendContent(dst []byte, v Content) ([]byte, error) {
	return c.write(dst, aroundContent, func(e *encoder) { e.content(v) })
}

// DecodeMessages reads a JSON array of messages.
func (c Codec) DecodeMessages(src []byte) ([]*Message, error) {
	var out []*Message
	if err := c.read(src, 0, func(d *decoder, c *jsonmsg.Cursor) { out = d.messages(c) }); err != nil {
		return nil, err
	}
	return out, nil
}

// DecodeMessage reads one message.
func (c Codec) DecodeMessage(src []byte) (*Message, error) {
	var out *Message
	if err := c.read(src, aroundMessage, func(d *decoder, c *jsonmsg.Cursor) { out = d.message(c) }); err != nil {
		return nil, err
	}
	return out, nil
}

// DecodeContent reads one content.
func (c Codec) DecodeContent(src []byte) (Content, error) {
	var out Content
	if err := c.read(src, aroundContent, func(d *decoder, c *jsonmsg.Cursor) { out = d.content(c) }); err != nil {
		return nil, err
	}
	return out, nil
}

// read checks the syntax of the whole document once, so that decode can rely on it.
func (c Codec) read(src []byte, around int, decode func(*decoder, *jsonmsg.Cursor)) error {
	d := newDecoder(c.wire(), src)
	if _, err := d.checker.Check(src, within(around)); err != nil {
		return &BadError{Code: BadJSON, Detail: err.Error(), Err: err}
	}

	decode(d, d.cursor(0))
	return d.problem()
}

// write appends the encoded text to dst. On an error it returns dst unchanged.
func (c Codec) write(dst []byte, around int, encode func(*encoder)) ([]byte, error) {
	e := encoder{w: c.wire(), Writer: jsonmsg.Append(dst)}
	encode(&e)
	if e.err == nil {
		e.checkAll(len(dst), around)
	}
	if err := e.problem(); err != nil {
		return dst, err
	}
	return e.Text, nil
}
