package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// events is the source of a stream.
type events interface {
	Next() bool
	Event() ssestream.Event
	Err() error
}

// stream is an incomplete message.
type stream struct {
	status  int // status of the HTTP response
	message *wireMessage
	blocks  []*building // in order; only the first one is yielded, later ones wait for it
	next    int         // index of the next block
	ended   bool
}

// readStream yields the updates of one message. If the stream ends before the service has
// reported that the message is complete, it yields an error.
func readStream(status int, in events, yield func(*agent.Update, error) bool) {
	s := &stream{status: status}
	for in.Next() {
		updates, err := s.take(in.Event())
		if err != nil {
			yield(nil, err)
			return
		}
		for _, u := range updates {
			if !yield(u, nil) {
				return
			}
		}
		if s.ended {
			return
		}
	}

	err := ErrCut
	if cause := in.Err(); cause != nil {
		err = fmt.Errorf("%w: %w", ErrCut, cause)
	}
	yield(nil, err)
}

// wireEvent is one event of a stream.
type wireEvent struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
	Index   *int            `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   json.RawMessage `json:"delta"`
	Usage   json.RawMessage `json:"usage"`
}

// take reads one event. It ignores events of unknown types, as the API requires of its clients.
func (s *stream) take(e ssestream.Event) ([]*agent.Update, error) {
	if e.Type == "error" {
		return nil, errorOf(s.status, e.Data)
	}
	if len(e.Data) == 0 {
		return nil, nil
	}
	var w wireEvent
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return nil, badResponse("the event %q: %v", e.Type, err)
	}
	switch w.Type {
	case "error":
		return nil, errorOf(s.status, e.Data)
	case "message_start":
		return s.start(&w)
	case "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop":
		if s.message == nil {
			return nil, badResponse("the event %q before the message", w.Type)
		}
	default:
		return nil, nil
	}

	if err := s.change(&w); err != nil {
		return nil, err
	}
	out, err := s.tell()
	if err != nil || !s.ended {
		return out, err
	}
	last, err := s.finish()
	return append(out, last), err
}

func (s *stream) start(w *wireEvent) ([]*agent.Update, error) {
	if s.message != nil {
		return nil, badResponse("a second message in one stream")
	}
	m := &wireMessage{}
	if err := json.Unmarshal(w.Message, m); err != nil {
		return nil, badResponse("the message: %v", err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if len(m.Content) > 0 {
		return nil, badResponse("a message that begins with blocks")
	}
	s.message = m
	return []*agent.Update{s.update()}, nil
}

func (s *stream) update(contents ...content.Content) *agent.Update {
	m := s.message
	return &agent.Update{
		Role:      content.Assistant,
		MessageID: m.ID,
		ID:        m.ID,
		Model:     m.Model,
		Contents:  contents,
	}
}

// change applies an event to the message.
func (s *stream) change(w *wireEvent) error {
	switch w.Type {
	case "message_delta":
		return s.delta(w)
	case "message_stop":
		s.ended = true
		return nil
	case "content_block_start":
		return s.open(w)
	}

	b, err := s.block(w)
	if err != nil {
		return err
	}
	if w.Type == "content_block_stop" {
		b.stopped = true
		return nil
	}
	return b.delta(w.Delta)
}

// delta stores the reason why the message ended, and new token counts.
func (s *stream) delta(w *wireEvent) error {
	if err := json.Unmarshal(w.Delta, &s.message.ending); err != nil {
		return badResponse("the end of the message: %v", err)
	}
	if isNull(w.Usage) {
		return nil
	}
	var counts map[string]json.RawMessage
	if err := json.Unmarshal(w.Usage, &counts); err != nil {
		return badResponse("the usage: %v", err)
	}
	maps.DeleteFunc(counts, func(_ string, n json.RawMessage) bool { return isNull(n) })
	if s.message.Usage == nil {
		s.message.Usage = counts
	}
	maps.Copy(s.message.Usage, counts)
	return nil
}

func (s *stream) open(w *wireEvent) error {
	if w.Index == nil || *w.Index != s.next {
		return badResponse("a block out of order, expected number %d", s.next)
	}
	c, err := parseBlock(w.Block)
	if err != nil {
		return err
	}
	s.blocks = append(s.blocks, newBuilding(c, s.next))
	s.next++
	return nil
}

// block returns the open block that an event belongs to.
func (s *stream) block(w *wireEvent) (*building, error) {
	for _, b := range s.blocks {
		if w.Index != nil && b.index == *w.Index && !b.stopped {
			return b, nil
		}
	}
	return nil, badResponse("the event %q is of no open block", w.Type)
}

// tell returns the new contents. Blocks may overlap, but contents are returned in the order of
// the blocks.
func (s *stream) tell() ([]*agent.Update, error) {
	var out []*agent.Update
	for len(s.blocks) > 0 {
		b := s.blocks[0]
		contents, err := b.take()
		if err != nil {
			return nil, err
		}
		if len(contents) > 0 {
			out = append(out, s.update(contents...))
		}
		if !b.stopped {
			break
		}
		s.blocks = s.blocks[1:]
	}

	return out, nil
}

// finish returns the last update, the only one with the reason why the message ended.
func (s *stream) finish() (*agent.Update, error) {
	if len(s.blocks) > 0 {
		return nil, badResponse("it ended inside of a block")
	}
	if s.message.StopReason == "" {
		return nil, badResponse("it does not say why it ended")
	}
	usage, err := usageOf(s.message.Usage)
	if err != nil {
		return nil, err
	}
	out := s.update(s.message.StopDetails.contents()...)
	if usage != nil {
		out.Contents = append(out.Contents, usage)
	}
	out.FinishReason = finishReason(s.message.StopReason)
	return out, nil
}

// building is an incomplete block. Texts and thoughts are yielded as they arrive, everything
// else when it is complete.
type building struct {
	index     int
	content   content.Content
	fresh     string // text that was not yielded yet
	any       bool   // there was text
	seal      string
	citations []json.RawMessage
	input     []byte
	stopped   bool
}

func newBuilding(c content.Content, index int) *building {
	b := &building{index: index, content: c}
	switch c := c.(type) {
	case *content.Text:
		b.add(c.Text)
	case *content.Reasoning:
		b.add(c.Text)
		b.seal = c.Protected
	}

	return b
}

func (b *building) add(s string) {
	b.fresh += s
	b.any = b.any || s != ""
}

// delta changes the block. An unknown delta is an error, because without it the block could not
// be sent back unchanged.
func (b *building) delta(raw json.RawMessage) error {
	var d struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Input     string          `json:"partial_json"`
		Citation  json.RawMessage `json:"citation"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return badResponse("a piece of block %d: %v", b.index, err)
	}
	_, isText := b.content.(*content.Text)
	_, isThought := b.content.(*content.Reasoning)
	switch {
	case d.Type == "text_delta" && isText:
		b.add(d.Text)
	case d.Type == "citations_delta" && isText && !isNull(d.Citation):
		b.citations = append(b.citations, d.Citation)
	case d.Type == "thinking_delta" && isThought:
		b.add(d.Thinking)
	case d.Type == "signature_delta" && isThought:
		b.seal += d.Signature
	case d.Type == "input_json_delta" && !isText && !isThought:
		b.input = append(b.input, d.Input...)
	default:
		return badResponse("a piece of type %q in block %d", d.Type, b.index)
	}

	return nil
}

