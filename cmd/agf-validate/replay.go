package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/lint/replay"
)

// replayFlags are the flags of agf-validate replay.
type replayFlags struct {
	now, against planFiles
	ungoverned   bool
	from         string
	format       string
	list         int
	skipBad      bool
}

func (v planning) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use: "replay --agent FILE [--policies DIR]... [--against-agent FILE] [--against-policies DIR]... CALLS...",
		Short: "Decide recorded calls again: what would be asked, what would go unasked, what a person denied and " +
			"would run",
		Long: "replay decides the calls of records again, and compares the outcomes with those of another agent or other " +
			"policies (--against-…), or else with those that a ledger has on record (docs/contracts/replay.md).\n" +
			"CALLS are calls as assent decide takes them, ledgers as assent audit export writes them, OTLP JSON with " +
			"GenAI spans, or transcripts of Claude Code; - is standard input.\n" +
			"Exit code 0: no call that a person denied would go unasked, 1: some would, 2: usage, or something could " +
			"not be read.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name records of calls, or - for standard input; --help tells more")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			against := slices.ContainsFunc(
				[]string{"against-agent", "against-policies", "against-decisions", "against-no-policies"},
				cmd.Flags().Changed,
			)
			return v.replay(f, against, args)
		},
	}
	f.now.flags(cmd, "", "")
	f.against.flags(cmd, "against-", ", of the old side; the new side's unless it is given")
	flags := cmd.Flags()
	flags.BoolVar(&f.ungoverned, "against-no-policies", false, "the old side has no policies")
	flags.StringVar(&f.from, "from", "auto", "`FORM` of the records: "+strings.Join(replay.Forms(), ", "))
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the output: "+strings.Join(replay.Formats(), ", "))
	flags.IntVar(&f.list, "list", 100, "at most `N` calls are listed; 0 lists all. All are counted")
	flags.BoolVar(
		&f.skipBad,
		"skip-bad",
		false,
		"entries that can't be read don't make the exit code 2; the output counts them",
	)
	term.Required(cmd, "agent")
	term.Offer(cmd, "from", replay.Forms()...)
	term.Offer(cmd, "format", replay.Formats()...)
	return cmd
}

// replay runs over all records.
func (v planning) replay(f replayFlags, against bool, records []string) error {
	if err := f.check(records); err != nil {
		return err
	}
	plan, agent, err := v.compilePlan(f.now)
	if err != nil {
		return err
	}
	opt := replay.Options{
		Agent:   agent,
		New:     plan,
		From:    replay.Form(f.from),
		Workers: v.workers(),
		List:    f.list,
		Bad:     v.reportBad(),
	}
	if against {
		if opt.Old, _, err = v.compilePlan(f.old()); err != nil {
			return fmt.Errorf("the old side: %w", err)
		}
	}
	out, err := replay.NewPrinter(f.format, v.Out)
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	run := replay.New(opt, out)
	for _, name := range records {
		if err := v.readRecord(run, name); err != nil {
			return err
		}
	}
	report, err := run.Close()
	switch {
	case err != nil:
		return fmt.Errorf("write the report: %w", err)
	case report.Bad > 0 && !f.skipBad:
		return fmt.Errorf("%d entries could not be read; --skip-bad goes without them", report.Bad)
	case report.Calls == 0: // a wrong file, or a wrong agent, is more likely than an agent that never called
		return fmt.Errorf("no call of %s is in the records, so nothing was replayed", agent.Metadata.ID)
	case report.DenialsUnasked > 0:
		return term.Exit(term.ExitFindings)
	}

	return nil
}

// check refuses flags that contradict each other.
func (f *replayFlags) check(records []string) error {
	inputs := append([]string{f.now.agent, f.now.config, f.against.agent, f.against.config}, records...)
	if n := len(inputs) - len(slices.DeleteFunc(slices.Clone(inputs), func(s string) bool { return s == "-" })); n > 1 {
		return errors.New("standard input can be read only once")
	}
	switch {
	case !slices.Contains(replay.Forms(), f.from):
		return fmt.Errorf("--from: unknown form %q, expected one of %s", f.from, strings.Join(replay.Forms(), ", "))
	case !slices.Contains(replay.Formats(), f.format):
		return fmt.Errorf("--format: unknown format %q, expected one of %s", f.format, strings.Join(replay.Formats(), ", "))
	case f.list < 0:
		return errors.New("--list: expected a number of calls, or 0 for all")
	case f.ungoverned && (len(f.against.policies) > 0 || f.against.config != ""):
		return errors.New("--against-no-policies contradicts --against-policies and --against-decisions")
	}

	return nil
}

// old returns the files of the old side. What is not given is the same as on the new side.
func (f *replayFlags) old() planFiles {
	old := f.against
	if old.agent == "" {
		old.agent = f.now.agent
	}
	if f.ungoverned {
		return planFiles{agent: old.agent}
	}
	if old.config == "" && len(old.policies) == 0 {
		old.policies = f.now.policies
	}
	if old.config == "" {
		old.config = f.now.config
	}
	return old
}

func (v planning) readRecord(run *replay.Replay, name string) error {
	if name == "-" {
		return run.Read("<stdin>", v.In)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is a directory, expected a record of calls", name))
	}
	return run.Read(name, file)
}

// mostBad limits how many bad entries of a record are reported individually.
const mostBad = 20

// reportBad returns a function that reports entries that can't be read.
func (v planning) reportBad() func(file string, line int, err error) {
	told := map[string]int{}
	return func(file string, line int, err error) {
		if told[file]++; told[file] <= mostBad {
			v.sayBad("%s:%d: %s\n", file, line, err)
		} else if told[file] == mostBad+1 {
			v.sayBad("%s:%d: more entries like these follow; the output counts them\n", file, line)
		}
	}
}

func (v planning) sayBad(format string, args ...any) {
	_, _ = io.WriteString(v.Err, safetext.Terminal(fmt.Sprintf("agf-validate: "+format, args...)))
}
