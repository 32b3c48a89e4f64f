package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/schema"
)

// stdinName is the name of standard input in messages.
const stdinName = "<stdin>"

// toolsFlag adds --tools to a command that works on calls.
func toolsFlag(flags *pflag.FlagSet, list *[]string, effect string) {
	flags.StringArrayVar(
		list,
		"tools",
		nil,
		"`[ALIAS=]FILE` with the tools that are offered (repeatable), or else those of "+settingsName+": "+effect,
	)
}

// toolsOfTests describes the effect of --tools for the commands about tests.
const toolsOfTests = "calls of other tools, or with other arguments, can't be made"

// offered reads the lists of --tools, or those of the settings if the flag is not given.
func (v program) offered(files []string) (lint.Catalogs, error) {
	if files == nil {
		s, err := v.readSettings("")
		if v.printUnusable(err) != nil || s == nil {
			return nil, err
		}
		files = s.Tools
	}
	return v.readCatalogs(files, nil)
}

// unheld returns an error if a list that --tools names belongs to none of the agents. named is
// empty if the lists are those of the settings.
func unheld(named []string, all lint.Catalogs, agents []*schema.Agent) error {
	idle := idleFiles(all, all.NoAgentOf(agents))
	if len(named) == 0 || len(idle) == 0 {
		return nil
	}
	list := idle[0]
	if list.Server == "" {
		return fmt.Errorf("--tools %s: no agent has tools of its own, so nothing was held against it", list.File)
	}
	var aliases []string
	for _, a := range agents {
		for _, s := range a.ActionSpace.MCPServers {
			aliases = append(aliases, s.Alias)
		}
	}
	return fmt.Errorf("--tools %s: no agent has an MCP server with the alias %q, so nothing was held against it%s",
		list.File, list.Server, didYouMean(list.Server, aliases))
}

// readCatalogs reads the lists of tools that --tools names, each as
// FILE or ALIAS=FILE. Two lists of one server are one list.
func (v program) readCatalogs(flags, paths []string) (lint.Catalogs, error) {
	var all lint.Catalogs
	stdin := slices.Contains(paths, "-")
	for _, flag := range flags {
		alias, file := splitTools(flag)
		if file == "-" && stdin {
			return nil, errors.New("standard input can be read only once")
		}
		stdin = stdin || file == "-"
		lists, err := v.readLists(alias, file)
		if err != nil {
			return nil, err
		}
		for _, list := range lists {
			for _, other := range all {
				if err := distinct(other, list); err != nil {
					return nil, err
				}
			}
			all = append(all, list)
		}
	}

	return all, nil
}

// splitTools splits ALIAS=FILE. An alias contains no path separator.
func splitTools(flag string) (alias, file string) {
	alias, file, named := strings.Cut(flag, "=")
	if !named || strings.ContainsAny(alias, `/\\`) {
		return "", flag
	}
	return alias, file
}

// readLists reads the lists of a file: a single list, or those of a file of pins. An alias selects
// one of them.
func (v program) readLists(alias, file string) ([]*catalog.Catalog, error) {
	src, err := term.ReadFile(file, v.In)
	if err != nil {
		return nil, fmt.Errorf("--tools: %w", err)
	}
	if file == "-" {
		file = stdinName
	}
	return parseLists(alias, file, src)
}

func parseLists(alias, file string, src []byte) ([]*catalog.Catalog, error) {
	lists, err := catalog.ParseAll(file, src)
	if err != nil {
		return nil, fmt.Errorf("--tools: %w", err)
	}
	if alias == "" {
		return lists, nil
	}
	if len(lists) == 0 || lists[0].Pins {
		return pick(lists, alias, file)
	}
	lists[0].Server = alias
	return lists, nil
}

// pick returns the list of one server from a file of pins.
func pick(lists []*catalog.Catalog, alias, file string) ([]*catalog.Catalog, error) {
	var names []string
	for _, list := range lists {
		if list.Server == alias {
			return []*catalog.Catalog{list}, nil
		}
		names = append(names, list.Server)
	}

	near := ""
	if nearest := diag.Nearest(alias, names); nearest != "" {
		near = fmt.Sprintf("; did you mean %q", nearest)
	}
	return nil, fmt.Errorf("--tools: %s pins no tools of a server %q%s", file, alias, near)
}

// distinct returns an error if a tool is in two lists of one server.
func distinct(a, b *catalog.Catalog) error {
	if a.Server != b.Server || a.MCP != b.MCP {
		return nil
	}
	names := map[string]*catalog.Tool{}
	for i := range a.Tools {
		names[a.Tools[i].Name] = &a.Tools[i]
	}
	for _, t := range b.Tools {
		if o := names[t.Name]; o != nil {
			return fmt.Errorf(
				"--tools: %s:%d:%d: the tool %q stands in %s:%d:%d already, so nobody knows which one is meant",
				t.File,
				t.Range.Start.Line,
				t.Range.Start.Column,
				t.Name,
				o.File,
				o.Range.Start.Line,
				o.Range.Start.Column,
			)
		}
	}

	return nil
}

// idleFiles leaves out the unused lists of a file of pins if another list of the file is used,
// because such a file has all servers of a gateway.
func idleFiles(all, idle lint.Catalogs) lint.Catalogs {
	used := map[string]bool{}
	for _, list := range all {
		if list.Pins && !slices.Contains(idle, list) {
			used[list.File] = true
		}
	}
	return slices.DeleteFunc(
		slices.Clone(idle),
		func(list *catalog.Catalog) bool { return list.Pins && used[list.File] },
	)
}

// idle reports catalogues that belong to no agent, unless they may belong to an agent that could
// not be read.
func (c *checker) idle(opt lint.Options, inputs []input) {
	fleet := opt.Fleet
	if fleet == nil {
		fleet = lint.NewFleet(nil)
	}
	agents := 0
	for _, in := range inputs {
		if in.kind == agentKind {
			agents++
		}
	}
	if agents > len(fleet.Subjects()) {
		return
	}
	for _, list := range idleFiles(opt.Catalogs, fleet.Idle(opt.Catalogs)) {
		whose, near := "has tools of its own", ""
		switch {
		case list.Server != "":
			whose = fmt.Sprintf("has an MCP server with the alias %q", list.Server)
			near = diag.Nearest(list.Server, fleet.Servers())
		case list.MCP:
			whose = "has an MCP server"
		}

		if near != "" {
			near = fmt.Sprintf("; did you mean %q", near)
		}
		c.unread = true
		c.progress.clear()
		fmt.Fprintf(
			c.streams.Err,
			"agf-validate: --tools %s: no agent that is checked %s, so nothing was held against it%s\n",
			list.File,
			whose,
			near,
		)
	}
}
