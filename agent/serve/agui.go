package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/agui"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// AGUI serves an agent over AG-UI: a POST of a RunAgentInput runs the agent once and returns
// the events of the run. A run that has requests ends with interrupts, and the resume list of
// the next run answers them.
//
// The history is kept in the thread: of the messages in an input, only user messages after the
// last one that an earlier run has read are used. A run ends when its client disconnects, and
// is not saved.
type AGUI struct{ *host }

// NewAGUI returns a host. Close ends its runs.
func NewAGUI(cfg Config) (*AGUI, error) {
	h, err := newHost(cfg)
	if err != nil {
		return nil, err
	}
	return &AGUI{h}, nil
}

// RUN_ERROR codes of this host.
const (
	CodeBusy agui.Code = "THREAD_BUSY" // another run uses the thread
)

// runInput contains the fields of a RunAgentInput that are used.
type runInput struct {
	thread, run string
	messages    []said
	resume      json.RawMessage
}

// said is one message of the user.
type said struct{ id, text string }

// seenKey is the key of the thread state that holds the id of the last user message that was
// read.
const seenKey = "serve/agui"

// ServeHTTP runs the agent once.
func (h *AGUI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected a POST of a RunAgentInput", http.StatusMethodNotAllowed)
		return
	}
	caller, ok := h.caller(w, r)
	if !ok {
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBytes))
	if err != nil {
		http.Error(
			w,
			fmt.Sprintf("expected at most %d bytes", h.cfg.MaxBytes),
			http.StatusRequestEntityTooLarge,
		)
		return
	}

	in, err := readRun(text)
	if err != nil {
		http.Error(w, "expected a RunAgentInput: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	h.serve(w, r, threadID("agui", caller, in.thread), in)
}

// readRun reads a RunAgentInput.
func readRun(text []byte) (*runInput, error) {
	f := jsonmsg.Read(text, value.Limits{MaxBytes: len(text) + 1, MaxDepth: 128})
	out := &runInput{
		thread: f.NonEmpty("threadId"),
		run:    f.NonEmpty("runId"),
		resume: f.Raw("resume"),
	}
	for _, m := range f.Objects("messages") {
		if m.NonEmpty("role") == "user" {
			out.messages = append(out.messages, said{id: m.NonEmpty("id"), text: textOf(m)})
		}
	}
	return out, f.Err()
}

// textOf returns the text of a message, which is one text or a list of text parts.
func textOf(m jsonmsg.Fields) string {
	if jsonmsg.Describe(m.Raw("content")) != "an array" {
		return m.Text("content")
	}
	out := ""
	for _, part := range m.Objects("content") {
		if part.NonEmpty("type") != "text" {
			part.Expect("type", `"text": nothing else is taken here`)
		}
		out += part.Text("text")
	}

	return out
}

// serve runs the agent on a thread, after reserving the thread for this run.
func (h *AGUI) serve(w http.ResponseWriter, r *http.Request, key string, in *runInput) {
	send := func(e agui.Event) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return event(w, text)
	}
	t, mine, err := h.begin(key)
	if err != nil || !mine {
		_ = send(agui.Event{
			Type:    agui.RunError,
			Message: "another run has the thread, or too many runs are under way: try again later",
			Code:    string(CodeBusy),
		})
		return
	}

	defer h.end(key)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	if err := h.run(ctx, key, in, send); err != nil {
		h.cfg.Log.Error("run the agent", "thread", in.thread, "error", err)
	}
}

// run sends the events of one run. It returns errors of the agent, which must not be sent to
// the client, for the log.
func (h *AGUI) run(ctx context.Context, key string, in *runInput, send func(agui.Event) error) error {
	thread, err := agent.LoadOrNew(ctx, h.cfg.Store, key)
	if err != nil {
		return errors.Join(err, send(agui.ErrorEvent(err)))
	}
	thread.Keep(h.cfg.Store)
	own, held := openRequests(thread)
	messages, err := in.next(thread, own, held)
	if err != nil {
		return send(agui.ErrorEvent(err))
	}
	run := agui.Run{ThreadID: in.thread, RunID: in.run, Shown: shown(own, held)}
	for e, err := range run.Events(heldApart(thread, h.cfg.Agent.Stream(ctx, thread, messages...))) {
		if failed := send(e); failed != nil || err != nil {
			return errors.Join(failed, err)
		}
	}

	return nil
}

