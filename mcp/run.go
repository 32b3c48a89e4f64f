package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// forwarder sends calls to their servers, and relays the questions that servers ask meanwhile to the
// clients.
type forwarder struct {
	*base
	lister  *lister
	parking parking
}

// pass passes on a call that the rules allow.
func (f *forwarder) pass(
	ctx context.Context, r *server.Request, q *request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	d := &delivery{call: q.call, meta: q.meta, with: with}
	switch {
	case q.round != nil && q.round.Parked != "":
		return f.goOn(ctx, r, q)
	case f.mayPark(r, f.servers[q.call.Server]):
		return f.passParked(ctx, r, q, d)
	case q.round != nil:
		d.answers = q.round.answers(q.responses)
	}

	out, err := f.send(ctx, d)
	if q.round != nil && errors.Is(err, upstream.ErrNotSent) {
		err = afterRound(err)
	}
	if err == nil && r.Modern && asksMore(out) {
		f.note(ctx, eventRan, q, map[string]any{"outcome": "asks"})
		return f.asksBack(ctx, r, q, out, with)
	}
	return f.passed(ctx, r, q, out, err)
}

// passed records the outcome of a call that was passed on, and answers the call.
func (f *forwarder) passed(
	ctx context.Context, r *server.Request, q *request, out upstream.Answer, err error,
) (json.RawMessage, *wire.Error) {
	f.noteOutcome(ctx, q, out, err)
	return f.answerOf(r, q, out, err)
}

// noteOutcome records the outcome of a call that was passed on.
func (f *forwarder) noteOutcome(ctx context.Context, q *request, out upstream.Answer, err error) {
	switch {
	case errors.Is(err, errOther), errors.Is(err, upstream.ErrNotSent):
		f.note(ctx, eventNotSent, q, nil)
	case err != nil:
		f.note(ctx, eventRan, q, unknownFacts())
	default:
		f.note(ctx, eventRan, q, outcomeFacts(out))
	}
}

// answerOf answers a call that was passed on.
func (f *forwarder) answerOf(
	r *server.Request, q *request, out upstream.Answer, err error,
) (json.RawMessage, *wire.Error) {
	switch {
	case errors.Is(err, errOther):
		return f.say(r, notRun("The tool's definition has changed. Call it again for a new decision"))
	case errors.Is(err, upstream.ErrNotSent):
		return f.say(r, notRun(unsent(f.servers[q.call.Server], err)))
	case err != nil:
		return f.say(r, &wire.Said{
			Text:    "This call may have run" + because(err.Error()) + " Check before calling again.",
			IsError: true,
		})
	}

	if out, err = whole(out); err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the answer can't be written")
	}
	if out.Error != nil {
		return nil, f.relayedError(r, q.call.Server, out.Error)
	}
	return wire.ForClient(out.Result, r.Modern), nil
}

// unsent returns the reason why a call was not run.
func unsent(s *Server, err error) string {
	if bad, is := errors.AsType[*wire.Error](err); is && bad.Code == wire.CodeHeaderMismatch {
		return "The server " + s.Alias + " refused the call's headers"
	}
	if errors.Is(err, upstream.ErrSignIn) {
		return textSignIn(s, err)
	}
	return "The server " + s.Alias + " can't be reached"
}

// delivery is a call in the form in which it is sent to a server.
type delivery struct {
	call    *resolve.Call
	meta    json.RawMessage
	with    *server.Exchange // with the client that waits; nil: no client waits
	answers []jsonmsg.Member // of a modern client, to what the server asked
	// ask asks the client in another way than the exchange does. If it is nil, the exchange asks.
	ask  func(context.Context, string, json.RawMessage) (json.RawMessage, *wire.Error)
	once bool // people approved the call, so the client can't be told to repeat it with answers
}

