// Package term has the common parts of all commands: streams, exit codes, help and completion, and
// safe output to the terminal.
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
	// assent audit verify: everything is correct, but nothing from outside proves that it is
	// complete, or whose it is
	ExitLoose = 3
)

// Version is the version of both binaries, and of the tool in SARIF.
const Version = "0.3.0"

// HelpURL is the directory of the rule pages. The page of a rule is HelpURL + id + ".md".
const HelpURL = "https://github.com/assent-dev/assent/blob/main/docs/rules/"

// Streams are the standard streams of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Width is the number of columns of the terminal at Out. It is 0 if there is no terminal or its
	// width is unknown.
	Width int
	// OutTerminal and ErrTerminal report whether the streams are terminals. Colour and progress are
	// only for terminals.
	OutTerminal bool
	ErrTerminal bool
	// InTerminal reports whether In is a terminal. Questions are asked only then.
	InTerminal bool
	// Raw makes In deliver single keys until restore is called. It is nil if that isn't supported.
	Raw func() (restore func(), err error)
	// Size returns the size of the terminal at Out. It is nil if Out is no terminal.
	Size func() (width, height int)
	// Env reads the environment. A nil Env is an empty environment.
	Env func(name string) string
}

// Getenv reads the environment.
func (s Streams) Getenv(name string) string {
	if s.Env == nil {
		return ""
	}
	return s.Env(name)
}

// ExitError carries an exit code to main. Its message, if any, has not been printed yet.
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

// Exit ends a command with a code and without a message.
func Exit(code int) error { return &ExitError{Code: code} }

// ExitWith ends a command with a code and a message.
func ExitWith(code int, err error) error { return &ExitError{Code: code, err: err} }

// No returns an error for the answer "no", which has an exit code of its own.
func No(format string, args ...any) error { return ExitWith(ExitNo, fmt.Errorf(format, args...)) }

// CodeOf returns the exit code of an error. The default is ExitFailure.
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
		// Names in it may come from anywhere, so further lines are marked to differ from our own.
		fmt.Fprintf(
			s.Err,
			"%s: %s\n",
			cmd.Name(),
			strings.ReplaceAll(Scrub(strings.ReplaceAll(err.Error(), "\t", "  ")), "\n", "\n  "),
		)
	}

	return code
}
