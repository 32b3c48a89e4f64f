package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// emptySchema is the schema of functions without arguments.
const emptySchema = `{"type":"object","properties":{}}`

// schema checks a JSON Schema as far as the wire needs it.
func schema(where string, s json.RawMessage) ([]byte, error) {
	s = bytes.TrimSpace(s)
	if len(s) == 0 {
		return []byte(emptySchema), nil
	}
	if s[0] != '{' || !json.Valid(s) {
		return nil, bad(content.BadSchema, where, "expected a JSON Schema that is an object")
	}
	return s, nil
}

// hosted finds the MCP server in a tool, under any wrappers.
func hosted(t agent.Tool) *agent.HostedMCP {
	for t != nil {
		if h, ok := t.(*agent.HostedMCP); ok {
			return h
		}
		w, ok := t.(agent.Wrapper)
		if !ok {
			return nil
		}
		t = w.Unwrap()
	}
	return nil
}

// function writes what the model is told of a function.
func function(w *writer, d agent.Definition, strict *bool) {
	if d.Name == "" && w.err == nil {
		w.err = bad(content.BadShape, "tools", "a tool has no name")
	}
	parameters, err := schema("tools."+d.Name, d.Schema)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text("name", d.Name)
	if d.Description != "" {
		w.text("description", d.Description)
	}
	if err == nil {
		w.raw("parameters", parameters)
	}
	if strict != nil {
		w.bool("strict", *strict)
	}
}

// server writes a hosted MCP server.
func server(w *writer, h *agent.HostedMCP) {
	if (h.Name == "" || h.URL == "") && w.err == nil {
		w.err = bad(content.BadShape, "tools."+h.Name, "an MCP server has no name or no address")
	}
	w.text("type", "mcp")
	w.text("server_label", h.Name)
	w.text("server_url", h.URL)
	if len(h.Headers) > 0 {
		w.object("headers", func(w *writer) {
			for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
				w.text(name, h.Headers[name])
			}
		})
	}
	if h.Allowed != nil {
		w.texts("allowed_tools", h.Allowed)
	}
	approval(w, h)
}

// approval writes when the service asks. What it can't tell for sure it refuses, since the service's default may be to run.
func approval(w *writer, h *agent.HostedMCP) {
	switch {
	case h.Approval == "" || h.Approval == "always":
		w.text("require_approval", "always")
	case h.Approval == "never":
		w.text("require_approval", "never")
	case h.Approval == "listed" && len(h.Ask) > 0:
		w.object("require_approval", func(w *writer) { listed(w, h) })
	case w.err == nil:
		w.err = bad(content.BadShape, "tools."+h.Name, "approval %q with %d tools to ask for: expected always, never or listed with some", h.Approval, len(h.Ask))
	}
}

func listed(w *writer, h *agent.HostedMCP) {
	w.object("always", func(w *writer) { w.texts("tool_names", h.Ask) })
	var never []string
	for _, name := range h.Allowed {
		if !slices.Contains(h.Ask, name) {
			never = append(never, name)
		}
	}
	if never != nil {
		w.object("never", func(w *writer) { w.texts("tool_names", never) })
	}
}

// common writes the members that both APIs have, and those that are the caller's own.
func common(w *writer, cfg Config, opt *agent.Options, tools [][]byte, stream bool) {
	if len(tools) > 0 {
		w.raw("tools", array(tools))
	}
	if opt.Temperature != nil {
		w.float("temperature", *opt.Temperature)
	}
	if stream {
		w.bool("stream", true)
	}
	w.add("Config.Extra", cfg.Extra)
	extra, ok := opt.Extra[ExtraKey]
	if !ok {
		return
	}
	raw, ok := extra.(json.RawMessage)
	if !ok && w.err == nil {
		w.err = bad(content.BadShape, "Options.Extra", "expected a json.RawMessage under %q, found a %T", ExtraKey, extra)
	}
	w.add("Options.Extra", raw)
}

// begin writes the model, without which there is no request.
func begin(w *writer, opt *agent.Options) {
	if opt.Model == "" {
		w.err = bad(content.BadShape, "model", "neither the options nor the configuration name a model")
	}
	w.text("model", opt.Model)
}

// format writes the schema of the answer.
func format(w *writer, s json.RawMessage, strict bool) {
	text, err := schema("schema", s)
	if err != nil {
		w.err = err
		return
	}
	w.text("name", "answer")
	w.raw("schema", text)
	w.bool("strict", strict)
}
