package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/server/openapi"
)

// rapOps are the operations on calls of RAP tools.
type rapOps struct{ *exchange }

// ofRuntime passes the token's threads at the RAP runtime of the path's agent to a handler,
// if the token may act for the agent. It converts the runtime's errors to problems.
func ofRuntime(handle func(rapOps, *runtime.Threads) error) func(*exchange) error {
	return func(x *exchange) error {
		ops := rapOps{x}
		threads, err := ops.threads()
		if err != nil {
			return err
		}

		return rapProblem(handle(ops, threads))
	}
}

func (x rapOps) threads() (*runtime.Threads, error) {
	agent, err := x.agent()
	if err != nil {
		return nil, err
	}
	if _, err := x.namesPerson(); err != nil { // the person is barred from answering, so the name must be theirs
		return nil, err
	}
	var runtime *runtime.Runtime
	if x.cfg.Tools != nil {
		runtime = x.cfg.Tools(x.tenant(), agent)
	}
	if runtime == nil {
		return nil, fail(openapi.CodeNotFound, "this agent has no RAP runtime here")
	}

	return runtime.As(asker(x.token))
}

func (x rapOps) rapTools(threads *runtime.Threads) error {
	session, err := x.needed("session")
	if err != nil {
		return err
	}
	tools, err := threads.Tools(x.r.Context(), session)
	if err != nil {
		return err
	}
	out := openapi.RAPTools{Offers: []openapi.RAPOffer{}, Problems: []openapi.RAPProblem{}}
	for _, o := range tools.Offers {
		offer := openapi.RAPOffer{
			Server:      o.Server,
			Operation:   o.Name,
			Description: o.Description,
		}
		if err := json.Unmarshal(o.InputSchema, &offer.InputSchema); err != nil {
			return err
		}
		out.Offers = append(out.Offers, offer)
	}

	for _, p := range tools.Problems {
		out.Problems = append(out.Problems, openapi.RAPProblem{
			Server: p.Server,
			Tool:   p.Tool,
			Detail: p.Err.Error(),
		})
	}

	return x.answer(http.StatusOK, out)
}

// needed reads a required query parameter.
func (x rapOps) needed(name string) (string, error) {
	if text := x.query[name]; text != "" {
		return text, nil
	}
	return "", bad(name, "expected one")
}

func (x rapOps) rapInvoke(threads *runtime.Threads) error {
	f := object(
		x.body,
		"",
		"thread",
		"id",
		"call_id",
		"ancestors",
		"user",
		"operation",
		"arguments",
		"context",
	).must("thread", "id", "operation")
	in := runtime.Invocation{
		Thread:    f.text("thread"),
		ID:        f.text("id"),
		User:      f.text("user"),
		Operation: f.text("operation"),
		Ancestors: f.texts("ancestors"),
		Arguments: f.raw["arguments"],
		Context:   f.context("context"),
	}
	if f.has("call_id") {
		id := f.text("call_id")
		in.CallID = &id
	}
	if f.err != nil {
		return f.err
	}
	call, err := threads.Invoke(x.r.Context(), in)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, call)
}

// rapCall reads a call, or waits until it ends or the server drains.
func (x rapOps) rapCall(threads *runtime.Threads) error {
	thread, err := x.needed("thread")
	if err != nil {
		return err
	}
	id, err := x.needed("id")
	if err != nil {
		return err
	}
	wait, err := x.duration("wait")
	if err != nil {
		return err
	}
	call, err := threads.Call(x.r.Context(), thread, id)
	if err == nil && wait > 0 && call.State != runtime.CallDone {
		if call, err = x.awaitCall(threads, thread, id, min(wait, maxWait)); err == nil {
			err = x.stillMay(openapi.ScopeRequest)
		}
	}
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, call)
}

func (x rapOps) awaitCall(
	threads *runtime.Threads,
	thread, id string,
	wait time.Duration,
) (runtime.Call, error) {
	place, err := x.place(x.cfg.Shares.Polls, "polls")
	if err != nil {
		return runtime.Call{}, err
	}
	defer place.Return()
	ctx, done := x.waiting(wait)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	call, err := threads.Wait(ctx, thread, id)
	if err != nil && ctx.Err() != nil && x.r.Context().Err() == nil {
		return threads.Call(x.r.Context(), thread, id)
	}
	return call, err
}

