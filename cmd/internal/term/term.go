// Package term is what every command shares: its streams, exit codes,
// help and completion, and the one way of data to the terminal.
package term

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of both binaries (docs/contracts).
const (
	ExitOK       = 0 // nothing to report
	ExitFindings = 1 // agf-validate: findings at or above --fail-on
	ExitNo       = 1 // assent: the answer is no: denied, not approved, not verified
	ExitFailure  = 2 // usage, or something could not be read or reached
	// assent audit verify: everything is right, but nothing from
	// outside says that it is the whole, or whose it is
	ExitLoose = 3
)

// Version is the version of both binaries, and of the tool in SARIF.
const Version = "0.3.0"

// HelpURL is where the rule pages stand; the page of a rule is helpURL
// + id + ".md".
const HelpURL = "https://github.com/assent-dev/assent/blob/main/docs/rules/"

// Streams are the ends of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Width is how many columns the terminal at Out has, 0 when there
	// is none or it does not say.
	Width int
	// OutTerminal and ErrTerminal report whether a person reads along:
	// colour and progress are for people only.
	OutTerminal bool
	ErrTerminal bool
	// InTerminal reports whether a person types at In: nobody else is
	// ever asked a question.
	InTerminal bool
	// Raw makes In deliver single keys until restore is called; nil
	// where that can't be done.
	Raw func() (restore func(), err error)
	// Size asks the terminal at Out for its size; nil where there is none.
	Size func() (width, height int)
	// Env is the environment; nil means an empty one.
	Env func(name string) string
}

// Getenv reads the environment.
func (s Streams) Getenv(name string) string {
	if s.Env == nil {
		return ""
	}
	return s.Env(name)
}

// ExitError carries an exit code up to main; its message, if any, has
// not been printed yet.
type ExitError struct {
	Code int
	err  error
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Exit ends a command with a code and without a further word.
func Exit(code int) error { return &ExitError{Code: code} }

// ExitWith ends a command with a code and a message.
func ExitWith(code int, err error) error { return &ExitError{Code: code, err: err} }

// No is an error that answers no, which has an exit code of its own.
func No(format string, args ...any) error { return ExitWith(ExitNo, fmt.Errorf(format, args...)) }

// CodeOf is the exit code that an error carries, ExitFailure unless it
// says otherwise.
func CodeOf(err error) int {
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}

	return ExitFailure
}

// Run executes a command and turns its error into an exit code,
// printing the message once.
func Run(cmd *cobra.Command, s Streams, args []string) int {
	cmd.SetArgs(args)
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.Err)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	if err == nil {
		return ExitOK
	}
	code := ExitFailure
	var exit *ExitError
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.err
	}
	if err != nil {
		// Names in it may come from anywhere: a further line never
		// looks like one of ours.
		fmt.Fprintf(
			s.Err,
			"%s: %s\n",
			cmd.Name(),
			strings.ReplaceAll(Scrub(strings.ReplaceAll(err.Error(), "\t", "  ")), "\n", "\n  "),
		)
	}

	return code
}
