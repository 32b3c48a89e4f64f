package openai

import "github.com/assent-dev/assent/internal/jsonmsg"

// parts are the parts of a message, or an item, that is being written,
// and the first thing that went wrong.
type parts struct {
	made [][]byte
	err  error
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
