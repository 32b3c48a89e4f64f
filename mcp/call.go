package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// toolsCall answers tools/call: the rules decide, people are asked, and
// what may run is passed on.
func (g *Gateway) toolsCall(
	ctx context.Context, r *server.Request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	c, bad := wire.ReadCall(r.Params)
	if bad != nil {
		return nil, bad
	}
	if g.cfg.WaitTool && c.Name == waitTool {
		return g.waiting.waitFor(ctx, r, c, with)
	}
	if s := g.lister.signInTool(c.Name); s != nil {
		return g.lister.callSignInTool(ctx, r, c, s)
	}
	q, bad := g.read(ctx, r, c)
	if bad != nil {
		return nil, bad
	}
	if bad := q.tool.repeated(r, c); bad != nil {
		return nil, bad
	}
	return g.decideOn(ctx, r, c, q, with)
}

// repeated checks the HTTP headers of a modern request that repeat arguments. The headers are not
// used for decisions and are not forwarded: the headers that the server gets are computed from the
// arguments that are sent.
func (t *tool) repeated(r *server.Request, c *wire.Call) *wire.Error {
	if r.Header == nil || t.verdict == nil {
		return nil
	}
	if _, err := t.verdict.Tool.Params(c.Arguments); err != nil {
		return nil // no header can repeat them: no server gets them either
	}
	if err := t.verdict.Tool.CheckParams(c.Arguments, r.Header.Values); err != nil {
		return wire.Fail(wire.CodeHeaderMismatch, "%v", err)
	}
	return nil
}

// decideOn decides on a call by the rules, and runs it, asks people or denies it accordingly.
func (g *Gateway) decideOn(
	ctx context.Context, r *server.Request, c *wire.Call, q *request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	if q.tool.withheld != "" {
		return g.say(r, notRun(q.tool.withheld))
	}
	plan, err := g.rules(ctx)
	if err != nil {
		return g.say(r, notRun(g.noRules(ctx, err)))
	}

	q.plan, q.decision = plan, g.decisionOn(q.tool, plan, q.call)
	if c.State != "" {
		q.responses = c.Responses
		if isRound(c.State) {
			q.round, err = g.forwarder.openRound(q, c.State)
		} else {
			q.back, err = g.waiting.comeBack(ctx, q, c.State)
		}
		if err != nil {
			return nil, wire.Fail(wire.CodeInvalidParams, "params.%v", errState)
		}
	}

	if g.tasks.wantsTask(r, c, q) {
		return g.tasks.begin(ctx, r, q)
	}
	switch q.decision.Outcome {
	case resolve.Allow:
		return g.forwarder.pass(ctx, r, q, with)
	case resolve.Ask:
		return g.waiting.ask(ctx, r, q, with)
	}

	g.note(ctx, eventDenied, q, nil)
	return g.say(r, denied(q.decision.Message))
}

// read finds the tool of a call and builds the call that the rules decide on.
func (g *Gateway) read(ctx context.Context, r *server.Request, c *wire.Call) (*request, *wire.Error) {
	by, bad := g.askedBy(ctx, r)
	if bad != nil {
		return nil, bad
	}
	t, err := g.lister.advertised(ctx, c.Name)
	if errors.Is(err, errRules) {
		return &request{caller: by, tool: &tool{withheld: g.noRules(ctx, err)}}, nil
	}
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the tools can't be listed now")
	}
	if t == nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "unknown tool: %s", c.Name)
	}
	meta, err := g.relayed(t.server, &c.Meta)
	if err != nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "params._meta: %v", err)
	}
	return &request{caller: by, tool: t, call: t.call(by, c.Arguments), meta: meta}, nil
}

// params returns the method and the params of the request to the server. The params of a
// pseudo-tool are its arguments.
func params(name string, args []byte) (method string, text json.RawMessage, err error) {
	if isPseudo(name) {
		return name, args, nil
	}
	text, err = jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("name", name)
		w.Name("arguments").Verbatim(args)
	})
	return wire.MethodCall, text, err
}
