package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// tasks answers the requests of clients about their tasks.
type tasks struct {
	*base
	keeper  *keeper
	waiting *waiting
}

// task describes a call that the caller follows instead of waiting for it: the extension of modern
// clients, or the tasks of 2025-11-25. The call runs when it is approved, even if no client polls,
// and its result is kept.
type task struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
}

const (
	// taskLives is the minimum time for which a task is kept. Clients can't shorten it, because
	// that would end an approval early.
	taskLives = 25 * time.Hour
	taskPoll  = 5 * time.Second // how often a client should look
	// keyTask is the key of _meta with the task's id in the result of tasks/result.
	keyTask = "io.modelcontextprotocol/related-task"
	// keyMeanwhile is the key of _meta with the text that a model may read before the task has
	// ended.
	keyMeanwhile = "io.modelcontextprotocol/model-immediate-response"
)

// The statuses of tasks.
const (
	working   = "working"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)

// taskLife returns how long a client may follow a task. It includes the time for people to answer
// and the time that an approved call waits for its run.
func (t *tasks) taskLife() time.Duration { return max(taskLives, t.cfg.Within+t.cfg.Approved) }

// wantsTask reports whether a call becomes a task: a call that asks, if a modern client supports
// tasks, or any call for which a client of 2025-11-25 requests a task. Only calls of tools become
// tasks.
func (t *tasks) wantsTask(r *server.Request, c *wire.Call, q *request) bool {
	if q.decision.Outcome == resolve.Deny || isPseudo(q.call.Tool) {
		return false
	}
	if r.Modern {
		return r.Capabilities.Tasks && q.decision.Outcome == resolve.Ask
	}
	return c.Task != nil && r.Version == wire.V20251125
}

// begin stores a call as a task and answers with the task. It is stored before the client gets the
// answer.
func (t *tasks) begin(ctx context.Context, r *server.Request, q *request) (json.RawMessage, *wire.Error) {
	if q.said() == "" {
		return t.say(r, notRun("The arguments can't be read"))
	}
	if q.decision.Binding == "" {
		plan, err := t.cfg.Plan(ctx)
		if err == nil {
			q.decision.Binding, err = plan.Bind(q.call)
		}
		if err != nil {
			return t.say(r, notRun("The call can't be bound to a decision"))
		}
	}

	if err := t.keeper.pending.enter(ctx, q.caller.Name, t.keeper.count); err != nil {
		return t.say(r, notRun("Too many requests wait. Call again when people have decided about some"))
	}

	id := "tsk_" + rand.Text()
	c := q.record(url.PathEscape(q.caller.Name) + "/task/" + durable.Hash(id))
	c.Alias = durable.Hash(id)
	c.Part.Task = &task{ID: id, Created: t.now()}
	if err := t.keeper.engine.Add(ctx, c); err != nil {
		t.keeper.pending.leave(q.caller.Name)
		t.cfg.Log.ErrorContext(ctx, "a task can't be kept", "error", err)
		return t.say(r, notRun("The call could not be kept"))
	}
	return written(func(w *jsonmsg.Writer) { t.writeBegun(w, c, r.Modern) }), nil
}

// writeBegun writes the answer to a call that has become a task.
func (t *tasks) writeBegun(w *jsonmsg.Writer, c *record, modern bool) {
	if modern {
		w.Member("resultType", wire.TaskCreated)
		t.writeTask(w, c, true)
		return
	}
	w.Name("task").Object(func(w *jsonmsg.Writer) { t.writeTask(w, c, false) })
	w.Name("_meta").Object(func(w *jsonmsg.Writer) {
		w.Member(keyMeanwhile, "Not run yet: it waits for people, and may be denied. You can go on with other work.")
	})
}

// writeTask writes the members of a task.
func (t *tasks) writeTask(w *jsonmsg.Writer, c *record, modern bool) {
	created := c.Part.Task.Created.UTC().Format(time.RFC3339)
	changed := created
	if c.Over() {
		changed = c.EndedAt.UTC().Format(time.RFC3339)
	}
	w.Member("taskId", c.Part.Task.ID)
	w.Member("status", status(c, modern))
	w.Optional("statusMessage", t.statusMessage(c))
	w.Member("createdAt", created)
	w.Member("lastUpdatedAt", changed)

	ttl, poll := "ttl", "pollInterval"
	if modern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	w.Name(ttl).Int(t.taskLife().Milliseconds())
	if !c.Over() {
		w.Name(poll).Int(taskPoll.Milliseconds())
	}
}

// status returns the status of a task. A modern task has failed only if the server answered with a
// protocol error; in 2025-11-25 a result with isError is a failure too.
func status(c *record, modern bool) string {
	switch {
	case !c.Over():
		return working
	case c.Ending.Why == durable.Interrupted:
		return cancelled
	case c.Part.Failed != nil:
		return failed
	case !modern && (c.Ending.Why != durable.Returned || isError(c.Part.Result)):
		return failed
	}

	return completed
}

// isError reports whether a result says that its call failed.
func isError(result []byte) bool { return string(jsonmsg.Get(result, "isError")) == "true" }