// send sends a call to a server. A server that refuses the headers did not run the call: its tools
// are listed again, and if the definition is still the one that was decided on, the call is sent a
// second time.
func (f *forwarder) send(ctx context.Context, d *delivery) (upstream.Answer, error) {
	out, err := f.sendOnce(ctx, d)
	bad, is := errors.AsType[*wire.Error](err)
	if !is || bad.Code != wire.CodeHeaderMismatch || !errors.Is(err, upstream.ErrNotSent) {
		return out, err
	}
	if failed := f.lister.refresh(ctx, d.call.Server); failed != nil {
		return out, fmt.Errorf("%w: the tools can't be listed again: %w", err, failed)
	}
	return f.sendOnce(ctx, d)
}

func (f *forwarder) sendOnce(ctx context.Context, d *delivery) (upstream.Answer, error) {
	c := d.call
	method, p, err := params(c.Tool, c.Args)
	if err != nil {
		return upstream.Answer{}, fmt.Errorf("%w: %w", upstream.ErrNotSent, err)
	}
	headers, err := f.headers(c)
	if err != nil {
		return upstream.Answer{}, fmt.Errorf("%w: %w", upstream.ErrNotSent, err)
	}
	if f.onlyAsTask(c) {
		p = jsonmsg.Put(p, "task", []byte("{}"))
	}
	for _, m := range d.answers {
		p = jsonmsg.Put(p, m.Name, m.Raw)
	}
	request := upstream.Request{Method: method, Params: p, Headers: headers}
	f.relayTo(&request, d)
	return f.exchange(ctx, c.Server, request, d.meta, d.with)
}

// relayTo sets who answers the server's questions during the call, and declares the matching
// capabilities to a modern server.
func (f *forwarder) relayTo(r *upstream.Request, d *delivery) {
	r.Capabilities = json.RawMessage("{}")
	if d.with == nil {
		return
	}
	s := f.servers[d.call.Server]
	if r.Ask = d.ask; r.Ask == nil {
		r.Ask = f.asker(s, d.with)
	}
	if r.Ask != nil || !d.once {
		r.Capabilities = s.Questions.declared(d.with.Capabilities().Raw)
	}
}

// onlyAsTask reports whether a tool can only be called as a task. The gateway then calls it as a
// task, whatever the client supports, and waits for its end.
func (f *forwarder) onlyAsTask(c *resolve.Call) bool {
	j, _ := f.lister.tools.of(c.Server)
	return slices.ContainsFunc(j.Tools, func(v catalog.Verdict) bool {
		return v.Tool.Name == c.Tool && v.Tool.TaskSupport == catalog.TaskRequired
	})
}

// errOther means that a tool's definition has changed since its call was decided on.
var errOther = errors.New("the tool's definition has changed")

// headers returns the headers that repeat arguments. They are computed from the arguments that are
// sent, so that they include an approver's edit. A definition that was not decided on is not used.
func (f *forwarder) headers(c *resolve.Call) (map[string]string, error) {
	if isPseudo(c.Tool) {
		return nil, nil
	}
	out, known := map[string]string{}, false
	j, _ := f.lister.tools.of(c.Server)
	for _, v := range j.Tools {
		if v.Tool.Name != c.Tool || v.Digest != c.ToolDefinition {
			continue
		}
		known = true
		params, err := v.Tool.Params(c.Args)
		if err != nil {
			return nil, err
		}
		for _, p := range params {
			out[p.Name] = p.Value
		}
	}

	if !known {
		return nil, errOther
	}
	return out, nil
}

// exchange makes a request to a server.
func (f *forwarder) exchange(
	ctx context.Context, alias string, r upstream.Request, meta json.RawMessage, with *server.Exchange,
) (upstream.Answer, error) {
	if meta != nil {
		r.Meta = relayedMeta(meta)
	}
	if with != nil && with.WantsProgress() {
		r.Progress = func(p wire.Progress) {
			p.Message, _ = catalog.Instructions(p.Message)
			_ = with.Progress(p) // it may be gone
		}
	}

	if with != nil {
		r.Meta.LogLevel = with.LogLevel()
		r.Logged = func(params json.RawMessage) { f.logged(alias, params, with) }
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RunWithin)
	defer cancel()
	return f.servers[alias].Upstream.Do(ctx, r)
}

