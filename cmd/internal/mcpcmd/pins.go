package mcpcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/pinfile"
)

// Pins returns the command assent mcp pins.
func Pins(reader config.Reader) *cobra.Command {
	var f config.MCPFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pins FILE | --config FILE | --agent FILE [--store PATH]",
		Short: "Show the definitions of tools that were accepted",
		Long: "pins reads a file of pins, checks that each digest is that of its definition and server, and shows whose " +
			"tools they are, how each was\n" +
			"accepted, and what of its texts a client doesn't see or should be looked at. Of a gateway, by its\n" +
			"configuration or its agent, it reads the file that stands beside the key.\n" +
			"Exit code 0: the file is sound; 2: it is not, or is not there.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := pinsOf(reader, f, args)
			if err != nil {
				return err
			}
			return commands{reader.Streams}.pins(file, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.File, "config", "", "YAML `FILE` of the gateway")
	flags.StringVar(&f.Agent, "agent", "", "`FILE` of the agent, for a gateway without a file")
	flags.StringVar(&f.Store, "store", "", "`PATH` of the store; mcp.db beside the agent's file")
	flags.BoolVar(&asJSON, "json", false, "print a JSON document")
	return cmd
}

// pinsOf returns the named file of pins, or that of a gateway.
func pinsOf(reader config.Reader, f config.MCPFlags, args []string) (string, error) {
	gateway := f.File+f.Agent+f.Store != ""
	switch {
	case gateway == (len(args) == 1):
		return "", errors.New("expected either a FILE of pins, or --config or --agent of a gateway")
	case !gateway:
		return args[0], nil
	}

	cfg, err := reader.MCPPlace(f)
	return cfg.Pins(), err
}

// pinsDoc is the output of assent mcp pins.
type pinsDoc struct {
	Servers []serverDoc `json:"servers"`
}

type serverDoc struct {
	Alias  string          `json:"alias"`
	Server json.RawMessage `json:"server"`
	Tools  []pinDoc        `json:"tools"`

	shown string
}

type pinDoc struct {
	Name     string            `json:"name"`
	Digest   string            `json:"digest"`
	By       catalog.By        `json:"by"`
	Findings []catalog.Finding `json:"findings,omitempty"`
}

func (c commands) pins(file string, asJSON bool) error {
	if _, err := os.Stat(file); err != nil { // for a gateway that is nothing pinned, for a person a slip
		return fmt.Errorf("read the pins: %w", errors.Unwrap(err))
	}
	pins, err := pinfile.Read(file)
	if err != nil {
		return err
	}
	doc := pinsDoc{Servers: []serverDoc{}}
	for _, s := range pins.Servers {
		doc.Servers = append(doc.Servers, serverOf(s))
	}
	return term.Print(c.Streams, asJSON, doc, showPins)
}

func serverOf(s catalog.Pinned) serverDoc {
	doc := serverDoc{
		Alias:  s.Alias,
		Server: identity(s.Server),
		Tools:  []pinDoc{},
		shown:  s.Server.String(),
	}
	for _, pin := range s.Tools {
		doc.Tools = append(doc.Tools, pinDoc{
			Name:     pin.Name,
			Digest:   pin.Digest,
			By:       pin.By,
			Findings: catalog.Read(pin.Definition).Findings,
		})
	}

	return doc
}

func showPins(p *term.Printer, doc pinsDoc) {
	if len(doc.Servers) == 0 {
		p.Printf("nothing is pinned\n")
	}
	for i, s := range doc.Servers {
		if i > 0 {
			p.Raw("\n")
		}
		p.Printf("%s: %s\n", term.Bold.Of(s.Alias), s.shown)
		table := term.Heading("TOOL", "ACCEPTED BY", "DIGEST")
		for _, pin := range s.Tools {
			table.Row(pin.Name, string(pin.By), pin.Digest)
		}
		p.Table(table)
		for _, pin := range s.Tools {
			showFindings(p, pin.Findings)
		}
	}
}

func showFindings(p *term.Printer, findings []catalog.Finding) {
	for _, f := range findings {
		p.Printf("  %s\n", term.Yellow.Of(term.Ready(f.String())))
	}
}
