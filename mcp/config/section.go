package config

import (
	"encoding/json"

	"github.com/assent-dev/assent/internal/document"
)

// Section is the list of gateways in the file of another program: its schema and the functions that
// read it.
type Section struct {
	Schema  []byte // of the field; its $defs and formats have names of their own
	Formats map[string]document.Format
	Checks  map[string]document.Check
}

// sectionPrefix is put before the names of a section.
const sectionPrefix = "mcp_"

// NewSection returns the section for a file in dir, to which its paths are relative. It is read
// into a []Served.
func NewSection(dir string) (Section, error) {
	d := decoder(dir)
	out := Section{Formats: map[string]document.Format{}, Checks: map[string]document.Check{}}
	for name, format := range d.Formats {
		out.Formats[sectionPrefix+name] = format
	}
	for name, look := range d.Checks {
		out.Checks[sectionPrefix+name] = look
	}

	var err error
	out.Schema, err = sectionSchema()
	return out, err
}

// sectionSchema returns the field's schema with the definitions that it refers to.
func sectionSchema() ([]byte, error) {
	own, err := document.Prefixed(table, sectionPrefix)
	if err != nil {
		return nil, err
	}
	var field map[string]any
	if err := json.Unmarshal(own, &field); err != nil {
		return nil, err
	}
	field["title"] = "section mcp"
	field["description"] = "Gateways for MCP, each for one agent, at /mcp/NAME (docs/contracts/mcp.md)."
	field["type"] = "array"
	field["items"] = map[string]any{"$ref": "#/$defs/" + sectionPrefix + "served"}
	field["x-unique"] = "name"
	return json.Marshal(field)
}