// textAsks is the answer to a call whose server asks something that can't be passed to the client.
const textAsks = "This call may have run in part. Its server asks something in the middle of it that this client can't " +
	"be asked here."

// whole replaces an answer that asks the client for more input, because this client can't be asked.
func whole(out upstream.Answer) (upstream.Answer, error) {
	if out.Error != nil || wire.ResultType(out.Result) != wire.InputRequired {
		return out, nil
	}
	said := wire.Said{Text: textAsks, IsError: true}
	text, err := said.Append(nil, false)
	return upstream.Answer{Result: text}, err
}

// relayedMeta reads the text that relayed returned.
func relayedMeta(text json.RawMessage) wire.Meta {
	params, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Name("_meta").Verbatim(text) })
	if err != nil {
		return wire.Meta{}
	}
	meta, bad := wire.ReadMeta(params)
	if bad != nil {
		return wire.Meta{}
	}
	return meta
}

// run runs a call that people approved, once.
func (k *keeper) run(ctx context.Context, c *record) durable.Result[part] {
	p := &c.Part
	if err := k.noteRecord(ctx, eventRuns, c, nil); err != nil {
		return again("the run could not be recorded")
	}
	out, err := k.forwarder.send(ctx, &delivery{
		call: &resolve.Call{
			Server:         p.Server,
			Tool:           p.Tool,
			Args:           c.Args(),
			ToolDefinition: p.Definition,
		},
		meta: p.Meta,
		with: k.waiters.one(c.Key),
		once: true,
	})
	if err == nil {
		out, err = whole(out)
	}
	switch {
	case errors.Is(err, errOther):
		_ = k.noteRecord(ctx, eventNotSent, c, nil)
		return durable.Result[part]{Ending: durable.Ending{Why: durable.Refused, Reason: textChanged}}
	case errors.Is(err, upstream.ErrNotSent):
		_ = k.noteRecord(ctx, eventNotSent, c, nil)
		return again(unsent(k.servers[p.Server], err))
	case err != nil: // moved records it
		return durable.Result[part]{Ending: durable.Ending{Why: durable.Unknown, Reason: err.Error()}}
	}

	_ = k.noteRecord(ctx, eventRan, c, outcomeFacts(out))
	return durable.Result[part]{Keep: func(c *record) { c.Part.keep(out) }}
}

// keep stores a server's answer unchanged.
func (p *part) keep(out upstream.Answer) {
	p.Trouble = ""
	p.Result = out.Result
	if out.Error != nil {
		p.Failed = &fault{
			Code:    out.Error.Code,
			Message: out.Error.Message,
			Data:    out.Error.Data,
		}
	}
}

// pauseAfterTrouble is the pause before a call that could not be sent is tried again.
const pauseAfterTrouble = 2 * time.Second

// again schedules another attempt of a call that certainly was not sent.
func again(why string) durable.Result[part] {
	return durable.Result[part]{
		After: durable.NotBegun,
		Pause: pauseAfterTrouble,
		Keep:  func(c *record) { c.Part.Trouble = why },
	}
}

// logged passes a log message of a server to the client for which the server works.
func (f *forwarder) logged(alias string, params json.RawMessage, with *server.Exchange) {
	l, bad := wire.ReadLog(params)
	if bad != nil {
		return
	}
	logger, _ := catalog.Instructions(l.Logger)
	l.Logger = alias
	if logger != "" {
		l.Logger += "/" + logger
	}
	safe := catalog.Message(l.Data)
	if safe.Problem != "" {
		return // a name of a member holds what isn't shown
	}
	l.Data = safe.Text
	_ = with.Log(l) // it may be gone
}
