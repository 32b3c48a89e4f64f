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

// Line is the command line of a hook, as the settings of its product
// hold it.
type Line struct {
	Args []string // behind the program
	// Limit is how long the hook runs at most.
	Limit time.Duration
	// Alone is the service of a hook without a server; nil at a server.
	Alone *config.MCP
}

// Lines makes lines out of the flags that hooks have.
type Lines struct {
	reader config.Reader
	own    *pflag.FlagSet
	flags  flags
}

// Writes has a command take the flags of hooks.
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

// setupWait is how long people have where the settings give the hook
// the time for it.
const setupWait = 9 * time.Minute

// Products are the names of the products, as in the command line.
func Products() []string {
	var out []string
	for _, p := range products() {
		out = append(out, p.name)
	}

	return out
}

// Of is the line for a product, with paths that hold in any directory.
// Flags that the hook would refuse, and files that are not there, are
// an error.
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

// written writes the flags that were given down, and how long people have.
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

// absolute is the value of a flag; paths are absolute. A file that the
// hook will read must be there.
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

// storeFlag names a file that the hook makes.
const storeFlag = "store"

func pathFlags() []string {
	return []string{"agent-file", "policies", "people", storeFlag, "decisions", "token-file"}
}

// Paths are the files that a line names and its hook reads.
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

// ReadLine reads a line that stands in settings.
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

// line is a line whose flags are right.
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
