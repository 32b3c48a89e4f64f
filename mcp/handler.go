package mcp

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// Capabilities of the gateway. Tasks are an extension in modern versions.
const (
	legacyCapabilities = `{"tools":{"listChanged":true},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
	modernCapabilities = `{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// Describe returns what clients are offered: tools, and the other features of the servers.
func (g *Gateway) Describe(context.Context, string) server.Description {
	has := g.offers.itemsHad()
	logs := g.anyLogs()
	return server.Description{
		Capabilities:       withLogs(withItems(legacyCapabilities, has), logs),
		ModernCapabilities: withLogs(withItems(modernCapabilities, has), logs),
		Instructions:       g.instructions(),
	}
}

// instructions joins the instructions of the servers whose configuration passes them to the model
// of the client.
func (g *Gateway) instructions() string {
	var all []string
	for _, s := range g.cfg.Servers {
		says, ok := s.Upstream.(interface{ Peer() upstream.Peer })
		if !s.Questions.Instructions || !ok {
			continue
		}
		if text, _ := catalog.Instructions(says.Peer().Instructions); text != "" {
			all = append(all, s.Alias+": "+text)
		}
	}

	return strings.Join(all, "\n\n")
}

// has returns the capabilities that a server reported, or nil if it is not connected.
func (s *Server) has() json.RawMessage {
	if s == nil {
		return nil
	}
	if says, ok := s.Upstream.(interface{ Peer() upstream.Peer }); ok {
		return says.Peer().Capabilities
	}
	return nil
}

// anyLogs reports whether at least one server has the logging capability.
func (g *Gateway) anyLogs() bool {
	for _, s := range g.servers {
		if jsonmsg.IsObject(jsonmsg.Get(s.has(), "logging")) {
			return true
		}
	}
	return false
}

func withLogs(all []byte, logs bool) []byte {
	if !logs {
		return all
	}
	return jsonmsg.Put(all, "logging", []byte("{}"))
}

// withItems adds the capabilities for resources, prompts and completions that servers have.
func withItems(all string, has []json.RawMessage) json.RawMessage {
	out := []byte(all)
	for _, name := range []string{"resources", "prompts", "completions"} {
		var any, news bool
		for _, of := range has {
			item := jsonmsg.Get(of, name)
			any = any || jsonmsg.IsObject(item)
			news = news || string(jsonmsg.Get(item, "subscribe")) == "true"
		}
		switch {
		case !any:
		case name == "completions":
			out = jsonmsg.Put(out, name, []byte("{}"))
		case news:
			out = jsonmsg.Put(out, name, []byte(`{"listChanged":true,"subscribe":true}`))
		default:
			out = jsonmsg.Put(out, name, []byte(`{"listChanged":true}`))
		}
	}
	return out
}

// written returns an object whose members can always be written.
func written(fill func(*jsonmsg.Writer)) json.RawMessage {
	text, err := jsonmsg.Object(fill)
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// Handle answers a request of a client. A method that the gateway doesn't know is refused and not
// forwarded to any server.
func (g *Gateway) Handle(
	ctx context.Context, r *server.Request, with *server.Exchange,
) (json.RawMessage, *wire.Error) {
	defer g.handling.enter()()
	switch r.Method {
	case "tools/list":
		return g.lister.toolsList(ctx, r)
	case wire.MethodCall:
		return g.toolsCall(ctx, r, with)
	case wire.MethodRead, wire.MethodPrompt:
		return g.decided(ctx, r, with)
	case catalog.ListResources:
		return g.offers.itemsList(ctx, r, "resources")
	case catalog.ListTemplates:
		return g.offers.itemsList(ctx, r, "resourceTemplates")
	case catalog.ListPrompts:
		return g.offers.itemsList(ctx, r, "prompts")
	case "completion/complete":
		return g.complete(ctx, r)
	case "tasks/get":
		return g.tasks.tasksGet(ctx, r)
	case "tasks/cancel":
		return g.tasks.tasksCancel(ctx, r)
	}

	switch {
	case r.Method == "tasks/result" && !r.Modern:
		return g.tasks.tasksResult(ctx, r)
	case r.Method == "tasks/update" && r.Modern:
		return g.tasks.tasksUpdate(ctx, r)
	}

	return nil, wire.Fail(wire.CodeMethodNotFound, "unknown method: %s", r.Method)
}

// Notified ignores notifications: none of them changes anything here.
func (g *Gateway) Notified(context.Context, *server.Request) {}

// Listen returns the topics that a caller may subscribe to: resources that the rules may let it
// read, and its own tasks.
func (g *Gateway) Listen(
	ctx context.Context, r *server.Request, t server.Topics, tell server.Tell,
) (server.Topics, *wire.Error) {
	return g.notifier.listen(ctx, r, t, tell)
}
