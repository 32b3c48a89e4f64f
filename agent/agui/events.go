package agui

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Events converts the stream of a run into events, from RUN_STARTED to RUN_FINISHED or
// RUN_ERROR. It writes texts, calls, their results and requests. Other contents have no event
// and are left out. If the stream failed, the last pair contains the event for the client and
// the stream's error.
func (r Run) Events(stream iter.Seq2[*agent.Update, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &writer{run: r, yield: yield, shown: slices.Clone(r.Shown)}
		w.send(Event{Type: RunStarted, ThreadID: r.ThreadID, RunID: r.RunID})
		if !w.stopped && w.writeStream(stream) {
			w.finish()
		}
	}
}

// writeStream writes the events of the stream. It returns false after an error or when the reader
// stopped. Then it reads no further pieces of the stream, since each may cost a model call.
func (w *writer) writeStream(stream iter.Seq2[*agent.Update, error]) bool {
	for u, err := range stream {
		if err != nil {
			w.fail(err)
			return false
		}
		if w.update(u); w.stopped {
			return false
		}
	}

	return true
}

// writer is the state while the events of a stream are written.
type writer struct {
	run     Run
	yield   func(Event, error) bool
	stopped bool // the reader has stopped

	open  string   // id of the open text message
	named string   // id of that message in the updates
	made  int      // number of ids made so far
	used  []string // ids of messages
	shown []string // ids of calls
	asked []content.InputRequest
}

func (w *writer) send(e Event) {
	if !w.stopped {
		w.stopped = !w.yield(e, nil)
	}
}

func (w *writer) fail(err error) {
	w.endText()
	if !w.stopped {
		w.yield(ErrorEvent(err), err)
	}
}

func (w *writer) finish() {
	w.endText()
	last, err := w.run.finished(w.asked)
	if err != nil {
		w.fail(err)
		return
	}
	w.send(last)
}

func (w *writer) update(u *agent.Update) {
	if u == nil {
		return
	}
	for _, c := range u.Contents {
		switch c := c.(type) {
		case *content.Text:
			w.text(u, c.Text)
		case *content.FunctionResult:
			w.result(c.CallID, resultText(c.Result))
		case *content.MCPResult:
			w.result(c.CallID, content.NewMessage(content.ToolRole, c.Contents()...).Text())
		case content.ToolCall:
			w.call(u, c)
		case content.InputRequest:
			w.ask(u, c)
		}
	}
}

// text begins a message if none is open or if the text belongs to a different one.
func (w *writer) text(u *agent.Update, delta string) {
	if delta == "" || u.Role != "" && u.Role != content.Assistant {
		return
	}
	if w.open == "" || u.MessageID != "" && u.MessageID != w.named {
		w.endText()
		w.named = u.MessageID
		w.open = w.id(u.MessageID)
		w.send(Event{
			Type:      TextMessageStart,
			MessageID: w.open,
			Role:      string(content.Assistant),
		})
	}

	w.send(Event{Type: TextMessageContent, MessageID: w.open, Delta: delta})
}

func (w *writer) endText() {
	if w.open != "" {
		w.send(Event{Type: TextMessageEnd, MessageID: w.open})
		w.open, w.named = "", ""
	}
}

// id returns the given id, or a new one if it is empty or has been used, because an ended
// message can't be continued.
func (w *writer) id(given string) string {
	for given == "" || slices.Contains(w.used, given) {
		w.made++
		given = w.run.RunID + "-" + strconv.Itoa(w.made)
	}
	w.used = append(w.used, given)
	return given
}

func (w *writer) call(u *agent.Update, c content.ToolCall) {
	if c.ID() == "" || c.ToolName() == "" || slices.Contains(w.shown, c.ID()) {
		return
	}
	w.shown = append(w.shown, c.ID())
	w.endText()
	w.send(Event{
		Type:            ToolCallStart,
		ToolCallID:      c.ID(),
		ToolCallName:    c.ToolName(),
		ParentMessageID: u.MessageID,
	})
	if args := c.Args(); len(args) > 0 {
		w.send(Event{Type: ToolCallArgs, ToolCallID: c.ID(), Delta: string(args)})
	}

	w.send(Event{Type: ToolCallEnd, ToolCallID: c.ID()})
}

func (w *writer) result(callID, text string) {
	if callID == "" {
		return
	}
	w.endText()
	w.send(Event{
		Type:       ToolCallResult,
		MessageID:  w.id(""),
		ToolCallID: callID,
		Content:    &text,
		Role:       string(content.ToolRole),
	})
}

// ask shows the call that a request is about, because the interrupt refers to it.
func (w *writer) ask(u *agent.Update, q content.InputRequest) {
	w.asked = append(w.asked, q)
	approval, ok := q.(*content.ToolApprovalRequest)
	if !ok || approval.Call == nil {
		return
	}
	if call, ok := w.run.asCall(q); ok {
		w.call(u, call)
		return
	}
	w.call(u, approval.Call)
}

// resultText returns a string unchanged and anything else as JSON.
func resultText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return text
	}
	return string(raw)
}
