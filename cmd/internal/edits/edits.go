// Package edits has the common parts of commands that change the settings files of other programs:
// the locations of these files, the flags, the question before a change, and the report of the
// outcome.
package edits

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
)

// The scopes of a file.
const (
	User    = "user"    // all that a user does
	Project = "project" // a directory, for everyone who works there
	Local   = "local"   // a directory, for this user; Claude Code alone
)

// ScopeFlag returns the flag for a scope, to append to a command line.
func ScopeFlag(scope string) string {
	if scope == User {
		return ""
	}

	return " --scope " + scope
}

// Flags are the flags of commands that change a file.
type Flags struct {
	Yes  bool
	Dry  bool
	JSON bool
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	all := cmd.Flags()
	all.BoolVar(&f.Yes, "yes", false, "change the file without asking")
	all.BoolVar(&f.Dry, "dry-run", false, "show what would change, and change nothing")
	all.BoolVar(&f.JSON, "json", false, "print JSON")
}

// Shown returns the printer for people. It writes to the error stream if the output is JSON.
func (f Flags) Shown(s term.Streams) *term.Printer {
	if f.JSON {
		s.Out = s.Err
	}

	return s.Printer()
}

// Printed prints the outcome: the document if the output is JSON, otherwise the text.
func (f Flags) Printed(s term.Streams, doc any, text string) error {
	p := s.Printer()
	if f.JSON {
		return p.Document(doc)
	}
	for line := range strings.Lines(text + "\n") {
		p.Printf("%s\n", strings.TrimSuffix(line, "\n"))
	}

	return p.Done()
}

// Change shows what would change in a file, asks, and makes the change. In a dry run it only shows
// it.
func (f Flags) Change(s term.Streams, file string, show, change func() error) (done bool, err error) {
	if err := show(); err != nil || f.Dry {
		return false, err
	}
	if err := f.confirm(s, file); err != nil {
		return false, err
	}

	return true, change()
}

// DryRun is the message for a change that was not made.
const DryRun = "nothing is changed: this was a dry run"

// confirm asks before a file is changed. If there is no terminal, --yes is required.
func (f Flags) confirm(s term.Streams, file string) error {
	if f.Yes {
		return nil
	}
	if !s.InTerminal || !s.ErrTerminal && !s.OutTerminal {
		return errors.New(
			"there is no terminal to ask at: give --yes to change the file, or --dry-run to look only",
		)
	}
	w := f.Shown(s)
	w.Printf("\nChange %s? Type yes, anything else stops: ", file)
	if err := w.Done(); err != nil {
		return err
	}
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		return term.No("stopped: nothing was changed")
	}

	return nil
}

// Digest returns the SHA-256 of a text in hexadecimal digits.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
