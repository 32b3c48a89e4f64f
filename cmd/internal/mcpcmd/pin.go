package mcpcmd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/pinfile"
)

// pinFlags are the flags of assent mcp pin.
type pinFlags struct {
	listFlags
	beside bool
	url    string
	cwd    string
	env    []string
	binary string

	names   []string // of tools; none: all
	command []string
}

// Pin returns the command assent mcp pin.
func Pin(streams term.Streams) *cobra.Command {
	var f pinFlags
	cmd := &cobra.Command{
		Use:   "pin FILE TOOLS.json [TOOL]... [--alias ALIAS] [--beside] [--url URL | -- COMMAND [ARG]...]",
		Short: "Accept definitions of tools as they are",
		Long: "pin accepts tools of a list, the result of tools/list, with their whole definitions, and shows what each " +
			"differs in from what was accepted\n" +
			"before. Without a TOOL it accepts all that can be offered. A server that is not in FILE yet needs what it is: " +
			"its address, or the command that starts\n" +
			"it, as the gateway has it. A server that has become another one is accepted with all its tools.\n" +
			"Exit code 0: they are accepted; 1: some tools of the list can't be; 2: nothing was changed.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, f.command = args[:dash], args[dash:]
			}
			if len(args) < 2 {
				return errors.New("want FILE and TOOLS.json before --")
			}
			f.names = args[2:]
			return commands{streams}.pin(cmd.Context(), f, args[0], args[1])
		},
	}
	f.define(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(
		&f.beside,
		"beside",
		false,
		"keep other definitions of the tools accepted, for a server that defines them differently for other clients",
	)
	flags.StringVar(&f.url, "url", "", "`URL` of the server")
	flags.StringVar(&f.cwd, "cwd", "", "`DIR` in which COMMAND is started")
	flags.StringArrayVar(&f.env, "env", nil, "`NAME` of a variable that COMMAND gets (repeatable)")
	flags.StringVar(&f.binary, "sha256", "", "sha256:`DIGEST` of the program, where the gateway pins it")
	return cmd
}

// server returns the server of the flags. ok is false if they name none.
func (f *pinFlags) server() (server catalog.Server, ok bool, err error) {
	switch {
	case f.url != "" && f.starts():
		return server, false, errors.New("--url: expected either an address or a command")
	case f.url != "":
		server, err = catalog.AtURL(f.url)
		return server, err == nil, err
	case f.starts():
		return f.started()
	}

	return server, false, nil
}

// starts reports whether the flags describe a server that is started as a program.
func (f *pinFlags) starts() bool {
	return len(f.command) > 0 || f.cwd != "" || len(f.env) > 0 || f.binary != ""
}

func (f *pinFlags) started() (server catalog.Server, ok bool, err error) {
	if len(f.command) == 0 {
		return server, false, errors.New("expected the command of the server behind --")
	}
	if f.binary != "" && !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(f.binary) {
		return server, false, errors.New("--sha256: expected sha256: and 64 hexadecimal digits")
	}
	return catalog.Server{
		Command: f.command[0],
		Args:    f.command[1:],
		Dir:     f.cwd,
		Env:     f.env,
		Binary:  f.binary,
	}, true, nil
}

// pinnedDoc is the output of assent mcp pin.
type pinnedDoc struct {
	Alias    string    `json:"alias"`
	Accepted []toolDoc `json:"accepted"`
	Same     int       `json:"same"`
	Refused  []toolDoc `json:"refused"`
}

func (c commands) pin(ctx context.Context, f pinFlags, file, tools string) error {
	list, err := f.read(file, tools)
	if err != nil {
		return err
	}
	var doc pinnedDoc
	err = pinfile.Update(ctx, file, func(pins *catalog.Pins) error {
		list.pins = pins // as they are now
		doc, err = f.accept(list)
		return err
	})
	if err != nil {
		return err
	}
	if err := term.Print(c.Streams, f.asJSON, doc, showPinned); err != nil {
		return err
	}
	if len(doc.Refused) > 0 {
		return term.Exit(term.ExitNo)
	}
	return nil
}

// accept adds tools of a list to its pins.
func (f *pinFlags) accept(list *listed) (pinnedDoc, error) {
	server, err := f.whose(list)
	if err != nil {
		return pinnedDoc{}, err
	}
	if err := f.known(list); err != nil {
		return pinnedDoc{}, err
	}
	doc := pinnedDoc{
		Alias:    list.alias,
		Accepted: []toolDoc{},
		Refused:  []toolDoc{},
	}
	var pins []catalog.Pin
	for _, v := range list.judge(server, f.volatile).Tools {
		if !f.wants(v.Tool.Name) {
			continue
		}
		pin, err := f.one(server, v, &doc)
		if err != nil {
			return doc, err
		}
		if pin != nil {
			pins = append(pins, *pin)
		}
	}

	list.pins.Add(list.alias, server, pins, catalog.Keep(f.beside))
	return doc, nil
}

// wants reports whether a tool was named, or none were.
func (f *pinFlags) wants(name string) bool {
	return len(f.names) == 0 || slices.Contains(f.names, name)
}

// one accepts a tool, or returns why it can't be accepted.
func (f *pinFlags) one(server catalog.Server, v catalog.Verdict, doc *pinnedDoc) (*catalog.Pin, error) {
	t := toolOf(v)
	switch {
	case v.State == catalog.Offered:
		doc.Same++
	case t.What == toolRefused && len(f.names) > 0:
		return nil, fmt.Errorf("the tool %q can't be accepted: %s", t.Name, t.Reason)
	case t.What == toolRefused:
		doc.Refused = append(doc.Refused, t)
		return nil, nil
	default:
		doc.Accepted = append(doc.Accepted, t)
	}

	pin, err := catalog.NewPin(server, v.Tool, f.volatile)
	return &pin, err
}

// whose returns the server for which the tools are accepted.
func (f *pinFlags) whose(list *listed) (catalog.Server, error) {
	server, given, err := f.server()
	pinned := list.pins.Of(list.alias)
	switch {
	case err != nil:
		return server, err
	case pinned == nil && !given:
		return server, fmt.Errorf(
			"%w: say what it is with --url URL, or with its command behind --",
			list.unknown(),
		)
	case pinned != nil && !given:
		return pinned.Server, nil
	case pinned != nil && !pinned.Server.Equal(server) && len(f.names) > 0:
		return server, fmt.Errorf(
			"%s is another server than the one that was accepted (%s): leave out the names, to accept all its tools",
			list.alias,
			catalog.DiffServers(pinned.Server, server)[0],
		)
	}

	return server, nil
}

// known returns an error for names that the list doesn't have.
func (f *pinFlags) known(list *listed) error {
	var names []string
	for _, t := range list.tools {
		names = append(names, t.Name)
	}
	for _, name := range f.names {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the list has no tool %q%s", name, near(name, names))
		}
	}

	return nil
}

func showPinned(p *term.Printer, doc pinnedDoc) {
	for _, t := range doc.Accepted {
		showTool(p, t)
	}
	for _, t := range doc.Refused {
		showTool(p, t)
	}
	p.Printf("%s: accepted %d, as before %d, refused %d\n", doc.Alias, len(doc.Accepted), doc.Same, len(doc.Refused))
}
