package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// editing is the command that approves a call with other arguments.
type editing struct{ commands }

func (f answerFlags) checkEdit(terminal bool) error {
	switch {
	case f.yes && f.binding == "":
		return errBinding
	case f.args == "" && !terminal:
		return errors.New("there is no terminal for an editor: give the arguments with --args")
	case !f.yes && !f.preview && (!terminal || f.args == "-"):
		return errors.New("there is no terminal to ask at: give --yes --binding PREFIX, or --preview")
	}

	return nil
}

func (c editing) edit(ctx context.Context, f answerFlags, id string) error {
	if err := f.checkEdit(c.person(f.AsJSON)); err != nil {
		return err
	}
	server, r, err := c.lookAtCall(ctx, f.Connection, id, f.binding)
	if err != nil {
		return err
	}
	args, err := c.newArguments(f, r)
	if err != nil {
		return err
	}
	body := openapi.EditBody{
		Arguments: args,
		Binding:   r.Binding(),
		Reason:    f.reason,
		Channel:   c.answersOn(),
	}
	preview, err := server.Edit(ctx, r.ID, r.Version, body, true)
	if err != nil {
		return remote.Explain(err)
	}
	if f.preview && f.AsJSON {
		return c.Printer().Document(preview)
	}
	if err := c.showEdit(f, r, preview); err != nil || f.preview {
		return err
	}
	return c.sendEdit(ctx, server, f, r, body)
}

// showEdit prints what changed, and then everything that the edit approves: the request as it would
// be afterwards. Then it asks.
func (c editing) showEdit(f answerFlags, r *approval.Request, e *approval.Edited) error {
	p := c.shownOn(f.AsJSON)
	s := viewOn(p, true)
	arguments := r.Arguments()
	if e.Request != nil {
		arguments = e.Request.Arguments()
	}
	s.Printf("%s: %s, edited\n", term.Bold.Of(r.ID), r.Current().Call.Target())
	s.changes(e.Changes, arguments)
	s.Printf("\nDecided again: %s\n", e.Decision.Outcome)
	if e.Decision.Outcome == resolve.Deny || e.Request == nil {
		s.reasons(e.Decision.Reasons)
		return term.No("the edited call is denied, so the edit is refused")
	}
	s.Printf("\nThis is all that you approve with it:\n\n")
	whole := c.showWhole(p, e.Request, true)
	switch {
	case f.preview:
		return p.Done()
	case whole != nil:
		return whole
	case f.yes:
		return p.Done()
	}

	printReminder(p, e.Request)

	return c.confirm(p, "approve the edited "+r.ID, r.ID, e.Binding)
}

func (c editing) sendEdit(
	ctx context.Context, server *client.Client, f answerFlags, r *approval.Request, body openapi.EditBody,
) error {
	body.ShownFully = true // showEdit printed the whole call, or stopped
	edited, err := server.Edit(ctx, r.ID, r.Version, body, false)
	if err != nil {
		return remote.Explain(err)
	}
	p := c.Printer()
	if f.AsJSON {
		return p.Document(edited)
	}
	if edited.Voted == nil {
		return errors.New("the server did not say what became of the edit: look at the request")
	}
	printVoted(p, edited.Voted)
	if err := p.Done(); err != nil {
		return err
	}
	return said(edited.Voted)
}

func (c editing) newArguments(f answerFlags, r *approval.Request) (string, error) {
	if f.args != "" {
		text, err := term.ReadFile(f.args, c.In)
		if err != nil {
			return "", fmt.Errorf("--args: %w", err)
		}
		return strings.TrimRight(string(text), "\n"), nil
	}

	if len(r.Hidden()) > 0 {
		return "", errors.New(
			"policies hide values of these arguments, so no editor is opened: give all arguments with --args",
		)
	}
	before := indentJSON(string(r.Current().Call.Args))
	after, err := c.editText(before)
	if err != nil {
		return "", err
	}
	if after == before {
		return "", term.No("the arguments were not changed: nothing was done")
	}
	return after, nil
}

// editText lets a person edit a text in a temporary file that only its owner can read.
func (c editing) editText(text string) (edited string, err error) {
	dir, err := os.MkdirTemp("", "assent-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "arguments.json")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	editor := cmp.Or(c.Getenv("VISUAL"), c.Getenv("EDITOR"), "vi")
	cmd := exec.Command(
		"sh",
		"-c",
		editor+` "$@"`,
		editor,
		file,
	) // an editor may bring flags of its own, as git has it
	cmd.Stdin = c.In
	cmd.Stdout = c.Out
	cmd.Stderr = c.Err
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the editor %s: %w", editor, err)
	}
	out, err := term.ReadFile(file, nil)
	return strings.TrimRight(string(out), "\n"), err
}
