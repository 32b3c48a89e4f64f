package openai

import (
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// responses implements the Responses API.
type responses struct{ cfg Config }

func (responses) path() string { return "responses" }

// namedConversation is the prefix of ids of conversation objects. Other ids are the id of the
// last response.
const namedConversation = "conv_"

func (r responses) request(messages []*content.Message, opt *agent.Options, stream bool) ([]byte, error) {
	if opt.ConversationID != "" && !r.cfg.Store {
		return nil, bad(
			content.BadShape,
			"Options.ConversationID",
			"conversations are kept only with Config.Store",
		)
	}

	input, err := inputItems(messages, opt.ConversationID != "", r.cfg.Store)
	if err != nil {
		return nil, err
	}
	tools, err := r.tools(opt.Tools)
	if err != nil {
		return nil, err
	}
	return request(func(w *jsonmsg.Writer) {
		begin(w, opt)
		w.Optional("instructions", opt.Instructions)
		w.Name("input").Elements(input)
		r.keeping(w, opt)
		if opt.MaxTokens > 0 {
			w.Name("max_output_tokens").Int(int64(opt.MaxTokens))
		}
		if opt.Schema != nil {
			w.Name("text").Object(func(w *jsonmsg.Writer) {
				w.Name("format").Object(func(w *jsonmsg.Writer) {
					w.Member("type", "json_schema")
					format(w, opt.Schema, r.cfg.Strict)
				})
			})
		}

		common(w, r.cfg, opt, tools, stream)
	})
}

// keeping writes which history the service uses, what it stores and what it includes in the
// answer.
func (r responses) keeping(w *jsonmsg.Writer, opt *agent.Options) {
	w.Name("store").Bool(r.cfg.Store)
	switch {
	case strings.HasPrefix(opt.ConversationID, namedConversation):
		w.Member("conversation", opt.ConversationID)
	case opt.ConversationID != "":
		w.Member("previous_response_id", opt.ConversationID)
	}

	if len(r.cfg.Include) > 0 {
		w.Name("include").Strings(r.cfg.Include)
	}
}

func (r responses) tools(tools []agent.Tool) ([][]byte, error) {
	return definitions(tools, func(w *jsonmsg.Writer, t agent.Tool) {
		if h := hosted(t); h != nil {
			server(w, h)
			return
		}
		w.Member("type", "function")
		function(w, t.Definition(), &r.cfg.Strict) // the service's default is strict
	})
}

// itemWriter writes input items. It collects the contents of a message into one message item
// until a content needs its own item.
//
// Messages of the assistant are sent as plain text. In the service's types, a message with
// parts (output_text, refusal) has an id and a status, and servers that check requests against
// these types reject it without them. A service that stores nothing would not know the id.
type itemWriter struct {
	parts
	stored bool
	out    [][]byte

	said  string // text of the assistant
	phase string
}

// inputItems writes messages as input. kept means that the service has the history, stored that
// it has items by their ids.
func inputItems(messages []*content.Message, kept, stored bool) ([][]byte, error) {
	w := &itemWriter{parts: parts{history: newHistory(messages, kept)}, stored: stored}
	w.walk(messages, w.content, w.flush)
	return w.out, w.err
}

// content adds a content to the current message. Other contents become their own items.
func (w *itemWriter) content(where string, role content.Role, c content.Content) error {
	switch c := c.(type) {
	case *content.Text:
		if role == content.ToolRole {
			return misplaced(where, c, role)
		}
		w.text(role, c)
		return nil
	case *content.Error:
		if role != content.Assistant {
			return misplaced(where, c, role)
		}
		if w.said != "" {
			w.said += paragraph
		}
		w.said += c.Message
		return nil
	case *content.URI, *content.Data:
		if role != content.User {
			return misplaced(where, c, role)
		}
		return w.media(where, c)
	}

	w.flush(role)
	return w.item(where, role, c)
}

func (w *itemWriter) item(where string, role content.Role, c content.Content) error {
	switch c := c.(type) {
	case *content.FunctionResult:
		return w.result(where, c)
	case *content.ToolApprovalResponse:
		return w.answer(where, c)
	case *content.MCPResult: // written with its call
		return nil
	}

	if role != content.Assistant {
		return misplaced(where, c, role)
	}
	switch c := c.(type) {
	case *content.FunctionCall:
		return w.call(where, c)
	case *content.Reasoning:
		return w.reasoning(c)
	case *content.ToolApprovalRequest:
		return w.request(where, c)
	case *content.MCPCall:
		return w.mcpCall(where, c)
	case *content.Unknown:
		return w.unknown(where, c)
	}

	return misplaced(where, c, role)
}

func (w *itemWriter) text(role content.Role, c *content.Text) {
	if role != content.Assistant {
		w.part("input_text", func(p *jsonmsg.Writer) { p.Member("text", c.Text) })
		return
	}
	w.said += c.Text
	if phase := property(c, phaseKey); phase != "" { // the phase follows the texts of its item
		w.phase = phase
		w.flush(role)
	}
}

func (w *itemWriter) media(where string, c content.Content) error {
	switch c := c.(type) {
	case *content.URI:
		if isImage(c.MediaType) {
			w.image(c.URI)
		} else {
			w.part("input_file", func(p *jsonmsg.Writer) { p.Member("file_url", c.URI) })
		}
	case *content.Data:
		if !strings.HasPrefix(c.URI, "data:") {
			return bad(content.BadShape, where, "expected a data URI")
		}
		if isImage(mediaType(c)) {
			w.image(c.URI)
			return nil
		}
		w.part("input_file", func(p *jsonmsg.Writer) {
			p.Member("filename", fileName(c))
			p.Member("file_data", c.URI)
		})
	}

	return nil
}

func (w *itemWriter) image(uri string) {
	w.part("input_image", func(p *jsonmsg.Writer) {
		p.Member("image_url", uri)
		p.Member("detail", "auto")
	})
}

// flush writes the collected contents as one message.
func (w *itemWriter) flush(role content.Role) {
	switch {
	case w.said != "":
		w.add("message", func(p *jsonmsg.Writer) {
			p.Member("role", string(role))
			p.Member("content", w.said)
			p.Optional("phase", w.phase)
		})
	case len(w.made) > 0:
		w.add("message", func(p *jsonmsg.Writer) {
			p.Member("role", string(role))
			p.Name("content").Elements(w.made)
		})
	}

	w.made = nil
	w.said = ""
	w.phase = ""
}

// add writes one item.
func (w *itemWriter) add(kind string, fill func(*jsonmsg.Writer)) {
	w.out = append(w.out, w.kind(kind, fill))
}

func (w *itemWriter) call(where string, c *content.FunctionCall) error {
	if c.CallID == "" || c.Name == "" {
		return bad(content.BadID, where, "expected a call with an id and a name")
	}
	w.history.open[c.CallID]++
	w.add("function_call", func(p *jsonmsg.Writer) {
		p.Member("call_id", c.CallID)
		p.Member("name", c.Name)
		p.Member("arguments", argumentsText(c.Arguments))
	})
	return nil
}

func (w *itemWriter) result(where string, c *content.FunctionResult) error {
	send, err := w.history.result(where, c)
	if err != nil || !send {
		return err
	}
	w.add("function_call_output", func(p *jsonmsg.Writer) {
		p.Member("call_id", c.CallID)
		p.Member("output", resultText(c.Result))
	})
	return nil
}

// reasoning sends encrypted reasoning back. Its id is sent only if the service stores items:
// otherwise the service would search for the id and fail.
func (w *itemWriter) reasoning(c *content.Reasoning) error {
	id := property(c, itemKey)
	if !w.stored {
		id = ""
	}
	if c.Protected == "" && id == "" {
		return nil
	}
	var summary [][]byte
	if c.Text != "" {
		part, err := jsonmsg.Object(func(p *jsonmsg.Writer) {
			p.Member("type", "summary_text")
			p.Member("text", c.Text)
		})
		w.fail(err)
		summary = append(summary, part)
	}

	w.add("reasoning", func(p *jsonmsg.Writer) {
		p.Optional("id", id)
		p.Name("summary").Elements(summary)
		p.Optional("encrypted_content", c.Protected)
	})
	return nil
}

// unknown sends an item of this API back byte for byte.
func (w *itemWriter) unknown(where string, c *content.Unknown) error {
	o := read(c.Raw)
	if kind := o.Text("type"); o.Err() != nil || kind == "" || kind != c.Kind {
		return bad(content.BadKind, where, "an unknown %q is no item of this API", c.Kind)
	}
	w.out = append(w.out, c.Raw)
	return nil
}
