// Package decide implements `assent decide`, which decides calls without a server.
package decide

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Decider is the command `assent decide`.
type Decider struct{ term.Streams }

// Flags are the flags of assent decide.
type Flags struct {
	// Decisions is the file of the decision configuration. It is empty if there is none.
	Decisions string
	Agent     string
	parents   []string
	Policies  []string
	trusted   []string
	call      string
	indent    bool
	strict    bool
	format    string

	caseSensitive []string
	workspace     string
}

// readsInput counts the files that are standard input.
func (f Flags) readsInput() int {
	n := 0
	for _, file := range append([]string{f.Agent, f.call, f.Decisions}, f.parents...) {
		if file == "-" {
			n++
		}
	}
	return n
}

func (a Decider) Command() *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use: "decide --agent FILE [--parent FILE]... [--decisions FILE] [--policies DIR]... [--call FILE|-] " +
			"[--format json|text]",
		Short: "Decide calls: one JSON call per line in, one JSON decision per line out",
		Long: "decide reads one JSON call per line and writes one JSON decision per line " +
			"(docs/contracts/decide.md).\n" +
			"Exit code 0: every line was a valid call, whatever the outcome; 2: something could not be read.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.decide(f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Agent, "agent", "", "`FILE` of the agent, .agf.yaml")
	flags.StringArrayVar(
		&f.parents,
		"parent",
		nil,
		"`FILE` of an agent that delegates to this one (repeatable, outermost first)",
	)
	flags.StringVar(&f.Decisions, "decisions", "", "decisions.yaml: `FILE` of what the owner chose, as assent serve reads it")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "config" { // the flag of agf-validate for the same file
			name = "decisions"
		}
		return pflag.NormalizedName(name)
	})
	flags.StringArrayVar(
		&f.Policies,
		"policies",
		nil,
		"`DIR` of *.policy.yaml that the agent may name, or that apply by selector (repeatable); instead of those "+
			"of --decisions",
	)
	flags.StringArrayVar(
		&f.trusted,
		"trust-server",
		nil,
		"`ALIAS` of an MCP server or remote agent whose annotations are believed; * stands for any run of "+
			"characters (repeatable)",
	)
	flags.StringVar(&f.call, "call", "-", "`FILE` of calls, - for standard input")
	flags.StringArrayVar(
		&f.caseSensitive,
		"case-sensitive-arguments",
		nil,
		"`TARGET`, such as \"tool grep\" or \"mcp_tool files/grep\", whose arguments may have keys that differ in "+
			"case alone (repeatable)",
	)
	flags.StringVar(&f.workspace, "workspace", ".", "`DIR` in which calls work that name no workspace, or none; links are not resolved")
	flags.BoolVar(&f.strict, "strict", false, "decide nothing if agf-validate has an error about a file of "+
		"agents or policies")
	flags.BoolVar(&f.indent, "indent", false, "spread each decision over several lines, for people")
	flags.StringVar(
		&f.format,
		"format",
		"json",
		"`FORMAT` of the decisions: json, or text for people: what, why with places, and the smallest change of "+
			"arguments that would give another outcome",
	)
	term.Offer(cmd, "format", "json", "text")
	term.Required(cmd, "agent")
	return cmd
}

func (a Decider) decide(f Flags) error {
	if f.readsInput() > 1 {
		return errors.New("standard input can be only one of --agent, --parent, --decisions and --call")
	}
	if f.format != "json" && f.format != "text" {
		return fmt.Errorf("--format: unknown format %q, expected json or text", f.format)
	}
	if f.indent && f.format == "text" {
		return errors.New("--indent is for --format json")
	}
	plan, sem, err := a.compile(f)
	if err != nil {
		return err
	}
	in := a.In
	prompt := func() {}
	if f.call != "-" {
		file, err := os.Open(f.call)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	} else {
		a.ExpectTyping(`one call as JSON on each line, such as {"kind":"tool","tool":"NAME","args":{}}`)
		if a.InTerminal {
			prompt = func() { fmt.Fprint(a.Err, "call> ") }
		}
	}

	w := bufio.NewWriter(a.Out)
	show := jsonLines(w, f.indent)
	next := stepLines(w, f)
	if f.format == "text" {
		show = a.newText(plan, sem, w).print
	}
	var workspace *resolve.Workspace
	if f.workspace != "none" {
		root, err := filepath.Abs(f.workspace)
		if err != nil {
			return fmt.Errorf("--workspace: %w", err)
		}
		workspace = &resolve.Workspace{Root: root}
	}
	return decideLines(plan, workspace, in, w, prompt, show, next)
}

// jsonLines returns a function that writes each decision as a JSON document.
func jsonLines(w io.Writer, indent bool) func(*resolve.Call, resolve.Decision) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if indent {
		encoder.SetIndent("", "  ")
	}
	return func(_ *resolve.Call, d resolve.Decision) error { return encoder.Encode(d) }
}

// stepLines returns a function that writes each answer about the next step.
func stepLines(w io.Writer, f Flags) func(resolve.NextStep) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if f.indent {
		encoder.SetIndent("", "  ")
	}
	return func(n resolve.NextStep) error {
		if f.format == "text" {
			_, err := fmt.Fprintln(w, term.Scrub(n.String()))
			return err
		}
		return encoder.Encode(n)
	}
}

// Compile loads the agents from the outermost parent inwards, and their
// policies.
func (a Decider) Compile(f Flags) (*resolve.Plan, error) {
	plan, _, err := a.compile(f)
	return plan, err
}

