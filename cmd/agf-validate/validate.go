package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// program is the command agf-validate (docs/contracts/agf-validate.md).
type program struct {
	term.Streams
	// Workers is the number of files that are checked at the same time. 0 means one per processor.
	Workers int
}

// Run executes the command and returns its exit code.
func (v program) Run(args []string) int { return term.Run(v.command(), v.Streams, args) }

// validateFlags are the flags of a check.
type validateFlags struct {
	format   string
	failOn   string
	config   string
	policies []string
	copyAge  time.Duration // 0: the copy of a registry may have any
	people   string
	settings string
	tools    []string
	strict   bool
	noColor  bool
	version  bool
}

func (v program) command() *cobra.Command {
	var f validateFlags
	cmd := &cobra.Command{
		Use:   "agf-validate [flags] PATH...",
		Short: "Check Agent Format agents, governance policies and people.yaml",
		Long: "agf-validate checks *.agf.yaml and *.policy.yaml files and people.yaml: PATH is a file, a directory " +
			"to walk, or - for standard input.\n" +
			"Exit code 0: clean, 1: findings at or above --fail-on, 2: usage, or something could not be read.",
		Args: paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.version {
				_, err := fmt.Fprintf(v.Out, "agf-validate %s\n", term.Version)
				return err
			}
			chosen, err := v.settledQuietly(&f, cmd.Flags(), args)
			broken, err := keepUnusable(nil, err)
			if err != nil {
				return err
			}
			if broken != nil {
				chosen = args
				if len(args) == 0 {
					chosen = []string{"."} // the settings can't say
				}
			}
			return v.check(f, chosen, broken)
		},
	}
	flags := cmd.Flags()
	// A version template of cobra would link text/template, with which the linker has to keep all
	// methods: 1.7 MB.
	flags.BoolVarP(&f.version, "version", "v", false, "version for agf-validate")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the output: "+strings.Join(diag.Formats(), ", "))
	flags.StringVar(
		&f.failOn,
		"fail-on",
		"error",
		"least `SEVERITY` that makes the exit code 1: error, warning or info",
	)
	f.inputs(flags)
	flags.DurationVar(
		&f.copyAge,
		"registry-age",
		0,
		"how old the copy of the registry that --decisions names may be, such as 10m; any age unless given. "+
			"assent policies fetch makes one",
	)
	flags.StringVar(
		&f.people,
		"people",
		"",
		"people.yaml `FILE`: policies must ask groups that it knows, and no more people than it has",
	)
	flags.BoolVar(&f.noColor, "no-color", false, "never colour the output")
	term.Offer(cmd, "format", diag.Formats()...)
	term.Offer(cmd, "fail-on", "error", "warning", "info")
	cmd.SetGlobalNormalizationFunc(olderNames)
	cmd.AddCommand(
		compiling{v}.askCommand(),
		v.createCommand(),
		compiling{v}.diffCommand(),
		v.explainCommand(),
		v.fixCommand(),
		v.initCommand(),
		v.lspCommand(),
		v.mutateCommand(),
		planning{v}.postureCommand(),
		planning{v}.replayCommand(),
		v.rulesCommand(),
		v.schemaCommand(),
		v.testCommand(),
		term.VersionCommand("agf-validate", v.Streams),
	)
	return cmd
}

// olderNames accepts --config, which --decisions was called before, and the flags derived from it.
func olderNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "config", "config-old", "config-new", "against-config":
		name = strings.Replace(name, "config", "decisions", 1)
	}

	return pflag.NormalizedName(name)
}

// inputs adds the flags for what agents are checked with.
func (f *validateFlags) inputs(flags *pflag.FlagSet) {
	flags.StringVar(
		&f.config,
		"decisions",
		"",
		"decisions.yaml: `FILE` of what the owner chose, as assent serve reads it; its rules re-grade or switch off rules",
	)
	flags.StringArrayVar(
		&f.policies,
		"policies",
		nil,
		"`DIR` of *.policy.yaml that agents may name (repeatable); instead of those of --decisions",
	)
	flags.StringArrayVar(
		&f.tools,
		"tools",
		nil,
		"`[ALIAS=]FILE` with the tools that an MCP server offers, or a model is given (repeatable): the result of "+
			"tools/list, an array of OpenAI or Anthropic, or the pins of assent mcp; agents must allow and gate what is there",
	)
	flags.BoolVar(&f.strict, "strict", false, "unknown fields are errors")
	flags.StringVar(
		&f.settings,
		"settings",
		"",
		"`FILE` of what a repository says about its checks; "+settingsName+" of this directory when it is there",
	)
}

