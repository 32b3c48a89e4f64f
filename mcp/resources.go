package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// pseudo returns the pseudo-tool for a method of resources or prompts. Agent files and policies
// refer to it by the method's name, which no tool of a server may have.
func pseudo(alias, method string) *tool {
	return &tool{
		server:      alias,
		name:        method,
		annotations: map[string]bool{"readOnlyHint": true, "openWorldHint": true},
	}
}

func isPseudo(name string) bool { return name == catalog.ToolRead || name == catalog.ToolPrompt }

// readParams reads the params of resources/read and prompts/get. They are the arguments that the
// rules decide on and that the server gets.
func readParams(r *server.Request, params []byte) (args json.RawMessage, bad *wire.Error) {
	known := map[string][]string{
		wire.MethodRead:   {"uri"},
		wire.MethodPrompt: {"name", "arguments"},
	}[r.Method]
	f := jsonmsg.Read(orObject(params), wire.Limits())
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		for _, m := range f.Members() {
			switch {
			case m.Name == "_meta":
			case !slices.Contains(known, m.Name):
				w.Fail(wire.Fail(wire.CodeInvalidParams, "params: unknown member %q", m.Name))
			default:
				w.Name(m.Name).Verbatim(m.Raw)
			}
		}
	})
	if f.NonEmpty(known[0]); f.Err() != nil {
		err = f.Err()
	}
	if err != nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "params: %v", err)
	}
	return text, nil
}

// brought separates what a modern client brings back, as it does with a call, from the other
// params.
func brought(r *server.Request) (back *wire.Call, rest []byte, bad *wire.Error) {
	back, rest = &wire.Call{}, orObject(r.Params)
	if !r.Modern {
		return back, rest, nil
	}
	back.Responses, rest = jsonmsg.Take(rest, "inputResponses")
	raw, rest := jsonmsg.Take(rest, "requestState")
	if raw == nil {
		return back, rest, nil
	}
	var sound bool
	if back.State, sound = jsonmsg.ReadString(raw); !sound {
		return nil, nil, wire.Fail(wire.CodeInvalidParams, "params.requestState: expected a string")
	}

	return back, rest, nil
}

// decided handles a method on which the rules decide as a pseudo-tool.
func (g *Gateway) decided(
	ctx context.Context, r *server.Request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	by, bad := g.askedBy(ctx, r)
	if bad != nil {
		return nil, bad
	}
	back, params, bad := brought(r)
	if bad != nil {
		return nil, bad
	}
	args, bad := readParams(r, params)
	if bad != nil {
		return nil, bad
	}
	s, args, named, bad := g.offers.find(ctx, r.Method, args)
	if bad != nil {
		return nil, bad
	}
	meta, err := g.relayed(s.Alias, &r.Meta)
	if err != nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "params._meta: %v", err)
	}
	t := pseudo(s.Alias, r.Method)
	result, bad := g.decideOn(ctx, r, back, &request{
		caller: by,
		tool:   t,
		call:   t.call(by, args),
		meta:   meta,
	}, with)
	result, bad = notAResult(result, bad)
	return named.inResult(result), bad
}

// naming holds the client's and the server's name of a resource.
type naming struct{ client, own string }

// find finds the server that has a resource or a prompt, and returns the params for that server.
func (o *offers) find(ctx context.Context, method string, args json.RawMessage) (
	s *Server, own json.RawMessage, named naming, bad *wire.Error,
) {
	member, finds := "uri", o.findResource
	if method == wire.MethodPrompt {
		member, finds = "name", o.findPrompt
	}
	named.client, _ = jsonmsg.ReadString(jsonmsg.Get(args, member))
	if s, named.own, bad = finds(ctx, named.client); bad != nil || named.own == named.client {
		return s, args, named, bad
	}
	text, err := jsonmsg.Marshal(named.own)
	if err != nil {
		return nil, nil, named, wire.Fail(wire.CodeInvalidParams, "params.%s: %v", member, err)
	}
	return s, jsonmsg.Put(args, member, text), named, nil
}