// compile is like Compile, and also returns the condition semantics of the plan.
func (a Decider) compile(f Flags) (*resolve.Plan, condition.Semantics, error) {
	var sem condition.Semantics
	chosen, err := a.choices(f)
	if err != nil {
		return nil, sem, err
	}
	registry, err := a.policies(chosen)
	if err != nil {
		return nil, sem, err
	}

	opt := chosen.Options()
	if f.Decisions == "" {
		opt.Configuration = "" // flags alone are no configuration
	}
	if err := a.tell(f, fileerrors.Find(nil, chosen.PolicyDirs(), opt)); err != nil {
		return nil, sem, err
	}
	var plan *resolve.Plan
	for _, file := range append(f.parents[:len(f.parents):len(f.parents)], f.Agent) {
		var err error
		opt.Parent = plan
		if plan, err = a.compileFile(f, file, registry, opt); err != nil {
			return nil, sem, err
		}
	}

	return plan, opt.Semantics.Conditions, nil
}

// tell prints errors in files that leave the files usable. With --strict it returns them as an
// error.
func (a Decider) tell(f Flags, found []diag.Finding) error {
	if f.strict {
		return fileerrors.Refuse(found)
	}
	fileerrors.Print(a.Err, found)
	return nil
}

// compileFile loads one agent. Problems are printed to standard error.
func (a Decider) compileFile(
	f Flags, file string, registry policy.Registry, opt resolve.Options,
) (*resolve.Plan, error) {
	src, err := term.ReadFile(file, a.In)
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{file: src}
	agent, findings := schema.Parse(file, src)
	if agent == nil {
		term.PrintFindings(a.Err, yamldoc.Stopping(findings), texts)
		return nil, fmt.Errorf("the agent %s can't be used", file)
	}
	if err := a.tell(f, fileerrors.Merge(
		fileerrors.Find([]fileerrors.Agent{{Path: file, Text: src}}, nil, opt), fileerrors.Usable(findings),
	)); err != nil {
		return nil, err
	}
	plan, err := resolve.Compile(agent, registry, opt)
	var unresolved *resolve.UnresolvedError
	if err != nil && !errors.As(err, &unresolved) {
		return nil, err
	}
	term.PrintFindings(a.Err, plan.Findings(), texts)
	return plan, nil
}

// maxLine limits one line of calls in bytes: the largest arguments with their escapes, and an
// envelope.
const maxLine = 16 << 20

// decideLines decides the call on every line. At the end it returns an error if a line was no valid
// call.
func decideLines(
	plan *resolve.Plan, workspace *resolve.Workspace, in io.Reader, w *bufio.Writer, prompt func(),
	show func(*resolve.Call, resolve.Decision) error, next func(resolve.NextStep) error,
) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	unreadable, unanswered := 0, 0
	for {
		prompt()
		line, err := readLine(lines)
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return fmt.Errorf("read calls: %w", err)
		}
		if step := plan.NextOf(line); step != nil {
			if step.Error != "" {
				unanswered++
			}
			err = next(*step)
		} else {
			call, decision := decideLine(plan, workspace, line, err)
			if call == nil {
				unreadable++
			}
			err = show(call, decision)
		}
		if err != nil {
			return fmt.Errorf("write decisions: %w", err)
		}
		if lines.Buffered() == 0 { // a program that pipes one call at a time waits for this answer
			if err := w.Flush(); err != nil {
				return fmt.Errorf("write decisions: %w", err)
			}
		}
	}

	if err := w.Flush(); err != nil {
		return fmt.Errorf("write decisions: %w", err)
	}
	return linesError(unreadable, unanswered)
}

// linesError returns the error of the command if lines were no valid calls, or had no answer.
func linesError(unreadable, unanswered int) error {
	switch {
	case unreadable > 0:
		return fmt.Errorf("%d of the lines were no valid call", unreadable)
	case unanswered > 0:
		return fmt.Errorf("%d of the questions about the next step have no answer", unanswered)
	}
	return nil
}

// decideLine decides the call on one line. The returned call is nil if the line was no valid call.
func decideLine(
	plan *resolve.Plan, workspace *resolve.Workspace, line []byte, tooLong error,
) (*resolve.Call, resolve.Decision) {
	if tooLong != nil {
		return nil, plan.Unreadable(tooLong)
	}
	call, err := resolve.ParseCall(line, value.Limits{})
	if err != nil {
		return nil, plan.Unreadable(err)
	}
	if call.Workspace == nil {
		call.Workspace = workspace
	}
	d := plan.Decide(call)
	if d.Outcome == resolve.Allow {
		if d.Binding, err = plan.Bind(call); err != nil {
			return call, plan.Unreadable(err)
		}
	}
	return call, d
}

var errLineTooLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// readLine returns the next line that is not blank, without its end. A
// line over the bound is skipped to its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	for {
		line, err := readAnyLine(r)
		if err != nil || len(bytes.Trim(line, " \t\r\n")) > 0 {
			return line, err
		}
	}
}

func readAnyLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		tooLong := len(line)+len(part) > maxLine
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull && tooLong:
			return nil, skipLine(r)
		case err == bufio.ErrBufferFull:
			continue
		case tooLong:
			return nil, errLineTooLong
		case err == io.EOF && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}

		return bytes.TrimRight(line, "\r\n"), nil
	}
}

func skipLine(r *bufio.Reader) error {
	for {
		_, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		return errLineTooLong
	}
}
