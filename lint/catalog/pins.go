package catalog

import (
	"strconv"

	"github.com/assent-dev/assent/value"
)

// pinMark is the member that identifies a file of pins (docs/contracts/mcp.md).
const pinMark = "assent_mcp_pins"

// ParseAll reads the lists of a file. A file of pins has one list for each server. Any other
// file is one list, read as Parse reads it.
func ParseAll(file string, src []byte) ([]*Catalog, error) {
	doc, pins := pinned(src)
	if !pins {
		one, err := Parse(file, src)
		if err != nil {
			return nil, err
		}
		return []*Catalog{one}, nil
	}

	r := &reader{file: file, src: src}
	lists, err := r.pins(doc)
	return lists, r.at(err)
}

// pinned parses a file of pins. pins is false for any other file.
func pinned(src []byte) (doc value.Value, pins bool) {
	doc, err := value.Parse(src, value.Limits{MaxBytes: maxBytes})
	if err != nil || doc.Kind != value.Object {
		return doc, false
	}
	_, pins = doc.Get(pinMark)
	return doc, pins
}

// pins reads the accepted definitions in a file of pins. The programs that run the tools check
// whether the file is correct and who wrote it.
func (r *reader) pins(doc value.Value) ([]*Catalog, error) {
	servers, _ := doc.Get("servers")
	if servers.Kind != value.Object {
		return nil, wrong([]string{"servers"}, "expected the servers that tools were accepted of, an object")
	}
	var lists []*Catalog
	for _, m := range servers.Members {
		list := &Catalog{
			File:   r.file,
			Server: m.Key,
			MCP:    true,
			Pins:   true,
			Text:   r.src,
		}
		if err := r.pinned(list, m.Value); err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}

	return lists, nil
}

func (r *reader) pinned(list *Catalog, server value.Value) error {
	path := []string{"servers", list.Server, "tools"}
	tools, _ := server.Get("tools")
	if tools.Kind != value.Array {
		return wrong(path, "expected the accepted definitions, an array")
	}
	if len(tools.Items) > maxTools {
		return wrong(path, "%d tools are more than the %d that are read", len(tools.Items), maxTools)
	}
	places := r.elements(path)
	for i, item := range tools.Items {
		at := below(path, strconv.Itoa(i), "definition")
		definition, _ := item.Get("definition")
		if definition.Kind != value.Object {
			return wrong(at, "expected the definition of a tool, an object")
		}
		tool, err := r.tool(shape{
			name:   "MCP",
			schema: "inputSchema",
			needed: true,
		}, definition, at)
		if err != nil {
			return err
		}
		tool.Range = places[i]
		list.accept(tool)
	}

	return nil
}

// accept adds a definition. If a tool has several accepted definitions, a call may meet any of
// them. So the tool takes the arguments that at least one definition takes. It is destructive
// if at least one definition says so, and read-only only if all of them say so.
func (c *Catalog) accept(t Tool) {
	for i := range c.Tools {
		o := &c.Tools[i]
		if o.Name != t.Name {
			continue
		}
		o.Args = o.Args.or(t.Args)
		if says(t.Hints.Destructive) {
			o.Hints.Destructive = t.Hints.Destructive
		}
		if !says(t.Hints.ReadOnly) {
			o.Hints.ReadOnly = t.Hints.ReadOnly
		}
		return
	}

	c.Tools = append(c.Tools, t)
}

func says(hint *bool) bool { return hint != nil && *hint }
