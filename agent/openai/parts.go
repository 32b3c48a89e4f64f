package openai

import (
	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// parts collects the parts of a message or an item, and the first error.
type parts struct {
	history *history
	made    [][]byte
	err     error
}

// walk writes messages content by content, and calls flush after each message.
func (p *parts) walk(
	messages []*content.Message,
	write func(where string, role content.Role, c content.Content) error,
	flush func(content.Role),
) {
	for i, m := range messages {
		if m == nil {
			p.fail(bad(content.BadShape, place(i, 0), "there is no message"))
			continue
		}
		for j, c := range m.Contents {
			if p.err == nil && !p.history.skips(i, j, c) {
				p.fail(write(place(i, j), m.Role, c))
			}
		}

		flush(m.Role)
	}
}

// definitions writes each tool as an object.
func definitions(tools []agent.Tool, write func(*jsonmsg.Writer, agent.Tool)) ([][]byte, error) {
	var p parts
	for _, t := range tools {
		raw, err := jsonmsg.Object(func(w *jsonmsg.Writer) { write(w, t) })
		p.fail(err)
		p.made = append(p.made, raw)
	}
	return p.made, p.err
}

func (p *parts) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// part adds an object of a type.
func (p *parts) part(kind string, fill func(*jsonmsg.Writer)) {
	p.made = append(p.made, p.kind(kind, fill))
}

// kind writes an object of a type.
func (p *parts) kind(kind string, fill func(*jsonmsg.Writer)) []byte {
	raw, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("type", kind)
		fill(w)
	})
	p.fail(err)
	return raw
}
