package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// emptySchema is the schema of functions without arguments.
const emptySchema = `{"type":"object","properties":{}}`

// schema returns a JSON Schema for the API. It only checks that the schema is an object.
func schema(where string, s json.RawMessage) ([]byte, error) {
	s = bytes.TrimSpace(s)
	if len(s) == 0 {
		return []byte(emptySchema), nil
	}
	if kind, err := jsonmsg.Check(s, jsonmsg.Limits()); err != nil || kind != value.Object {
		return nil, bad(content.BadSchema, where, "expected a JSON Schema that is an object")
	}
	return s, nil
}

// hosted returns the MCP server in a tool or in the tools that it wraps.
func hosted(t agent.Tool) *agent.HostedMCP {
	h, _ := agent.Inner[*agent.HostedMCP](t)
	return h
}

// function writes the definition of a function.
func function(w *jsonmsg.Writer, d agent.Definition, strict *bool) {
	if d.Name == "" {
		w.Fail(bad(content.BadShape, "tools", "a tool has no name"))
	}
	parameters, err := schema("tools."+d.Name, d.Schema)
	if err != nil {
		w.Fail(err)
	}
	w.Member("name", d.Name)
	w.Optional("description", d.Description)
	if err == nil {
		w.Name("parameters").Verbatim(parameters)
	}
	if strict != nil {
		w.Name("strict").Bool(*strict)
	}
}

// server writes a hosted MCP server.
func server(w *jsonmsg.Writer, h *agent.HostedMCP) {
	if h.Name == "" || h.URL == "" {
		w.Fail(bad(content.BadShape, "tools."+h.Name, "an MCP server has no name or no address"))
	}

	w.Member("type", "mcp")
	w.Member("server_label", h.Name)
	w.Member("server_url", h.URL)
	if len(h.Headers) > 0 {
		w.Name("headers").Object(func(w *jsonmsg.Writer) {
			for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
				w.Member(name, h.Headers[name])
			}
		})
	}

	if h.Allowed != nil {
		w.Name("allowed_tools").Strings(h.Allowed)
	}
	approval(w, h)
}

// approval writes when the service must ask. It fails for unclear settings, since the service
// might then run calls without asking.
func approval(w *jsonmsg.Writer, h *agent.HostedMCP) {
	switch {
	case h.Approval == "" || h.Approval == "always":
		w.Member("require_approval", "always")
	case h.Approval == "never":
		w.Member("require_approval", "never")
	case h.Approval == "listed" && len(h.Ask) > 0:
		w.Name("require_approval").Object(func(w *jsonmsg.Writer) { listed(w, h) })
	default:
		w.Fail(bad(
			content.BadShape,
			"tools."+h.Name,
			"approval %q with %d tools to ask for: expected always, never or listed with some",
			h.Approval,
			len(h.Ask),
		))
	}
}

func listed(w *jsonmsg.Writer, h *agent.HostedMCP) {
	w.Name("always").Object(func(w *jsonmsg.Writer) { w.Name("tool_names").Strings(h.Ask) })
	var never []string
	for _, name := range h.Allowed {
		if !slices.Contains(h.Ask, name) {
			never = append(never, name)
		}
	}
	if never != nil {
		w.Name("never").Object(func(w *jsonmsg.Writer) { w.Name("tool_names").Strings(never) })
	}
}

// common writes the members that both APIs have, and the caller's additional members.
func common(w *jsonmsg.Writer, cfg Config, opt *agent.Options, tools [][]byte, stream bool) {
	if len(tools) > 0 {
		w.Name("tools").Elements(tools)
	}
	if opt.Temperature != nil {
		w.Name("temperature").Float(*opt.Temperature)
	}
	if stream {
		w.Name("stream").Bool(true)
	}
	splice(w, "Config.Extra", cfg.Extra)
	extra, ok := opt.Extra[ExtraKey]
	if !ok {
		return
	}
	raw, ok := extra.(json.RawMessage)
	if !ok {
		w.Fail(bad(content.BadShape, "Options.Extra", "expected a json.RawMessage under %q, found a %T", ExtraKey,
			extra))
	}
	splice(w, "Options.Extra", raw)
}

// begin writes the model. It fails if no model is set.
func begin(w *jsonmsg.Writer, opt *agent.Options) {
	if opt.Model == "" {
		w.Fail(bad(content.BadShape, "model", "neither the options nor the configuration name a model"))
	}
	w.Member("model", opt.Model)
}

// format writes the schema of the answer.
func format(w *jsonmsg.Writer, s json.RawMessage, strict bool) {
	text, err := schema("schema", s)
	if err != nil {
		w.Fail(err)
		return
	}
	w.Member("name", "answer")
	w.Name("schema").Verbatim(text)
	w.Name("strict").Bool(strict)
}
