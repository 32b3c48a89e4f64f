package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/remote"
)

// Line is the command line of a hook, as written in the settings of its product.
type Line struct {
	Args []string // after the program
	// Limit is the maximum time that the hook runs.
	Limit time.Duration
	// Alone is the configuration of a hook that works without a server. It is nil if the hook uses
	// a server.
	Alone *config.MCP
}

// Lines builds command lines from the flags of hooks.
type Lines struct {
	reader config.Reader
	own    *pflag.FlagSet
	flags  flags
}

// Writes adds the flags of hooks to a command that writes settings, and returns the Lines that
// reads them.
func Writes(cmd *cobra.Command, r config.Reader) *Lines {
	l := &Lines{reader: r, own: pflag.NewFlagSet("hook", pflag.ContinueOnError)}
	scratch := &cobra.Command{}
	l.flags.add(scratch, setupWait)
	l.flags.addDefer(scratch)
	scratch.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "json" {
			l.own.AddFlag(f)
		}
	})
	cmd.Flags().AddFlagSet(l.own)

	return l
}

// setupWait is the time that people have if the settings give the hook enough time for it.
const setupWait = 9 * time.Minute

// Products returns the names of the products that the command line accepts.
func Products() []string {
	var out []string
	for _, p := range products() {
		out = append(out, p.name)
	}

	return out
}

// Of returns the command line for a product, with absolute paths. It returns an error for flags
// that the hook would refuse and for files that don't exist.
func (l *Lines) Of(name string) (Line, error) {
	i := slices.IndexFunc(products(), func(p *product) bool { return p.name == name })
	if i < 0 {
		return Line{}, fmt.Errorf("%q is no product: expected one of %s", name, strings.Join(Products(), ", "))
	}
	p := products()[i]
	if err := l.flags.check(); err != nil {
		return Line{}, err
	}
	if l.flags.defers && !p.defers {
		return Line{}, fmt.Errorf("--defer: %s knows no calls that are put off", p.title)
	}
	args, err := l.written([]string{"hook", p.name})
	if err != nil {
		return Line{}, err
	}

	return l.flags.line(l.reader, p, args)
}

// written appends the flags that were set, and always --wait, to args.
func (l *Lines) written(args []string) ([]string, error) {
	var err error
	l.own.VisitAll(func(f *pflag.Flag) {
		if !f.Changed && f.Name != "wait" || err != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if value, err = absolute(f.Name, value); err != nil {
				return
			}
			args = append(args, "--"+f.Name)
			if f.NoOptDefVal == "" {
				args = append(args, value)
			}
		}
	})

	return args, err
}

// absolute returns the value of a flag, with paths made absolute. It returns an error if a file
// that the hook reads doesn't exist.
func absolute(flag, value string) (string, error) {
	if !slices.Contains(pathFlags(), flag) {
		return value, nil
	}
	path, err := filepath.Abs(value)
	if err != nil || flag == storeFlag {
		return path, err
	}
	_, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is no such file")
	}
	if err != nil {
		return "", fmt.Errorf("--%s %s: %w", flag, value, err)
	}

	return path, nil
}

// storeFlag is the flag of a file that the hook creates if needed.
const storeFlag = "store"

func pathFlags() []string {
	return []string{"agent-file", "policies", "people", storeFlag, "decisions", "token-file"}
}

// Paths returns the files named in a command line that its hook reads.
func Paths(args []string) []string {
	var out []string
	for i, arg := range args {
		flag, isFlag := strings.CutPrefix(arg, "--")
		if isFlag && flag != storeFlag && slices.Contains(pathFlags(), flag) && i+1 < len(args) {
			out = append(out, args[i+1])
		}
	}

	return out
}

// ReadLine reads the command line of a hook from settings.
func ReadLine(r config.Reader, args []string) (Line, error) {
	i := slices.IndexFunc(products(), func(p *product) bool { return len(args) > 1 && p.name == args[1] })
	if i < 0 {
		return Line{}, errors.New("it names no product")
	}
	p := products()[i]
	var f flags
	cmd := &cobra.Command{}
	f.add(cmd, p.wait)
	f.addDefer(cmd)
	if err := cmd.Flags().Parse(args[2:]); err != nil {
		return Line{}, err
	}
	if err := f.check(); err != nil {
		return Line{}, err
	}

	return f.line(r, p, args)
}

// line returns the Line for flags that have been checked.
func (f *flags) line(r config.Reader, p *product, args []string) (Line, error) {
	out := Line{Args: args, Limit: f.wait + p.reserve}
	if f.Agent == "" {
		return out, nil
	}
	alone, err := r.Hook(f.HookFlags)
	out.Alone = &alone

	return out, err
}

// add adds the flags of a hook.
func (f *flags) add(cmd *cobra.Command, wait time.Duration) {
	remote.Connected(cmd, &f.Connection)
	_ = cmd.Flags().MarkHidden("json") // it is there: Connected adds it
	operate.HookFlags(cmd, &f.HookFlags)
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "`ID` of the agent at the server")
	flags.StringVar(&f.person, "person", "", "with --people: `ID` of the person whose agent this is, who doesn't "+
		"approve its calls")
	flags.StringVar(&f.principal, "principal", "", "`NAME` of the person whom the agent acts for")
	flags.DurationVar(&f.wait, "wait", wait, "how long people have before the call is told to come again: less than "+
		"the hook's own time in the settings")
	flags.BoolVar(&f.Strict, "strict", false, "with --agent-file: block every call if agf-validate has an error about the "+
		"file of the agent or of a policy")
	flags.BoolVar(&f.observe, "observe", false, "HOLD NOTHING UP, only record what would have been allowed, asked or "+
		"denied: every call runs as if there were no hook")
}

func (f *flags) addDefer(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.defers, "defer", false, "put off what is still asked until the session is resumed; for "+
		"claude -p alone, where no rule of its settings allows the call")
}
