// Package mcpcmd implements the commands of assent mcp for the accepted definitions of tools: pins,
// diff and pin.
package mcpcmd

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/pinfile"
)

type commands struct{ term.Streams }

// listed is a list of tools with the pins of its server.
type listed struct {
	file  string
	alias string
	tools []*catalog.Tool
	pins  *catalog.Pins
}

// listFlags select the server of a list, and which members are ignored.
type listFlags struct {
	alias    string
	volatile []string
	asJSON   bool
}

func (f *listFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.alias, "alias", "", "`ALIAS` of the server; the only one in FILE unless it is given")
	flags.StringArrayVar(
		&f.volatile,
		"volatile-meta",
		nil,
		"`KEY` of _meta that may change without the tool being another one, as volatile_meta has it (repeatable)",
	)
	flags.BoolVar(&f.asJSON, "json", false, "print a JSON document")
}

// read reads a file of pins, and a list of tools.
func (f *listFlags) read(file, tools string) (*listed, error) {
	pins, err := pinfile.Read(file)
	if err != nil {
		return nil, err
	}
	l := &listed{file: file, alias: f.alias, pins: pins}
	if l.alias == "" {
		if len(pins.Servers) != 1 {
			return nil, fmt.Errorf(
				"--alias: %s pins the tools of %d servers: say which one",
				file,
				len(pins.Servers),
			)
		}

		l.alias = pins.Servers[0].Alias
	}

	text, err := os.ReadFile(tools)
	if err != nil {
		return nil, fmt.Errorf("read the list of tools: %w", err)
	}
	elements, err := catalog.Elements(tools, text)
	if err != nil {
		return nil, err
	}
	l.tools, err = catalog.ReadList(elements, nil)
	return l, err
}

// judge compares the list with the pins.
func (l *listed) judge(server catalog.Server, volatile []string) catalog.Judgement {
	return catalog.Judge(l.pins, l.alias, server, l.tools, catalog.Settings{
		First:    catalog.Required,
		Volatile: volatile,
	})
}

// unknown returns the error for a server without pins.
func (l *listed) unknown() error {
	var names []string
	for i := range l.pins.Servers {
		names = append(names, l.pins.Servers[i].Alias)
	}
	return fmt.Errorf("%s pins no tools of a server %q%s", l.file, l.alias, near(l.alias, names))
}

// near suggests the most similar of some names.
func near(name string, names []string) string {
	nearest := diag.Nearest(name, names)
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q", nearest)
}

// identity returns a server as JSON.
func identity(server catalog.Server) json.RawMessage {
	text, err := server.Text()
	if err != nil { // it was read from JSON, or its digest was made
		return nil
	}
	return text
}
