package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/value"
)

// Error codes of JSON-RPC and A2A.
const (
	codeParse         = -32700
	codeRequest       = -32600
	codeMethod        = -32601
	codeParams        = -32602
	codeInternal      = -32603
	codeNotCancelable = -32002
	codeUnsupported   = -32004
	codeContentType   = -32005
	codeVersion       = -32009
)

// rpcError is an error that is sent to the caller unchanged.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *rpcError) Error() string { return e.Message }

func invalid(text string) *rpcError { return &rpcError{codeParams, text} }

func unsupported(text string) *rpcError { return &rpcError{codeUnsupported, text} }

// call is one JSON-RPC call.
type call struct {
	caller string
	id     json.RawMessage
	method string
	params jsonmsg.Fields
}

// serve answers one call. Failed calls are answered with status 200, as A2A requires.
func (h *A2A) serve(w http.ResponseWriter, r *http.Request, caller string) {
	c := &call{caller: caller, id: json.RawMessage("null")}
	if err := h.read(w, r, c); err != nil {
		h.reply(w, c, nil, err)
		return
	}
	switch c.method {
	case "SendMessage":
		task, err := h.sendMessage(r.Context(), c)
		h.reply(w, c, map[string]any{"task": task}, err)
	case "GetTask":
		task, err := h.aTask(r.Context(), c, h.look)
		h.reply(w, c, task, err)
	case "CancelTask":
		task, err := h.aTask(r.Context(), c, h.cancel)
		h.reply(w, c, task, err)
	case "SendStreamingMessage", "SubscribeToTask":
		h.stream(w, r, c)
	default:
		h.reply(w, c, nil, &rpcError{codeMethod, "there is no such method here: expected SendMessage, " +
			"SendStreamingMessage, GetTask, SubscribeToTask or CancelTask"})
	}
}

// read reads a call. For an invalid request it returns an *rpcError.
func (h *A2A) read(w http.ResponseWriter, r *http.Request, c *call) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &rpcError{codeRequest, fmt.Sprintf("the request has more than %d bytes", h.cfg.MaxBytes)}
	case err != nil:
		return err
	}

	f := jsonmsg.Read(text, value.Limits{MaxBytes: int(h.cfg.MaxBytes), MaxDepth: 128})
	version, method := f.Text("jsonrpc"), f.Text("method")
	id := f.Raw("id")
	if err := f.Err(); err != nil {
		return &rpcError{codeParse, err.Error()}
	}
	if id == nil || !isID(id) {
		return &rpcError{codeRequest, "id: expected a text or a number"}
	}
	c.id = id
	c.method = method
	c.params = f.Required("params")
	switch said := r.Header.Get("A2A-Version"); {
	case version != "2.0":
		return &rpcError{codeRequest, `jsonrpc: expected "2.0"`}
	case f.Err() != nil:
		return invalid(f.Err().Error())
	case said != a2a.Version && !strings.HasPrefix(said, a2a.Version+"."):
		return &rpcError{codeVersion, "expected the header A2A-Version: " + a2a.Version}
	}

	return nil
}

func isID(raw []byte) bool {
	kind := jsonmsg.Describe(raw)
	return kind == "a string" || kind == "a number"
}

func (h *A2A) reply(w http.ResponseWriter, c *call, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	// the client may have disconnected; there is no one to report the error to
	_, _ = w.Write(h.answer(c, result, err))
}

// answer returns the text of a response. Errors that are not meant for callers are logged, and
// the caller gets a general error.
func (h *A2A) answer(c *call, result any, err error) []byte {
	out := map[string]any{"jsonrpc": "2.0", "id": c.id}
	if err == nil {
		out["result"] = result
	} else {
		out["error"] = h.publicError(err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		h.cfg.Log.Error("write an answer", "error", err)
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the answer can't be written"}}`)
	}
	return text
}

func (h *A2A) publicError(err error) *rpcError {
	var known *rpcError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errFull):
		return &rpcError{codeInternal, errFull.Error()}
	}

	h.cfg.Log.Error("answer a caller", "error", err)
	return &rpcError{codeInternal, "the host failed"}
}

// message reads the message of a call.
func message(c *call) (*a2a.Message, error) {
	m, err := a2a.DecodeMessage(c.params.Raw("message"))
	if err != nil {
		return nil, invalid("message: " + err.Error())
	}
	return m, nil
}

