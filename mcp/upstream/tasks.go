package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
)

// The intervals at which a server is asked for the status of its task.
const (
	leastPoll = 50 * time.Millisecond
	usualPoll = time.Second
	mostPoll  = 30 * time.Second
)

// taskOf returns the task that a server answered with instead of a result, in the form of either
// era. It returns nil if the answer is no task.
func taskOf(out Answer) json.RawMessage {
	if out.Error != nil {
		return nil
	}
	if wire.ResultType(out.Result) == wire.TaskCreated {
		return out.Result
	}
	task := jsonmsg.Get(out.Result, "task")
	if jsonmsg.Get(task, "taskId") != nil && jsonmsg.Get(out.Result, "content") == nil {
		return task
	}
	return nil
}

// untilDone follows a task of the server to its end, so that the caller gets one answer. A task
// that is given up is cancelled, and may have run.
func (s *Server) untilDone(ctx context.Context, c link, task json.RawMessage) (Answer, error) {
	id := jsonmsg.Get(task, "taskId")
	for {
		switch status, _ := jsonmsg.ReadString(jsonmsg.Get(task, "status")); status {
		case "completed", "failed":
			return s.taskResult(ctx, c, id, task)
		case "working":
		default:
			s.cancelTask(ctx, c, id)
			return Answer{}, fmt.Errorf("%w: the server's task is %q", ErrUnknown, status)
		}

		if wait.Pause(ctx, pollOf(task)) != nil {
			s.cancelTask(ctx, c, id)
			return Answer{}, fmt.Errorf("%w: its task was given up: %w", ErrUnknown, context.Cause(ctx))
		}
		out, err := c.do(ctx, taskRequest("tasks/get", id))
		switch {
		case errors.Is(err, ErrNotSent):
			continue // it is asked again
		case err != nil:
			return Answer{}, fmt.Errorf("%w: its task can't be followed: %w", ErrUnknown, err)
		case out.Error != nil:
			return Answer{}, fmt.Errorf("%w: its task can't be followed: %w", ErrUnknown, out.Error)
		}

		task = out.Result
	}
}

// pollOf returns the interval at which the server wants to be asked.
func pollOf(task json.RawMessage) time.Duration {
	for _, name := range []string{"pollIntervalMs", "pollInterval"} {
		var ms float64
		if json.Unmarshal(jsonmsg.Get(task, name), &ms) == nil && ms > 0 && ms < float64(mostPoll.Milliseconds()) {
			return max(leastPoll, time.Duration(ms)*time.Millisecond)
		}
	}

	return usualPoll
}

// taskResult returns the result of a task. A modern task contains it.
func (s *Server) taskResult(ctx context.Context, c link, id, task json.RawMessage) (Answer, error) {
	if result := jsonmsg.Get(task, "result"); result != nil {
		return Answer{Result: result}, nil
	}
	if raw := jsonmsg.Get(task, "error"); raw != nil {
		var bad wire.Error
		if err := json.Unmarshal(raw, &bad); err != nil {
			return Answer{}, fmt.Errorf("%w: the error of its task can't be read: %w", ErrUnknown, err)
		}
		return Answer{Error: &bad}, nil
	}

	out, err := c.do(ctx, taskRequest("tasks/result", id))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: the result of its task can't be fetched: %w", ErrUnknown, err)
	}
	return out, nil
}

// cancelTask cancels a task at the server.
func (s *Server) cancelTask(ctx context.Context, c link, id json.RawMessage) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.grace())
	defer stop()
	if _, err := c.do(ctx, taskRequest("tasks/cancel", id)); err != nil {
		s.cfg.Log.WarnContext(ctx, "a task of a server can't be cancelled", "server", s.cfg.Alias, "error", err)
	}
}

func taskRequest(method string, id json.RawMessage) Request {
	return Request{Method: method, Params: jsonmsg.Put(json.RawMessage("{}"), "taskId", id)}
}