// statusMessage describes the status of a task in words. It must never suggest that a waiting call
// has run.
func (t *tasks) statusMessage(c *record) string {
	switch {
	case c.Over() && c.Ending.Why != durable.Returned:
		return t.waiting.endText(c).Text
	case c.Over():
		return ""
	case c.State == durable.Running:
		return "It runs."
	case c.Part.Until.IsZero():
		return "Not run yet. Waits for people to decide."
	}

	return "Not run yet. Waits for people to decide until " + c.Part.Until.UTC().Format("2006-01-02 15:04 MST") + "."
}

// errNoTask returns the same error for an unknown task and for a task of another caller.
func errNoTask() *wire.Error { return wire.Fail(wire.CodeInvalidParams, "unknown task") }

// taskOf finds the task that a request names. Knowing the id is not enough: the caller has to be
// the one that made the task.
func (t *tasks) taskOf(ctx context.Context, r *server.Request) (*record, *wire.Error) {
	id, _ := jsonmsg.ReadString(jsonmsg.Get(r.Params, "taskId"))
	if id == "" {
		return nil, wire.Fail(wire.CodeInvalidParams, "params.taskId: expected a task's id")
	}
	return t.taskByID(ctx, r, id)
}

func (t *tasks) taskByID(ctx context.Context, r *server.Request, id string) (*record, *wire.Error) {
	by, bad := t.askedBy(ctx, r)
	if bad != nil {
		return nil, bad
	}
	c, err := t.keeper.engine.ByAlias(ctx, durable.Hash(id))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, errNoTask()
	case err != nil:
		t.cfg.Log.ErrorContext(ctx, "a task can't be read", "error", err)
		return nil, wire.Fail(wire.CodeInternal, "the task can't be read now")
	case c.Part.Task == nil || c.Part.Caller != r.Caller || c.Asker.Principal != by.Principal:
		return nil, errNoTask()
	}

	return c, nil
}

// tasksGet answers tasks/get. For a modern client the answer includes the result.
func (t *tasks) tasksGet(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	c, bad := t.taskOf(ctx, r)
	if bad != nil {
		return nil, bad
	}
	return written(func(w *jsonmsg.Writer) {
		if r.Modern {
			w.Member("resultType", wire.Complete)
		}
		t.writeDetailed(w, c, r)
	}), nil
}

// writeDetailed writes a task, including the result for a modern client.
func (t *tasks) writeDetailed(w *jsonmsg.Writer, c *record, r *server.Request) {
	result, failed := t.taskResult(c, r)
	t.writeTask(w, c, r.Modern)
	switch {
	case !r.Modern || !c.Over() || status(c, true) == cancelled:
	case failed != nil:
		w.Name("error").Object(failed.WriteMembers)
	default:
		w.Name("result").Verbatim(result)
	}
}

// tasksUpdate refuses tasks/update, because tasks here ask their clients for nothing.
func (t *tasks) tasksUpdate(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	if _, bad := t.taskOf(ctx, r); bad != nil {
		return nil, bad
	}
	return nil, wire.Fail(wire.CodeInvalidParams, "params.inputResponses: the task asks for nothing")
}

// taskResult returns the result of an ended task, as tools/call would have answered.
func (t *tasks) taskResult(c *record, r *server.Request) (json.RawMessage, *wire.Error) {
	switch {
	case !c.Over():
		return nil, nil
	case c.Ending.Why != durable.Returned:
		return t.said(t.waiting.endText(c)), nil
	case c.Part.Failed != nil:
		return nil, c.Part.Failed.error()
	}

	return resultOf(c, false), nil
}

// said returns a result that is nested in another one, without a resultType.
func (t *tasks) said(s *wire.Said) json.RawMessage {
	text, err := s.Append(nil, false)
	if err != nil {
		return json.RawMessage(`{"content":[],"isError":true}`)
	}
	return text
}

// tasksResult answers tasks/result of 2025-11-25: it waits for the end.
func (t *tasks) tasksResult(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	c, bad := t.taskOf(ctx, r)
	if bad != nil {
		return nil, bad
	}
	c, err := t.keeper.engine.Watch(ctx, c.Key, (*record).Over)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the task can't be read now")
	}
	result, failed := t.taskResult(c, r)
	if failed != nil {
		return nil, failed
	}
	related := written(func(w *jsonmsg.Writer) {
		w.Name(keyTask).Object(func(w *jsonmsg.Writer) { w.Member("taskId", c.Part.Task.ID) })
	})
	return wire.WithMeta(result, related), nil
}

// tasksCancel answers tasks/cancel. A call that has not begun will never run. A run that has begun
// goes on, and its task ends with it.
func (t *tasks) tasksCancel(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	c, bad := t.taskOf(ctx, r)
	if bad != nil {
		return nil, bad
	}
	if !r.Modern && c.Over() {
		return nil, wire.Fail(wire.CodeInvalidParams, "the task has ended")
	}
	changed, err := t.keeper.engine.Change(ctx, c.Key, func(c *record) error {
		if c.Over() || c.State == durable.Running {
			return durable.ErrUnchanged
		}
		t.keeper.engine.Finish(c, durable.Ending{Why: durable.Interrupted, Reason: "The client cancelled the task"})
		return nil
	})
	if err != nil && !errors.Is(err, durable.ErrUnchanged) {
		return nil, wire.Fail(wire.CodeInternal, "the task can't be cancelled now")
	}
	return written(func(w *jsonmsg.Writer) {
		if r.Modern {
			w.Member("resultType", wire.Complete)
			return
		}
		t.writeTask(w, changed, false)
	}), nil
}
