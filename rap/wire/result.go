package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/value"
)

// maxItems limits the items of a result and the segments of display_as.
const maxItems = 1000

// result reads a tool_result, which must have text, content or both.
func (o object) result() *Result {
	r := &Result{
		GroupID:      o.id("group_id"),
		ID:           o.id("id"),
		CallID:       o.optionalID("call_id"),
		Text:         o.Optional("text"),
		Content:      o.contents(),
		DisplayAs:    o.display(),
		Subscription: o.set("subscription"),
	}
	if r.Text == nil && r.Content == nil {
		o.Expect("", "text or content, found neither")
	}
	return r
}

// contents returns nil only if the member is absent: an empty list also replaces the text.
func (o object) contents() []Content {
	if o.Raw("content") == nil {
		return nil
	}
	out := []Content{}
	for path, raw := range o.list("content", maxItems) {
		out = append(out, o.in(path, raw, "type", "text", "data", "mediaType").item())
	}
	return out
}

// item reads an item. An unknown type makes the whole result invalid, because the reader can't
// tell what it would leave out.
func (o object) item() Content {
	switch o.Need("type") {
	case "text":
		return Content{Text: o.Need("text")}
	case "image":
		return o.image()
	}

	o.Expect("type", "text or image")
	return Content{}
}

func (o object) image() Content {
	c := Content{Image: o.Need("data"), MediaType: o.Need("mediaType")}
	if !isBase64(c.Image) {
		o.Expect("data", "base64")
	}
	if !isMediaType(c.MediaType) {
		o.Expect("mediaType", "a media type, such as image/png")
	}
	return c
}

// isBase64 reports whether s is padded base64 on one line. Go's decoder ignores line breaks, so
// they are checked separately.
func isBase64(s string) bool {
	_, err := base64.StdEncoding.Strict().DecodeString(s)
	return s != "" && err == nil && !strings.ContainsAny(s, "\r\n")
}

func isMediaType(s string) bool {
	kind, sub, ok := strings.Cut(s, "/")
	bad := strings.ContainsFunc(kind+sub, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
	return ok && kind != "" && sub != "" && !bad && len(s) <= maxName
}

// display returns display_as unchanged. Segments of known types are checked; others are left to
// readers that know them.
func (o object) display() json.RawMessage {
	raw := o.Raw("display_as")
	if raw == nil {
		return nil
	}
	for path, raw := range o.list("display_as", maxItems) {
		o.in(path, raw, "type", "content").segment()
	}
	return bytes.Clone(raw)
}

func (o object) segment() {
	switch o.Need("type") {
	case "text":
		o.Need("content")
	case "diff":
		diff := o.in(o.At("content"), o.Raw("content"), "path", "patch")
		diff.Need("path")
		diff.Need("patch")
	case "image":
		o.in(o.At("content"), o.Raw("content"), "data", "mediaType").image()
	}
}

// Append appends the encoded result to dst. A DisplayAs that is not a list is written as false,
// which every reader refuses.
func (r *Result) Append(dst []byte) []byte {
	w := head(dst, typeResult, r.GroupID)
	w.str("id", r.ID)
	w.optional("call_id", r.CallID)
	w.optional("text", r.Text)
	if r.Content != nil {
		w.objects("content", len(r.Content), func(w writer, i int) { r.Content[i].write(w) })
	}
	if r.DisplayAs != nil {
		w.raw("display_as", r.DisplayAs, value.Array)
	}
	w.set("subscription", r.Subscription)
	return w.close()
}

func (c Content) write(w writer) {
	if c.Image == "" && c.MediaType == "" {
		w.str("type", "text")
		w.str("text", c.Text)
		return
	}
	w.str("type", "image")
	w.str("data", c.Image)
	w.str("mediaType", c.MediaType)
}