// inResult renames the contents of a resource to the client's name.
func (n naming) inResult(result json.RawMessage) json.RawMessage {
	contents := jsonmsg.Get(result, "contents")
	if n.client == n.own || jsonmsg.Describe(contents) != "an array" {
		return result
	}
	var all [][]byte
	f := jsonmsg.Read(result, wire.Limits())
	for _, one := range f.Elements("contents", len(contents)) {
		if uri, _ := jsonmsg.ReadString(jsonmsg.Get(one, "uri")); uri == n.own {
			if text, err := jsonmsg.Marshal(n.client); err == nil {
				one = jsonmsg.Put(one, "uri", text)
			}
		}
		all = append(all, one)
	}
	list := written(func(w *jsonmsg.Writer) { w.Name("contents").Elements(all) })
	if f.Err() != nil {
		return result
	}
	return jsonmsg.Put(result, "contents", jsonmsg.Get(list, "contents"))
}

// notAResult turns a refusal into an error, because models read only the results of tools.
func notAResult(result json.RawMessage, bad *wire.Error) (json.RawMessage, *wire.Error) {
	if bad != nil || string(jsonmsg.Get(result, "isError")) != "true" {
		return result, bad
	}
	text := "Not run."
	for _, item := range jsonmsg.Read(result, wire.Limits()).Objects("content") {
		text = item.Text("text")
	}
	return nil, wire.Fail(wire.CodeInvalidParams, "%s", text)
}

// itemsList answers the lists of resources, templates and prompts: the items of the servers, with
// safe texts, on one page.
func (o *offers) itemsList(ctx context.Context, r *server.Request, member string) (json.RawMessage, *wire.Error) {
	texts, err := o.itemTexts(ctx, r.Method)
	if err != nil {
		return nil, o.errItems(ctx, r.Method, err)
	}
	return written(func(w *jsonmsg.Writer) {
		if r.Modern {
			w.Member("resultType", wire.Complete)
		}
		w.Name(member).Elements(texts)
		if r.Modern {
			w.Name("ttlMs").Int(0)
			w.Member("cacheScope", "private")
		}
	}), nil
}

// itemTexts returns the items of a list as clients see them.
func (o *offers) itemTexts(ctx context.Context, method string) (texts [][]byte, err error) {
	s := o.owner()
	if s == nil {
		return o.offeredItems(ctx, method)
	}
	all, err := s.Upstream.List(ctx, method)
	if err != nil {
		return nil, err
	}
	for _, item := range o.soundItems(ctx, s, method, all) {
		texts = append(texts, item.Text)
	}
	return texts, nil
}

// complete relays completion/complete if the rules may allow reading what it refers to.
func (g *Gateway) complete(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	by, bad := g.askedBy(ctx, r)
	if bad != nil {
		return nil, bad
	}
	_, params := jsonmsg.Take(r.Params, "_meta")
	method := wire.MethodPrompt
	if kind, _ := jsonmsg.ReadString(jsonmsg.Get(jsonmsg.Get(params, "ref"), "type")); kind == "ref/resource" {
		method = wire.MethodRead
	}
	s, ref, named, bad := g.offers.find(ctx, method, jsonmsg.Get(params, "ref"))
	if bad != nil {
		return nil, bad
	}
	if named.own != named.client {
		params = jsonmsg.Put(params, "ref", ref)
	}
	plan, err := g.cfg.Plan(ctx)
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the rules could not be read")
	}
	if plan.DecideAt(pseudo(s.Alias, method).call(by, nil), g.now()).Outcome == resolve.Deny {
		return nil, wire.Fail(wire.CodeInvalidParams, "Not run. Policy denies it.")
	}
	out, err := g.forwarder.exchange(ctx, s.Alias, upstream.Request{Method: r.Method, Params: params}, nil, nil)
	if err == nil {
		out, err = whole(out)
	}
	switch {
	case err != nil:
		return nil, wire.Fail(wire.CodeInternal, "the server can't be reached")
	case out.Error != nil:
		return nil, out.Error
	}

	return wire.ForClient(out.Result, r.Modern), nil
}
