package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// The kinds of results in modern versions.
const (
	Complete      = "complete"
	InputRequired = "input_required"
	TaskCreated   = "task"
)

// Said is a result with one text, such as a refusal. With IsError set, models read the text.
type Said struct {
	Text    string
	IsError bool
	Meta    json.RawMessage // an object; nil for none
}

// Append writes the result of a tool call. A modern client gets a resultType.
func (s *Said) Append(dst []byte, modern bool) ([]byte, error) {
	w := jsonmsg.Append(dst)
	w.Object(func(w *jsonmsg.Writer) {
		if modern {
			w.Member("resultType", Complete)
		}
		w.Name("content").List(1, func(w *jsonmsg.Writer, _ int) {
			w.Object(func(w *jsonmsg.Writer) {
				w.Member("type", "text")
				w.Member("text", s.Text)
			})
		})
		w.Name("isError").Bool(s.IsError)
		if s.Meta != nil {
			w.Name("_meta").Verbatim(s.Meta)
		}
	})

	return w.Text, w.Err()
}

// ResultType returns the resultType of a result. It is "complete" if the result has none, as in all
// results of legacy servers.
func ResultType(result []byte) string {
	kind, sound := jsonmsg.ReadString(jsonmsg.Get(result, "resultType"))
	if !sound || kind == "" {
		return Complete
	}
	return kind
}

// ForClient returns a server's result for a client of either era. Only modern clients get a
// resultType. The protocol's own keys of _meta are removed, because the gateway adds its own.
// Everything else is unchanged.
func ForClient(result []byte, modern bool) json.RawMessage {
	w := jsonmsg.Append(make([]byte, 0, len(result)+32))
	w.Object(func(w *jsonmsg.Writer) {
		if modern {
			w.Member("resultType", ResultType(result))
		}
		for _, m := range jsonmsg.Members(result) {
			switch m.Name {
			case "resultType":
			case "_meta":
				writeForeign(w, m.Raw)
			default:
				w.Name(m.Name).Verbatim(m.Raw)
			}
		}
	})

	return w.Text
}

// WithMeta adds a key to the _meta of a result and leaves its other bytes unchanged.
func WithMeta(result, meta json.RawMessage) json.RawMessage {
	was, rest := jsonmsg.Take(result, "_meta")
	if rest == nil {
		rest = json.RawMessage("{}")
	}
	for _, m := range jsonmsg.Members(meta) {
		if !jsonmsg.IsObject(was) {
			was = json.RawMessage("{}")
		}
		was = jsonmsg.Put(was, m.Name, m.Raw)
	}

	return jsonmsg.Put(rest, "_meta", was)
}

// writeForeign writes _meta without the protocol's own keys. If there are none of them, it is
// unchanged byte for byte.
func writeForeign(w *jsonmsg.Writer, raw []byte) {
	members := jsonmsg.Members(raw)
	own := false
	for _, m := range members {
		own = own || Reserved(m.Name)
	}
	if !own {
		w.Name("_meta").Verbatim(raw)
		return
	}
	w.Name("_meta").Object(func(w *jsonmsg.Writer) {
		for _, m := range members {
			if !Reserved(m.Name) {
				w.Name(m.Name).Verbatim(m.Raw)
			}
		}
	})
}

// Progress is the params of notifications/progress.
type Progress struct {
	Token    ID
	Progress float64
	Total    float64 // 0 when it says none
	Message  string
}

// ReadProgress reads the params of notifications/progress.
func ReadProgress(params []byte) (Progress, *Error) {
	f := jsonmsg.Read(objectOr(params), Limits())
	token, sound := ReadID(f.Raw("progressToken"))
	p := Progress{
		Token:    token,
		Progress: number(f, "progress"),
		Total:    number(f, "total"),
		Message:  f.Text("message"),
	}
	if f.Err() != nil || !sound || !f.Has("progress") {
		return p, Fail(CodeInvalidParams, "params: expected progressToken and progress")
	}
	return p, nil
}

func number(f jsonmsg.Fields, name string) float64 {
	var n float64
	raw := f.Raw(name)
	if raw != nil && json.Unmarshal(raw, &n) != nil {
		f.Expect(name, "a number")
	}
	return n
}

// Params writes the params of notifications/progress.
func (p Progress) Params() (json.RawMessage, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name("progressToken").Verbatim([]byte(p.Token.Text()))
		w.Name("progress").Float(p.Progress)
		if p.Total != 0 {
			w.Name("total").Float(p.Total)
		}
		w.Optional("message", p.Message)
	})
}

// WithText returns a tool's result with a text before its content. If the result has no list of
// content, it gets one.
func WithText(result []byte, text string) json.RawMessage {
	w := jsonmsg.Append(make([]byte, 0, len(result)+len(text)+64))
	w.Object(func(w *jsonmsg.Writer) {
		found := false
		for _, m := range jsonmsg.Members(result) {
			if m.Name != "content" {
				w.Name(m.Name).Verbatim(m.Raw)
				continue
			}
			found = true
			w.Name(m.Name).Verbatim(prepended(m.Raw, text))
		}
		if !found {
			w.Name("content").Verbatim(prepended(nil, text))
		}
	})
	return w.Text
}

// prepended returns a list of content with a text in front.
func prepended(content []byte, text string) []byte {
	first, _ := json.Marshal(map[string]string{"type": "text", "text": text}) // texts always have JSON
	rest := bytes.TrimSpace(content)
	if len(rest) < 2 || rest[0] != '[' {
		return slices.Concat([]byte("["), first, []byte("]"))
	}
	if inner := bytes.TrimSpace(rest[1 : len(rest)-1]); len(inner) == 0 {
		return slices.Concat([]byte("["), first, []byte("]"))
	}
	return slices.Concat([]byte("["), first, []byte(","), rest[1:])
}