// completeRules completes the ids of all rules.
func completeRules(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	ids := []string{"semantics"}
	for _, info := range infos() {
		ids = append(ids, info.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// errNoPaths is returned if neither the command line nor the settings name any paths.
var errNoPaths = errors.New("name files, directories, or - for standard input; --help tells more")

// paths allows standard input only once, because a second read of it would be empty.
func paths(_ *cobra.Command, args []string) error {
	if i := slices.Index(args, "-"); i >= 0 && slices.Contains(args[i+1:], "-") {
		return errors.New("standard input can be checked only once")
	}
	return nil
}

// check checks all paths. Findings of people, a configuration or settings that can't be used are
// reported like those of other files, and the other files are checked without them. broken are such
// errors from before.
func (v program) check(f validateFlags, paths []string, broken []*unusableError) error {
	if len(paths) == 0 {
		return errNoPaths
	}
	failOn, err := diag.ParseSeverity(f.failOn)
	if err != nil {
		return fmt.Errorf("--fail-on: %w", err)
	}
	opt := lint.Options{Strict: f.strict}
	chosen, err := v.configOf(f, &opt)
	if broken, err = keepUnusable(broken, err); err != nil {
		return err
	}
	if f.people != "" {
		directory, err := v.peopleOf(f.people)
		bad, err := keepUnusable(nil, err)
		if err != nil {
			return err
		}
		if directory != nil { // or the interface would hold a nil pointer
			opt.People = directory
		}
		if f.people == "-" { // files are reported with the others
			broken = append(broken, bad...)
		}
	}

	if opt.Catalogs, err = v.readCatalogs(f.tools, paths); err != nil {
		return err
	}

	shown := &sources{}
	out, err := diag.New(f.format, v.Out, diag.Options{
		Color:   v.OutTerminal && !f.noColor && v.Getenv("NO_COLOR") == "",
		Source:  shown.text,
		Rules:   infos(),
		Width:   v.Width,
		FailOn:  failOn,
		Tool:    "agf-validate",
		Version: term.Version,
		HelpURL: term.HelpURL,
	})
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	inputs, policies := walk(paths, v.In), v.shelf(chosen, f.copyAge)
	policies.take(&opt)
	opt.Fleet = fleet(inputs, &opt, f.config != "" || f.people != "", v.workers())
	c := &checker{
		linter:   lint.New(rules.All(), opt),
		streams:  v.Streams,
		out:      out,
		shown:    shown,
		failOn:   failOn,
		progress: newProgress(v.Err, v.ErrTerminal),
		shelf:    policies,
	}
	for _, b := range broken {
		diag.Stamp(b.findings, b.file)
		c.show(diag.Report{File: b.file, Findings: b.findings}, b.src)
	}
	policies.reports(c, inputs)
	if err := c.owners(f, inputs); err != nil {
		return err
	}
	c.idle(opt, inputs)
	return c.run(inputs, v.workers())
}

func (v program) workers() int {
	if v.Workers > 0 {
		return v.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (v program) readPeople(path string) (*people.Directory, error) {
	directory, err := v.peopleOf(path)
	return directory, v.printUnusable(err)
}

func (v program) peopleOf(path string) (*people.Directory, error) {
	src, err := term.ReadFile(path, v.In)
	if err != nil {
		return nil, err
	}
	directory, findings := people.Parse(path, src)
	if directory == nil {
		return nil, &unusableError{"people", path, src, findings}
	}
	return directory, nil
}

// readConfig reads the owner's configuration into the options, and returns where the policies are.
// Flags take precedence.
func (v program) readConfig(f validateFlags, opt *lint.Options) (*term.Decisions, error) {
	chosen, err := v.configOf(f, opt)
	return chosen, v.printUnusable(err)
}

// configOf is like readConfig, but doesn't print. If the configuration can't be used, it returns
// the values of the flags with the error.
func (v program) configOf(f validateFlags, opt *lint.Options) (*term.Decisions, error) {
	var unusable error
	chosen := &term.Decisions{Config: &resolve.Config{}}
	if f.config != "" {
		src, err := term.ReadFile(f.config, v.In)
		if err != nil {
			return nil, err
		}
		grades, config, findings := parseConfig(f.config, src)
		if worst(findings) >= diag.Error {
			unusable = &unusableError{"configuration", f.config, src, findings}
		} else {
			opt.Config = grades
			chosen.Config, chosen.File = config, f.config
		}
	}

	if len(f.policies) > 0 {
		chosen.Instead(f.policies)
	}
	if unusable == nil && (f.copyAge < 0 || f.copyAge > 0 && chosen.Registry == nil) {
		return nil, errors.New("--registry-age is about the registry that the file of --decisions names: expected both, " +
			"a time above 0, and no --policies")
	}
	opt.Owner = chosen.Options()
	opt.Semantics = opt.Owner.Semantics

	return chosen, unusable
}

// parseConfig parses a configuration both for the linter and for plans. A finding that both report
// is returned once.
func parseConfig(file string, src []byte) (*lint.Config, *resolve.Config, []diag.Finding) {
	grades, findings := lint.ParseConfig(file, src, infos())
	owner, more := resolve.ParseConfig(file, src)
	for _, f := range more {
		if !slices.ContainsFunc(findings, func(known diag.Finding) bool { return known.Range.Start == f.Range.Start }) {
			findings = append(findings, f)
		}
	}

	return grades, owner, findings
}

func (v program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain RULE",
		Short: "Explain a rule, or `semantics`: our answers where the standard is silent",
		Args:  term.OneOf("a rule id, or semantics: `agf-validate rules` lists the rules"),
		RunE:  func(_ *cobra.Command, args []string) error { return explain(v.Out, args[0]) },

		ValidArgsFunction: completeRules,
	}
}

func (v program) schemaCommand() *cobra.Command {
	forms := []string{"agent", "policy", "people", "decisions", "settings", "test"}
	return &cobra.Command{
		Use:       "schema agent|policy|people|decisions|settings|test",
		Short:     "Print our JSON Schema, for editors",
		Args:      term.OneOf("agent, policy, people, decisions, settings or test", forms...),
		ValidArgs: forms,
		RunE: func(_ *cobra.Command, args []string) error {
			text := map[string]func() []byte{
				"agent":     schema.JSON,
				"policy":    policy.JSON,
				"people":    people.JSON,
				"decisions": resolve.ConfigJSON,
				"settings":  func() []byte { return []byte(settingsSchema) },
				"test":      policytest.JSON,
			}[args[0]]
			_, err := v.Out.Write(text())
			return err
		},
	}
}

func (v program) rulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rules",
		Short: "List every rule with its severity",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, info := range infos() {
				if _, err := fmt.Fprintf(v.Out, "%-32s %-8s %s\n", info.ID, info.Severity, info.Title); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
