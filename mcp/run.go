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

// pass passes on a call that the rules allow.
func (g *Gateway) pass(
	ctx context.Context, r *server.Request, q *request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	d := &delivery{call: q.call, meta: q.meta, with: with}
	switch {
	case q.round != nil && q.round.Parked != "":
		return g.goOn(ctx, r, q)
	case g.mayPark(r, g.servers[q.call.Server]):
		return g.passParked(ctx, r, q, d)
	case q.round != nil:
		d.answers = q.round.answers(q.responses)
	}

	out, err := g.send(ctx, d)
	if q.round != nil && errors.Is(err, upstream.ErrNotSent) {
		err = afterRound(err)
	}
	if err == nil && r.Modern && asksMore(out) {
		g.note(ctx, eventRan, q, map[string]any{"outcome": "asks"})
		return g.asksBack(ctx, r, q, out, with)
	}
	return g.passed(ctx, r, q, out, err)
}

// passed records the outcome of a call that was passed on, and answers the call.
func (g *Gateway) passed(
	ctx context.Context, r *server.Request, q *request, out upstream.Answer, err error,
) (json.RawMessage, *wire.Error) {
	g.noteOutcome(ctx, q, out, err)
	return g.answerOf(r, q, out, err)
}

// noteOutcome records the outcome of a call that was passed on.
func (g *Gateway) noteOutcome(ctx context.Context, q *request, out upstream.Answer, err error) {
	switch {
	case errors.Is(err, errOther), errors.Is(err, upstream.ErrNotSent):
		g.note(ctx, eventNotSent, q, nil)
	case err != nil:
		g.note(ctx, eventRan, q, unknownFacts())
	default:
		g.note(ctx, eventRan, q, outcomeFacts(out))
	}
}

// answerOf answers a call that was passed on.
func (g *Gateway) answerOf(
	r *server.Request, q *request, out upstream.Answer, err error,
) (json.RawMessage, *wire.Error) {
	switch {
	case errors.Is(err, errOther):
		return g.say(r, notRun("The tool's definition has changed. Call it again for a new decision"))
	case errors.Is(err, upstream.ErrNotSent):
		return g.say(r, notRun(unsent(g.servers[q.call.Server], err)))
	case err != nil:
		return g.say(r, &wire.Said{
			Text:    "This call may have run" + because(err.Error()) + " Check before calling again.",
			IsError: true,
		})
	}

	if out, err = whole(out); err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the answer can't be written")
	}
	if out.Error != nil {
		return nil, g.relayedError(r, q.call.Server, out.Error)
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
func (g *Gateway) send(ctx context.Context, d *delivery) (upstream.Answer, error) {
	out, err := g.sendOnce(ctx, d)
	bad, is := errors.AsType[*wire.Error](err)
	if !is || bad.Code != wire.CodeHeaderMismatch || !errors.Is(err, upstream.ErrNotSent) {
		return out, err
	}
	if failed := g.Refresh(ctx, d.call.Server); failed != nil {
		return out, fmt.Errorf("%w: the tools can't be listed again: %w", err, failed)
	}
	return g.sendOnce(ctx, d)
}

func (g *Gateway) sendOnce(ctx context.Context, d *delivery) (upstream.Answer, error) {
	c := d.call
	method, p, err := params(c.Tool, c.Args)
	if err != nil {
		return upstream.Answer{}, fmt.Errorf("%w: %w", upstream.ErrNotSent, err)
	}
	headers, err := g.headers(c)
	if err != nil {
		return upstream.Answer{}, fmt.Errorf("%w: %w", upstream.ErrNotSent, err)
	}
	if g.onlyAsTask(c) {
		p = jsonmsg.Put(p, "task", []byte("{}"))
	}
	for _, m := range d.answers {
		p = jsonmsg.Put(p, m.Name, m.Raw)
	}
	request := upstream.Request{Method: method, Params: p, Headers: headers}
	g.relayTo(&request, d)
	return g.exchange(ctx, c.Server, request, d.meta, d.with)
}

// relayTo sets who answers the server's questions during the call, and declares the matching
// capabilities to a modern server.
func (g *Gateway) relayTo(r *upstream.Request, d *delivery) {
	r.Capabilities = json.RawMessage("{}")
	if d.with == nil {
		return
	}
	s := g.servers[d.call.Server]
	if r.Ask = d.ask; r.Ask == nil {
		r.Ask = g.asker(s, d.with)
	}
	if r.Ask != nil || !d.once {
		r.Capabilities = s.Questions.declared(d.with.Capabilities().Raw)
	}
}

// onlyAsTask reports whether a tool can only be called as a task. The gateway then calls it as a
// task, whatever the client supports, and waits for its end.
func (g *Gateway) onlyAsTask(c *resolve.Call) bool {
	j, _ := g.tools.of(c.Server)
	return slices.ContainsFunc(j.Tools, func(v catalog.Verdict) bool {
		return v.Tool.Name == c.Tool && v.Tool.TaskSupport == catalog.TaskRequired
	})
}

// errOther means that a tool's definition has changed since its call was decided on.
var errOther = errors.New("the tool's definition has changed")

// headers returns the headers that repeat arguments. They are computed from the arguments that are
// sent, so that they include an approver's edit. A definition that was not decided on is not used.
func (g *Gateway) headers(c *resolve.Call) (map[string]string, error) {
	if isPseudo(c.Tool) {
		return nil, nil
	}
	out, known := map[string]string{}, false
	j, _ := g.tools.of(c.Server)
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
func (g *Gateway) exchange(
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
		r.Logged = func(params json.RawMessage) { g.logged(alias, params, with) }
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.RunWithin)
	defer cancel()
	return g.servers[alias].Upstream.Do(ctx, r)
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
func (g *Gateway) run(ctx context.Context, c *record) durable.Result[part] {
	p := &c.Part
	if err := g.noteRecord(ctx, eventRuns, c, nil); err != nil {
		return again("the run could not be recorded")
	}
	out, err := g.send(ctx, &delivery{
		call: &resolve.Call{
			Server:         p.Server,
			Tool:           p.Tool,
			Args:           c.Args(),
			ToolDefinition: p.Definition,
		},
		meta: p.Meta,
		with: g.waiters.one(c.Key),
		once: true,
	})
	if err == nil {
		out, err = whole(out)
	}
	switch {
	case errors.Is(err, errOther):
		_ = g.noteRecord(ctx, eventNotSent, c, nil)
		return durable.Result[part]{Ending: durable.Ending{Why: durable.Refused, Reason: textChanged}}
	case errors.Is(err, upstream.ErrNotSent):
		_ = g.noteRecord(ctx, eventNotSent, c, nil)
		return again(unsent(g.servers[p.Server], err))
	case err != nil: // moved records it
		return durable.Result[part]{Ending: durable.Ending{Why: durable.Unknown, Reason: err.Error()}}
	}

	_ = g.noteRecord(ctx, eventRan, c, outcomeFacts(out))
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
