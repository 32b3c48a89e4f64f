package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// request is one request to the API, without its stream member.
type request struct {
	model     string
	maxTokens int
	members   []pair
	mcp       bool // uses MCP servers, so it needs the connector
}

// written lists the parameters that this package writes itself.
var written = []string{
	"model",
	"max_tokens",
	"system",
	"messages",
	"tools",
	"mcp_servers",
	"temperature",
	"stream",
}

// check returns an error for options that the API doesn't support, and writes the simple
// parameters.
func (q *request) check(opt *agent.Options) error {
	switch {
	case opt.ConversationID != "":
		return unsupported("options.conversation_id", "the service keeps no history")
	case q.model == "":
		return badContent("options.model", "no model is named")
	case q.maxTokens < 1:
		return badContent("options.max_tokens", "expected 1 or more")
	}

	q.set("model", quote(q.model))
	q.set("max_tokens", fmt.Append(nil, q.maxTokens))
	if t := opt.Temperature; t != nil {
		if math.IsNaN(*t) || math.IsInf(*t, 0) {
			return badContent("options.temperature", "not a number")
		}
		number, _ := json.Marshal(*t) // a finite number can always be encoded
		q.set("temperature", number)
	}

	return nil
}

func (q *request) set(key string, raw []byte) { q.members = append(q.members, pair{key, raw}) }

// body returns the whole request.
func (q *request) body(stream bool) []byte {
	members := slices.Clone(q.members)
	if stream {
		members = append(members, pair{"stream", []byte("true")})
	}
	return object(members...)
}

// addMessages writes the system prompt and the turns.
func (q *request) addMessages(instructions string, messages []*content.Message) error {
	h := newHistory(messages)
	h.addSystem(instructions)
	for i, m := range messages {
		if err := h.add(fmt.Sprintf("messages[%d]", i), m); err != nil {
			return err
		}
	}
	turns, err := h.finish()
	if err != nil {
		return err
	}
	if len(h.system) > 0 {
		q.set("system", array(h.system))
	}
	q.set("messages", turns)
	q.mcp = q.mcp || h.mcp
	return nil
}

// addTools writes the definitions of functions and the servers of the MCP connector.
func (q *request) addTools(tools []agent.Tool) error {
	var definitions, servers [][]byte
	for i, t := range tools {
		where := fmt.Sprintf("tools[%d]", i)
		if t == nil {
			return badContent(where, "there is no tool")
		}
		server, ok := agent.Inner[*agent.HostedMCP](t)
		if !ok {
			definition, err := define(where, t)
			if err != nil {
				return err
			}
			definitions = append(definitions, definition)
			continue
		}

		entry, err := connect(where, server)
		if err != nil {
			return err
		}
		servers = append(servers, entry)
		definitions = append(definitions, toolset(server))
	}

	if len(definitions) > 0 {
		q.set("tools", array(definitions))
	}
	if len(servers) > 0 {
		q.mcp = true
		q.set("mcp_servers", array(servers))
	}
	return nil
}

// define writes the definition of a function. A function without a schema takes an empty
// object.
func define(where string, t agent.Tool) ([]byte, error) {
	if s, ok := agent.Inner[*serverTool](t); ok {
		if _, err := typeOf(s.definition); err != nil {
			return nil, badContent(where, err.Error())
		}
		return s.definition, nil
	}

	d := t.Definition()
	schema := []byte(d.Schema)
	if isNull(schema) {
		schema = []byte(`{"type":"object","properties":{}}`)
	}
	if !isObject(schema) {
		return nil, badContent(where+".schema", "expected a JSON object")
	}
	if d.Name == "" {
		return nil, badContent(where+".name", "the tool has no name")
	}
	return object(
		text("name", d.Name),
		optional("description", d.Description),
		pair{"input_schema", schema},
	), nil
}

// ServerTool returns a tool that the service runs itself, such as a web search, with its
// definition in the API. The service runs it without asking. Only calls that are returned as
// function calls can be approved.
func ServerTool(name string, definition json.RawMessage) agent.Tool {
	return &serverTool{name, definition}
}

type serverTool struct {
	name       string
	definition json.RawMessage
}

func (s *serverTool) Definition() agent.Definition { return agent.Definition{Name: s.name} }

// connect writes a server of the MCP connector. The connector never asks, so connect fails for
// a server whose calls need approval.
func connect(where string, h *agent.HostedMCP) ([]byte, error) {
	if h.Approval != "never" || len(h.Ask) > 0 {
		return nil, unsupported(where+".approval", "the MCP connector asks nobody; only \"never\" can be had")
	}

	if h.Name == "" || h.URL == "" {
		return nil, badContent(where, "a server needs a name and a URL")
	}
	token := ""
	for key, v := range h.Headers {
		scheme, rest, _ := strings.Cut(v, " ")
		if !strings.EqualFold(key, "Authorization") || !strings.EqualFold(scheme, "Bearer") || rest == "" ||
			token != "" {
			return nil, unsupported(
				where+".headers",
				"the MCP connector sends one bearer token and no other header",
			)
		}

		token = rest
	}

	return object(text("type", "url"), text("name", h.Name), text("url", h.URL), optional("authorization_token",
		token)), nil
}

// toolset writes which tools of a server may be called.
func toolset(h *agent.HostedMCP) []byte {
	set := []pair{text("type", "mcp_toolset"), text("mcp_server_name", h.Name)}
	if h.Allowed != nil {
		var configs []pair
		for _, name := range slices.Compact(slices.Sorted(slices.Values(h.Allowed))) {
			configs = append(configs, pair{name, []byte(`{"enabled":true}`)})
		}
		set = append(
			set,
			pair{"default_config", []byte(`{"enabled":false}`)},
			pair{"configs", object(configs...)},
		)
	}

	return object(set...)
}

// addParameters writes the additional parameters and the schema of the answer.
func (q *request) addParameters(base map[string]any, opt *agent.Options) error {
	all, names, err := parametersOf(base, opt)
	if err != nil {
		return err
	}
	var output []byte
	for _, name := range names {
		where := "extra." + Parameters + "." + name
		if slices.Contains(written, name) {
			return unsupported(where, "it is written from the options")
		}
		raw, err := jsonmsg.Marshal(all[name])
		if err != nil {
			return badContent(where, err.Error())
		}
		if name == "output_config" {
			output = raw
			continue
		}
		q.set(name, raw)
	}

	return q.addOutput(output, opt.Schema)
}

// parametersOf merges the parameters of the client with those of one request. It returns the
// names sorted.
func parametersOf(base map[string]any, opt *agent.Options) (map[string]any, []string, error) {
	all := maps.Clone(base)
	if extra, ok := opt.Extra[Parameters]; ok {
		own, ok := extra.(map[string]any)
		if !ok {
			return nil, nil, unsupported(
				"extra."+Parameters,
				fmt.Sprintf("expected a map[string]any, found %T", extra),
			)
		}

		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, own)
	}

	return all, slices.Sorted(maps.Keys(all)), nil
}

// addOutput writes the output configuration, with the schema of the answer if there is one.
func (q *request) addOutput(output, schema []byte) error {
	if schema == nil {
		q.set("output_config", output)
		return nil
	}
	if !isObject(schema) {
		return badContent("options.schema", "expected a JSON object")
	}
	if isNull(output) {
		output = []byte("{}")
	}
	if !isObject(output) {
		return badContent("extra."+Parameters+".output_config", "expected a JSON object")
	}
	format := object(text("type", "json_schema"), pair{"schema", schema})
	q.set("output_config", withMember(output, "format", format))
	return nil
}
