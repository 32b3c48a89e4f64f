package openai

import (
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// chat implements the Chat Completions API.
type chat struct{ cfg Config }

func (chat) path() string { return "chat/completions" }

func (c chat) request(messages []*content.Message, opt *agent.Options, stream bool) ([]byte, error) {
	if opt.ConversationID != "" {
		return nil, bad(content.BadShape, "Options.ConversationID", "Chat Completions keeps no conversations")
	}

	all, err := chatMessages(messages, opt.Instructions)
	if err != nil {
		return nil, err
	}
	tools, err := c.tools(opt.Tools)
	if err != nil {
		return nil, err
	}
	return request(func(w *jsonmsg.Writer) {
		begin(w, opt)
		w.Name("messages").Elements(all)
		if opt.MaxTokens > 0 {
			w.Name("max_completion_tokens").Int(int64(opt.MaxTokens))
		}
		if opt.Schema != nil {
			w.Name("response_format").Object(func(w *jsonmsg.Writer) {
				w.Member("type", "json_schema")
				w.Name("json_schema").Object(func(w *jsonmsg.Writer) { format(w, opt.Schema, c.cfg.Strict) })
			})
		}

		if stream {
			w.Name("stream_options").Object(func(w *jsonmsg.Writer) { w.Name("include_usage").Bool(true) })
		}
		common(w, c.cfg, opt, tools, stream)
	})
}

func (c chat) tools(tools []agent.Tool) ([][]byte, error) {
	var strict *bool
	if c.cfg.Strict {
		strict = &c.cfg.Strict
	}
	return definitions(tools, func(w *jsonmsg.Writer, t agent.Tool) {
		if h := hosted(t); h != nil {
			w.Fail(bad(content.BadKind, "tools."+h.Name, "Chat Completions has no hosted MCP servers"))
		}
		w.Member("type", "function")
		w.Name("function").Object(func(w *jsonmsg.Writer) { function(w, t.Definition(), strict) })
	})
}

// chatWriter writes messages. It collects contents until the end of their message, or until a
// result, which needs its own message.
type chatWriter struct {
	parts
	out [][]byte

	texts   []string
	refusal string
	calls   [][]byte
}

func chatMessages(messages []*content.Message, instructions string) ([][]byte, error) {
	w := &chatWriter{parts: parts{history: newHistory(messages, false)}}
	if instructions != "" {
		w.text(instructions)
		w.flush(content.System)
	}
	w.walk(messages, w.content, w.flush)
	return w.out, w.err
}

func (w *chatWriter) content(where string, role content.Role, c content.Content) error {
	switch c := c.(type) {
	case *content.FunctionResult:
		return w.result(where, role, c)
	case *content.Text:
		if role == content.ToolRole {
			break
		}
		w.text(c.Text)
		return nil
	}

	switch role {
	case content.User:
		return w.user(where, c)
	case content.Assistant:
		return w.assistant(where, c)
	}

	return misplaced(where, c, role)
}

func (w *chatWriter) text(s string) {
	w.texts = append(w.texts, s)
	w.part("text", func(p *jsonmsg.Writer) { p.Member("text", s) })
}

func (w *chatWriter) user(where string, c content.Content) error {
	switch c := c.(type) {
	case *content.URI:
		if !isImage(c.MediaType) {
			return bad(content.BadKind, where, "Chat Completions takes addresses of images only, not of %q",
				c.MediaType)
		}
		w.image(c.URI)
		return nil
	case *content.Data:
		return w.data(where, c)
	}

	return misplaced(where, c, content.User)
}

func (w *chatWriter) image(uri string) {
	w.part("image_url", func(p *jsonmsg.Writer) {
		p.Name("image_url").Object(func(p *jsonmsg.Writer) { p.Member("url", uri) })
	})
}

func (w *chatWriter) data(where string, c *content.Data) error {
	if !strings.HasPrefix(c.URI, "data:") {
		return bad(content.BadShape, where, "expected a data URI")
	}
	switch kind := mediaType(c); {
	case isImage(kind):
		w.image(c.URI)
	case strings.HasPrefix(kind, "audio/"):
		return w.audio(where, kind, c.URI)
	default:
		w.part("file", func(p *jsonmsg.Writer) {
			p.Name("file").Object(func(p *jsonmsg.Writer) {
				p.Member("filename", fileName(c))
				p.Member("file_data", c.URI)
			})
		})
	}

	return nil
}

func (w *chatWriter) audio(where, kind, uri string) error {
	formats := map[string]string{
		"audio/wav":   "wav",
		"audio/x-wav": "wav",
		"audio/mpeg":  "mp3",
		"audio/mp3":   "mp3",
	}
	head, data, _ := strings.Cut(uri, ",")
	if formats[kind] == "" || !strings.HasSuffix(head, ";base64") {
		return bad(content.BadKind, where, "Chat Completions takes wav and mp3 in base64 only, not %q", kind)
	}

	w.part("input_audio", func(p *jsonmsg.Writer) {
		p.Name("input_audio").Object(func(p *jsonmsg.Writer) {
			p.Member("data", data)
			p.Member("format", formats[kind])
		})
	})
	return nil
}

func (w *chatWriter) assistant(where string, c content.Content) error {
	switch c := c.(type) {
	case *content.Reasoning: // this API has no place for it
		return nil
	case *content.Error: // history.skips has left only refusals
		w.refusal += c.Message
		return nil
	case *content.FunctionCall:
		return w.call(where, c)
	}

	return misplaced(where, c, content.Assistant)
}

func (w *chatWriter) call(where string, c *content.FunctionCall) error {
	if c.CallID == "" || c.Name == "" {
		return bad(content.BadID, where, "expected a call with an id and a name")
	}
	w.history.open[c.CallID]++
	raw, err := jsonmsg.Object(func(p *jsonmsg.Writer) {
		p.Member("id", c.CallID)
		p.Member("type", "function")
		p.Name("function").Object(func(p *jsonmsg.Writer) {
			p.Member("name", c.Name)
			p.Member("arguments", argumentsText(c.Arguments))
		})
	})
	w.calls = append(w.calls, raw)
	return err
}

func (w *chatWriter) result(where string, role content.Role, c *content.FunctionResult) error {
	w.flush(role)
	send, err := w.history.result(where, c)
	if err != nil || !send {
		return err
	}
	raw, err := jsonmsg.Object(func(p *jsonmsg.Writer) {
		p.Member("role", "tool")
		p.Member("tool_call_id", c.CallID)
		p.Member("content", resultText(c.Result))
	})
	w.out = append(w.out, raw)
	return err
}

// flush writes the collected contents as one message. It writes nothing if there are none.
func (w *chatWriter) flush(role content.Role) {
	if len(w.made) == 0 && len(w.calls) == 0 && w.refusal == "" {
		return
	}
	raw, err := jsonmsg.Object(func(m *jsonmsg.Writer) {
		m.Member("role", string(role))
		switch {
		case role == content.Assistant && len(w.texts) > 0:
			m.Member("content", strings.Join(w.texts, ""))
		case len(w.made) == 1 && len(w.texts) == 1:
			m.Member("content", w.texts[0])
		case len(w.made) > 0:
			m.Name("content").Elements(w.made)
		}

		m.Optional("refusal", w.refusal)
		if len(w.calls) > 0 {
			m.Name("tool_calls").Elements(w.calls)
		}
	})
	w.fail(err)
	w.out = append(w.out, raw)
	w.made = nil
	w.texts = nil
	w.refusal = ""
	w.calls = nil
}