// sendMessage accepts a message and waits for the end of its run, unless the caller asked to
// return immediately.
func (h *A2A) sendMessage(ctx context.Context, c *call) (*a2a.Task, error) {
	m, err := message(c)
	if err != nil {
		return nil, err
	}
	now := false
	if c.params.Has("configuration") {
		given := c.params.Object("configuration").Bool("returnImmediately")
		now = given != nil && *given
	}
	if err := c.params.Err(); err != nil {
		return nil, invalid(err.Error())
	}
	rec, t, err := h.send(ctx, c.caller, m)
	if err != nil || t == nil || now {
		return taskOf(rec, err)
	}
	if err := wait.For(ctx, t.done, h.cfg.RunFor); err != nil {
		return nil, err
	}
	_, rec, err = h.load(ctx, threadID("a2a", c.caller, rec.TaskID))
	return taskOf(rec, err)
}

func taskOf(rec *record, err error) (*a2a.Task, error) {
	if err != nil {
		return nil, err
	}
	return rec.task(), nil
}

// aTask applies a function to the task that a call names.
func (h *A2A) aTask(
	ctx context.Context, c *call, do func(ctx context.Context, caller, id string) (*record, error),
) (*a2a.Task, error) {
	id := c.params.NonEmpty("id")
	if err := c.params.Err(); err != nil {
		return nil, invalid(err.Error())
	}
	return taskOf(do(ctx, c.caller, id))
}

// lookEvery is the interval at which a stream checks a task that waits for people.
// longestStream is the maximum duration of a stream. A client whose stream has ended can
// subscribe again.
const (
	lookEvery     = time.Second
	longestStream = 10 * time.Minute
)

// stream sends a task and its changes, until it asks or has ended.
func (h *A2A) stream(w http.ResponseWriter, r *http.Request, c *call) {
	ctx, cancel := context.WithTimeout(r.Context(), longestStream)
	defer cancel()
	rec, err := h.streamed(ctx, c)
	if err != nil {
		h.reply(w, c, nil, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	send := func(name string, what any) bool {
		return event(w, h.answer(c, map[string]any{name: what}, nil)) == nil
	}
	if !send("task", rec.task()) {
		return
	}
	for rec.State == a2a.Working {
		next, err := h.next(ctx, c.caller, rec)
		if err != nil || h.ctx.Err() != nil {
			return
		}
		if next.Said == rec.Said && next.State == rec.State {
			if wait.Pause(ctx, lookEvery) != nil {
				return
			}
			continue
		}

		rec = next
		if !sendChange(rec, send) {
			return
		}
	}
}

// streamed returns the task that a stream is about.
func (h *A2A) streamed(ctx context.Context, c *call) (*record, error) {
	if c.method == "SubscribeToTask" {
		id := c.params.NonEmpty("id")
		if err := c.params.Err(); err != nil {
			return nil, invalid(err.Error())
		}
		rec, err := h.look(ctx, c.caller, id)
		if err == nil && rec.State.Ended() {
			err = unsupported("the task has ended: GetTask tells how")
		}
		return rec, err
	}

	m, err := message(c)
	if err != nil {
		return nil, err
	}
	rec, _, err := h.send(ctx, c.caller, m)
	return rec, err
}

// next waits for the current run of a task, and checks for answers given elsewhere.
func (h *A2A) next(ctx context.Context, caller string, rec *record) (*record, error) {
	if t := h.running(threadID("a2a", caller, rec.TaskID)); t != nil {
		if err := wait.For(ctx, t.done, h.cfg.RunFor); err != nil {
			return nil, err
		}
	}
	return h.look(ctx, caller, rec.TaskID)
}

// sendChange sends the changes of a task.
func sendChange(rec *record, send func(string, any) bool) bool {
	task := rec.task()
	for _, artifact := range task.Artifacts {
		if !send("artifactUpdate", map[string]any{
			"taskId":    task.ID,
			"contextId": task.ContextID,
			"artifact":  artifact,
			"lastChunk": true,
		}) {
			return false
		}
	}

	return send("statusUpdate", map[string]any{
		"taskId":    task.ID,
		"contextId": task.ContextID,
		"status":    task.Status,
	})
}

// event writes one server-sent event.
func event(w http.ResponseWriter, data []byte) error {
	if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