// shown returns the ids of the calls that the client has seen.
func shown(own []content.InputRequest, held []agent.Pending) []string {
	for _, p := range held {
		own = append(own, p.Request)
	}
	var out []string
	for _, q := range own {
		if q, ok := q.(*content.ToolApprovalRequest); ok && q.Call != nil {
			out = append(out, q.Call.ID())
		}
	}
	return out
}

// next returns the messages of a run: the answers to open requests and the user's new messages.
// It is empty if the run waits only for people elsewhere. An answer to a request that people
// answer elsewhere is an error.
func (in *runInput) next(
	thread *agent.Thread, own []content.InputRequest, held []agent.Pending,
) ([]*content.Message, error) {
	for _, p := range held {
		if in.resumes(p.Request.InputRequestID()) {
			return nil, &agui.ResumeError{
				Code:        agui.CodeNotFound,
				InterruptID: p.Request.InputRequestID(),
				Detail:      "people who are asked elsewhere answer it",
			}
		}
	}

	var out []*content.Message
	if len(own) > 0 || len(in.resume) > 0 {
		answers, err := agui.Answers(own, in.resume)
		if err != nil {
			return nil, err
		}
		if len(answers) > 0 {
			out = append(out, content.NewMessage(content.User, answers...))
		}
	}

	var last string
	if _, err := thread.Get(seenKey, &last); err != nil {
		return nil, err
	}
	for _, m := range in.since(last) {
		next := content.UserText(m.text)
		next.ID = m.id
		out = append(out, next)
		last = m.id
	}

	return out, thread.Put(seenKey, last)
}

// resumes reports whether the resume list names an interrupt. It returns false for an invalid
// list, which agui.Answers rejects later.
func (in *runInput) resumes(id string) bool {
	var list []struct {
		InterruptID string `json:"interruptId"`
	}
	if json.Unmarshal(in.resume, &list) != nil {
		return false
	}
	for _, e := range list {
		if e.InterruptID == id {
			return true
		}
	}
	return false
}

// since returns the messages after the last one that was read. If the client no longer has that
// message, only its last message is new.
func (in *runInput) since(last string) []said {
	all := in.messages
	at := slices.IndexFunc(all, func(m said) bool { return m.id == last })
	if at < 0 && last != "" && len(all) > 1 {
		at = len(all) - 2
	}
	return all[at+1:]
}

// heldApart sends the requests that the client answers at the end, and only the number of the
// others.
func heldApart(thread *agent.Thread, stream iter.Seq2[*agent.Update, error]) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		var asked []content.Content
		for u, err := range stream {
			if err != nil {
				yield(nil, err)
				return
			}
			kept := *u
			kept.Contents = nil
			for _, c := range u.Contents {
				if _, ok := c.(content.InputRequest); ok {
					asked = append(asked, c)
				} else {
					kept.Contents = append(kept.Contents, c)
				}
			}

			if len(kept.Contents) > 0 && !yield(&kept, nil) {
				return
			}
		}

		if last := ending(thread, asked); len(last) > 0 {
			yield(&agent.Update{Role: content.Assistant, Contents: last}, nil)
		}
	}
}

// ending returns the contents at the end of a run.
func ending(thread *agent.Thread, asked []content.Content) []content.Content {
	_, held := openRequests(thread)
	out := slices.DeleteFunc(asked, func(c content.Content) bool {
		return slices.ContainsFunc(held, func(p agent.Pending) bool {
			return p.Request.InputRequestID() == c.(content.InputRequest).InputRequestID()
		})
	})
	if len(held) > 0 {
		words := fmt.Sprintf("Waiting for %d approval(s) of people who are asked elsewhere.", len(held))
		out = append([]content.Content{&content.Text{Text: words}}, out...)
	}
	return out
}
