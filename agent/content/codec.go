package content

import (
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// A Codec writes and reads messages and contents in one JSON shape of
// the ecosystem. The zero value is DotNet.
//
// Reading is strict about what two readers could read differently: a
// key twice, also under two spellings where a shape does not tell upper
// from lower case, invalid UTF-8, half surrogates, and more than 64 MiB
// or, in an array of messages, 128 levels. What is merely unknown is
// kept: contents of other kinds are *Unknown, members of other names
// stand in Common.Extra, both written back as they came. What is read
// shares a copy of the text that belongs to it alone; raw texts in it
// may stand close together and must not be changed in place.
//
// Writing never makes what reading would refuse. Every error of a Codec
// is a *BadError.
type Codec struct{ w *wire }

// DotNet is the shape of Microsoft.Extensions.AI: $type, camelCase,
// arguments as an object. Names of older releases are read.
func DotNet() Codec { return Codec{wires[dotNet]} }

// Python is the shape of Microsoft's Agent Framework for Python: type,
// snake_case, arguments as a JSON text. Whether an approval is about a
// hosted MCP call stands in members that every client can set (hosted,
// and server_label of older releases), so an *MCPCall that was read is
// no proof of one. It has no place for a message's time.
func Python() Codec { return Codec{wires[python]} }

// GoFramework is the shape of Microsoft's Agent Framework for Go: Type,
// PascalCase, arguments as a JSON text.
func GoFramework() Codec { return Codec{wires[goFramework]} }

func (c Codec) wire() *wire {
	if c.w == nil {
		return wires[dotNet]
	}
	return c.w
}

var limits = jsonmsg.Limits()

// argumentLimits leaves room for what stands around arguments. What is
// deeper is written as a text, as is what can't be read at all.
var argumentLimits = value.Limits{MaxBytes: 64 << 20, MaxDepth: 96}

// within is the limits of what stands in an array of messages under so
// many levels: what is read alone can be written there.
func within(around int) value.Limits {
	return value.Limits{MaxBytes: limits.MaxBytes, MaxDepth: limits.MaxDepth - around}
}

// The levels around a message and around a content.
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

// read checks a whole document once, so that whatever reads it
// afterwards may trust it to be JSON.
func (c Codec) read(src []byte, around int, decode func(*decoder, *jsonmsg.Cursor)) error {
	d := newDecoder(c.wire(), src)
	if _, err := d.checker.Check(src, within(around)); err != nil {
		return &BadError{Code: BadJSON, Detail: err.Error(), Err: err}
	}

	decode(d, d.cursor(0))
	return d.problem()
}

// write returns dst as it was when there is an error.
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