// take returns the contents that can be yielded now.
func (b *building) take() ([]content.Content, error) {
	var out []content.Content
	fresh := b.fresh
	b.fresh = ""
	switch c := b.content.(type) {
	case *content.Text:
		if fresh != "" {
			out = append(out, &content.Text{Text: fresh})
		}
		return b.end(out, b.cited(c))
	case *content.Reasoning:
		if fresh != "" {
			out = append(out, &content.Reasoning{Text: fresh})
		}
		return b.end(out, b.sealed(c))
	}

	if !b.stopped {
		return nil, nil
	}
	return b.whole()
}

// end adds the last content of a block when the block is complete.
func (b *building) end(out []content.Content, last content.Content) ([]content.Content, error) {
	if b.stopped && last != nil {
		out = append(out, last)
	}
	return out, nil
}

// cited returns a text with the citations of the block. They follow the text, because they
// arrive separately from its pieces.
func (b *building) cited(c *content.Text) content.Content {
	switch {
	case len(b.citations) > 0:
		return &content.Text{Common: keep("citations", array(b.citations))}
	case len(c.Extra) > 0:
		return &content.Text{Common: c.Common}
	}

	return nil
}

// sealed returns the end of a thought. If it has no text or no signature, it is marked so that
// it is not joined with another.
func (b *building) sealed(c *content.Reasoning) content.Content {
	out := &content.Reasoning{Protected: b.seal}
	if !b.any || b.seal == "" {
		out.Common = c.Common
		if out.Properties == nil {
			out.Common = sealOf("thinking")
		}
	}

	return out
}

// whole completes a block whose input arrived in pieces.
func (b *building) whole() ([]content.Content, error) {
	if len(b.input) == 0 {
		return []content.Content{b.content}, nil
	}
	switch c := b.content.(type) {
	case *content.FunctionCall:
		c.Arguments = b.input
	case *content.MCPCall:
		c.Arguments = b.input
	case *content.Unknown:
		raw, err := b.rebuilt(c)
		if err != nil {
			return nil, badResponse("block %d: %v", b.index, err)
		}
		c.Raw = raw
	default:
		return nil, badResponse("input in a block %d that takes none", b.index)
	}

	return []content.Content{b.content}, nil
}

func (b *building) rebuilt(c *content.Unknown) ([]byte, error) {
	if !json.Valid(b.input) {
		return nil, errors.New("the input is no JSON")
	}
	return withMember(c.Raw, "input", b.input), nil
}