// rapProblem converts an error of a runtime to a problem.
func rapProblem(err error) error {
	switch {
	case errors.Is(err, runtime.ErrNoCall):
		return fail(openapi.CodeNotFound, err.Error())
	case errors.Is(err, runtime.ErrOtherCall):
		return fail(openapi.CodeKeyReuse, err.Error())
	case errors.Is(err, runtime.ErrDone):
		return fail(openapi.CodeClosed, err.Error())
	}

	return err
}

func (x rapOps) rapCancel(threads *runtime.Threads) error {
	f := object(x.body, "", "thread", "id", "reason").must("thread", "id")
	thread := f.text("thread")
	id := f.text("id")
	reason := f.text("reason")
	if f.err != nil {
		return f.err
	}
	if err := threads.Cancel(x.r.Context(), thread, id, reason); err != nil && !errors.Is(err, runtime.ErrDone) {
		return err
	}
	call, err := threads.Call(x.r.Context(), thread, id)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, call)
}

func (x rapOps) rapClose(threads *runtime.Threads) error {
	f := object(x.body, "", "thread").must("thread")
	thread := f.text("thread")
	if f.err != nil {
		return f.err
	}
	if err := threads.CloseThread(x.r.Context(), thread); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (x rapOps) rapEvents(threads *runtime.Threads) error {
	thread, err := x.needed("thread")
	if err != nil {
		return err
	}
	from, err := x.integer("from", 0, 1<<31, 0)
	if err != nil {
		return err
	}
	events, err := threads.Events(x.r.Context(), thread, int(from))
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, map[string]any{"events": append([]rap.Event{}, events...)})
}

func (x rapOps) rapViews(threads *runtime.Threads) error {
	thread, err := x.needed("thread")
	if err != nil {
		return err
	}
	views, err := threads.Views(x.r.Context(), thread)
	if err != nil {
		return err
	}
	if views == nil {
		views = map[string]json.RawMessage{}
	}
	return x.answer(http.StatusOK, map[string]any{"views": views})
}

func (x rapOps) sessionGrants() ([]rap.SessionGrant, error) {
	if x.cfg.Sessions == nil {
		return nil, nil
	}

	by, err := x.reader()
	if err != nil {
		return nil, err
	}
	all, err := x.cfg.Sessions.Grants(x.r.Context(), x.tenant())

	return slices.DeleteFunc(all, func(g rap.SessionGrant) bool { return !by.Concerns(g.User, g.Agent) }), err
}

func (x rapOps) listSessionGrants() error {
	list, err := x.sessionGrants()
	if err != nil {
		return err
	}

	return x.answer(http.StatusOK, map[string]any{"grants": some(list)})
}

// revokeSessionGrant ends a session grant. The token needs the same rights as for a
// standing approval.
func (x rapOps) revokeSessionGrant() error {
	if err := x.personOrAdmin(); err != nil {
		return err
	}
	reason, err := x.reason()
	if err != nil {
		return err
	}
	list, err := x.sessionGrants()
	if err != nil {
		return err
	}
	is := func(g rap.SessionGrant) bool { return g.ID == x.r.PathValue("id") && actsFor(x.token, g.Agent) }
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return approval.ErrNotFound
	}
	if err := x.cfg.Sessions.Revoke(x.r.Context(), x.tenant(), list[i].ID, actor(x.token), reason); err != nil {
		return err
	}

	return x.answer(http.StatusOK, list[i])
}

// listSignIns lists the sign-ins that the token's person is asked for.
func (x rapOps) listSignIns() error {
	person, err := x.person()
	if err != nil {
		return err
	}
	if known, err := x.namesPerson(); err != nil || !known {
		return cmp.Or(err, approval.ErrUnknownName)
	}
	page := signin.Join(0)
	if x.cfg.SignIns != nil {
		page, err = x.cfg.SignIns.SignIns(x.r.Context(), x.tenant(), person)
	}
	if err != nil {
		return err
	}

	return x.answer(http.StatusOK, page)
}
