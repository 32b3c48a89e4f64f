package mcpcmd

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/mcp/catalog"
)

// Diff returns the command assent mcp diff.
func Diff(streams term.Streams) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "diff FILE TOOLS.json [--alias ALIAS] [--volatile-meta KEY]...",
		Short: "Show what a server's tools differ in from the accepted ones",
		Long: "diff holds a list of tools, the result of tools/list, against a file of pins: field by field what has " +
			"changed, which tools are new and which\n" +
			"are gone, and which can't be offered at all.\n" +
			"Exit code 0: nothing differs; 1: something does; 2: it could not be compared.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return commands{streams}.diff(f, args[0], args[1]) },
	}
	f.define(cmd.Flags())
	return cmd
}

// The states of a tool in the comparison.
const (
	toolNew     = "new"
	toolChanged = "changed"
	toolGone    = "gone"
	toolRefused = "refused"
)

// diffDoc is the output of assent mcp diff. Tools that match their accepted definition are left
// out.
type diffDoc struct {
	Alias string    `json:"alias"`
	Same  int       `json:"same"`
	Tools []toolDoc `json:"tools"`
}

type toolDoc struct {
	Name     string            `json:"name"`
	What     string            `json:"what"`             // new, changed, gone or refused
	Digest   string            `json:"digest,omitempty"` // as it would be pinned
	Reason   string            `json:"reason,omitempty"` // why it is refused
	Changes  []catalog.Change  `json:"changes,omitempty"`
	Findings []catalog.Finding `json:"findings,omitempty"`
}

func (c commands) diff(f listFlags, file, tools string) error {
	list, err := f.read(file, tools)
	if err != nil {
		return err
	}
	pinned := list.pins.Of(list.alias)
	if pinned == nil {
		return list.unknown()
	}
	doc := compared(list.judge(pinned.Server, f.volatile))
	if err := term.Print(c.Streams, f.asJSON, doc, showDiff); err != nil {
		return err
	}
	if len(doc.Tools) > 0 {
		return term.Exit(term.ExitNo)
	}
	return nil
}

func compared(j catalog.Judgement) diffDoc {
	doc := diffDoc{Alias: j.Alias, Tools: []toolDoc{}}
	for _, v := range j.Tools {
		if v.State == catalog.Offered {
			doc.Same++
			continue
		}
		doc.Tools = append(doc.Tools, toolOf(v))
	}

	for _, name := range j.Gone {
		doc.Tools = append(doc.Tools, toolDoc{Name: name, What: toolGone})
	}
	return doc
}

// toolOf describes a tool that doesn't match its accepted definition.
func toolOf(v catalog.Verdict) toolDoc {
	t := toolDoc{
		Name:     v.Tool.Name,
		What:     toolRefused,
		Digest:   v.Digest,
		Changes:  v.Changes,
		Findings: v.Tool.Findings,
	}
	switch v.Rule {
	case catalog.RuleNotPinned:
		t.What = toolNew
	case catalog.RuleChanged:
		t.What = toolChanged
	default:
		t.Reason = v.Reason
	}

	return t
}

func showDiff(p *term.Printer, doc diffDoc) {
	for _, t := range doc.Tools {
		showTool(p, t)
	}
	if len(doc.Tools) == 0 {
		p.Printf("%s: all %d tools are as they were accepted\n", doc.Alias, doc.Same)
	}
}

func showTool(p *term.Printer, t toolDoc) {
	style := map[string]term.Style{toolNew: term.Green, toolChanged: term.Yellow}[t.What]
	if style == term.Plain {
		style = term.Red
	}
	p.Printf("%s %s\n", style.Of(t.What), t.Name)
	if t.Reason != "" {
		p.Printf("  %s\n", term.Ready(t.Reason))
	}
	for _, change := range t.Changes {
		p.Printf("  %s\n", term.Ready(change.String()))
	}
	showFindings(p, t.Findings)
}
