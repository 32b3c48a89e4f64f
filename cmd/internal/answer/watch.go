package answer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/audit"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

// watchFlags are the flags of assent watch.
type watchFlags struct {
	remote.Connection
	mine  bool
	lines bool
	after int64
	until string
}

func (a commands) watchCommand() *cobra.Command {
	f := watchFlags{}
	cmd := &cobra.Command{
		Use:   "watch [--mine]",
		Short: "Watch and answer requests as they come: a live inbox in the terminal",
		Long: "On a terminal watch lists what waits, and takes single keys: j and k move, s shows, a approves, d " +
			"denies, e edits, c or the number of a\n" +
			"choice answers a question (c asks for the fields of a form one after the other), x dismisses it, q ends. Nothing is decided by one key: approving and " +
			"answering ask for the last 6\n" +
			"characters of the id, denying for a reason.\n" +
			"Elsewhere, or with --lines or --json, it prints what happens, a line for each ledger entry, and never " +
			"asks anything.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			if !cmd.Flags().Changed("after") {
				f.after = client.FromNow
			}
			return a.watch(ctx, f)
		},
	}
	flags := remote.Connected(cmd, &f.Connection).Flags()
	flags.BoolVar(&f.mine, "mine", false, "only what waits for the token's person")
	flags.BoolVar(&f.lines, "lines", false, "print what happens as lines, on a terminal too")
	flags.Int64Var(
		&f.after,
		"after",
		0,
		"with lines: begin behind the ledger entry of this `INDEX`; -1 begins at the beginning",
	)
	flags.StringVar(
		&f.until,
		"until",
		"",
		"with lines: end after the first entry of this `TYPE`, such as request_opened",
	)
	return cmd
}

func (a commands) watch(ctx context.Context, f watchFlags) error {
	server, err := a.Dial(f.Connection)
	if err != nil {
		return err
	}
	if f.lines || f.AsJSON || f.until != "" || !a.OutTerminal || !a.InTerminal || a.Raw == nil {
		return a.watchLines(ctx, server, f)
	}
	a.channel = "watch"
	return (&inbox{commands: a, server: server, flags: f}).run(ctx)
}

// happening is the JSON document of one line.
type happening struct {
	Index int64  `json:"index"`
	Type  string `json:"type"`
	Leaf  any    `json:"leaf"`
}

func (a commands) watchLines(ctx context.Context, server *client.Client, f watchFlags) error {
	p := a.Printer()
	for e, err := range server.Events(ctx, f.after) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return remote.Explain(err)
		case f.AsJSON:
			p.Err = p.JSONLine(happening{e.Index, e.Type, e.Leaf})
		default:
			audit.PrintEntry(p, e.Index, e.Leaf)
		}

		if p.Err != nil || e.Type == f.until {
			return p.Done()
		}
	}

	return nil
}

// inbox is the live list on a terminal. It reads one key at a time, and only while it waits for
// one, so that input for a prompt or an editor goes there.
type inbox struct {
	commands
	server   *client.Client
	flags    watchFlags
	requests []approval.Summary
	mine     map[string]bool // ids of those that wait for the token's person
	signIns  *signin.Page    // what the token's person is asked to sign in to; nil: nothing is known
	selected string          // id: the list may move under the cursor, the choice must not
	note     string
	out      term.Printer
}

func (b *inbox) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	restore, err := b.Raw()
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	defer func() { restore() }()
	b.out = *b.Printer()
	changed, failed := b.follow(ctx)
	wanted, keys := readKeys(ctx, b.In)
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	if err := b.refresh(ctx); err != nil {
		return err
	}
	for {
		b.draw()
		if err := b.out.Done(); err != nil {
			return err
		}
		select {
		case wanted <- struct{}{}:
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return remote.Explain(err)
		case <-changed:
			if err := b.refresh(ctx); err != nil {
				return err
			}
		case <-clock.C:
		case key, more := <-keys:
			if !more || key == 'q' || key == 3 ||
				key == 4 { // ctrl-C and ctrl-D are keys while the terminal is raw
				return nil
			}
			if restore, err = b.press(ctx, key, restore); err != nil {
				return err
			}
		}
	}
}

// follow sends a notification when something happened, at most one in advance.
func (b *inbox) follow(ctx context.Context) (changed chan struct{}, failed chan error) {
	changed, failed = make(chan struct{}, 1), make(chan error, 1)
	go func() {
		for _, err := range b.server.Events(ctx, client.FromNow) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed, failed
}

// readKeys reads one key each time it is requested.
func readKeys(ctx context.Context, in io.Reader) (wanted chan struct{}, keys chan byte) {
	wanted, keys = make(chan struct{}), make(chan byte)
	go func() {
		defer close(keys)
		one := make([]byte, 1)
		for {
			select {
			case <-wanted:
			case <-ctx.Done():
				return
			}
			if _, err := io.ReadFull(in, one); err != nil {
				return
			}
			select {
			case keys <- one[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return wanted, keys
}

func (b *inbox) refresh(ctx context.Context) error {
	page, err := b.server.Requests(ctx, client.Query{
		State: string(approval.Pending),
		Order: "due",
		Mine:  b.flags.mine,
		Limit: 200,
	})
	if err != nil {
		return remote.Explain(err)
	}
	if err := b.refreshMine(ctx, page.Requests); err != nil {
		return err
	}
	if b.signIns, err = signInsOf(ctx, b.server); err != nil {
		return remote.Explain(err)
	}
	at := b.at()
	b.requests = page.Requests
	if b.at() < 0 && len(b.requests) > 0 {
		b.selected = b.requests[min(max(at, 0), len(b.requests)-1)].ID
	}
	return nil
}

// refreshMine determines which requests wait for the token's person. None do if the token belongs
// to no person.
func (b *inbox) refreshMine(ctx context.Context, all []approval.Summary) error {
	mine := all
	if !b.flags.mine {
		page, err := b.server.Requests(ctx, client.Query{
			State: string(approval.Pending),
			Mine:  true,
			Limit: 200,
		})
		var refused *client.Problem
		switch {
		case errors.As(err, &refused):
			mine = nil
		case err != nil:
			return remote.Explain(err)
		default:
			mine = page.Requests
		}
	}

	b.mine = map[string]bool{}
	for _, r := range mine {
		b.mine[r.ID] = true
	}

	return nil
}

func (b *inbox) at() int {
	return slices.IndexFunc(b.requests, func(r approval.Summary) bool { return r.ID == b.selected })
}

// press performs the action of a key. Prompts and editors get the terminal in its original mode.
func (b *inbox) press(ctx context.Context, key byte, restore func()) (func(), error) {
	b.note = ""
	switch key {
	case 'j':
		b.move(1)
		return restore, nil
	case 'k':
		b.move(-1)
		return restore, nil
	case 's', 'a', 'd', 'e', 'c', 'x', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
	default:
		return restore, nil
	}

	switch i := b.at(); {
	case i < 0:
		b.note = "nothing is selected"
		return restore, nil
	case !b.requests[i].Question && !strings.ContainsRune("sade", rune(key)):
		b.note = "this is no question but a call"
		return restore, nil
	}

	restore()
	b.out.Raw("\x1b[H\x1b[2J")
	err := b.act(ctx, key)
	if err != nil {
		b.out.Raw("\n" + strings.ReplaceAll(term.Scrub(err.Error()), "\n", "\n  ") + "\n")
	}
	b.out.Printf("\n%s", term.Dim.Of("Enter goes back to the list"))
	if _, err := b.readAnswer(&b.out); err != nil {
		return restore, err
	}
	if err := b.refresh(ctx); err != nil {
		return restore, err
	}
	return b.Raw()
}

func (b *inbox) move(by int) {
	if i := b.at() + by; i >= 0 && i < len(b.requests) {
		b.selected = b.requests[i].ID
	}
}

func (b *inbox) act(ctx context.Context, key byte) error {
	switch key {
	case 'a':
		return b.approve(ctx, answerFlags{Connection: b.flags.Connection, all: true}, b.selected)
	case 'd':
		return b.deny(ctx)
	case 'e':
		return editing{b.commands}.edit(ctx, answerFlags{Connection: b.flags.Connection}, b.selected)
	case 's':
		return b.showSelected(ctx)
	}

	return b.ask(ctx, key)
}

func (b *inbox) showSelected(ctx context.Context) error {
	r, err := b.server.Request(ctx, b.selected)
	if err != nil {
		return remote.Explain(err)
	}
	viewOn(&b.out, true).request(r)
	return nil
}

// deny asks for the reason. An empty reason cancels.
func (b *inbox) deny(ctx context.Context) error {
	r, err := b.server.Request(ctx, b.selected)
	if err != nil {
		return remote.Explain(err)
	}
	if err := isQuestion(r); err != nil {
		return err
	}
	viewOn(&b.out, false).request(r)
	b.out.Printf("\nTo deny …%s write the reason, an empty line stops: ", term.Bold.Of(lastOf(r.ID)))
	reason, err := b.readAnswer(&b.out)
	if err != nil {
		return err
	}
	if reason == "" {
		return errors.New("stopped: nothing was done")
	}
	return b.vote(ctx, b.server, r, openapi.VoteBody{
		Verdict: approval.Deny,
		Reason:  reason,
		Binding: r.Binding(),
	}, false)
}

// keys returns the keys that answer the selected request, if it waits for the token's person.
func (b *inbox) keys() term.Ready {
	i := b.at()
	switch {
	case i < 0:
		return ""
	case !b.mine[b.requests[i].ID]:
		return "(this one does not wait for you)"
	case b.requests[i].Question:
		return "c answer  x dismiss"
	}

	return "a approve  d deny  e edit"
}

// draw prints the list, one request per line. The terminal is in raw mode, so lines end with a
// carriage return too.
func (b *inbox) draw() {
	width, height := 80, 24
	if b.Size != nil {
		width, height = b.Size()
	}
	var text strings.Builder
	p := &term.Printer{W: &text}
	p.Printf(
		"%d wait for an answer, %d of them for yours   j/k move  s show  %s  q quit\n",
		len(b.requests),
		len(b.mine),
		b.keys(),
	)
	p.Table(waitingRows(b.requests, time.Now()))
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	b.out.Raw("\x1b[H\x1b[2J")
	height -= b.drawSignIns(width)
	first := max(0, b.at()+2-(height-3)) // so that the selected line is on the screen
	for i, line := range lines {
		if i >= 2 && (i-2 < first || i-2 >= first+height-4) {
			continue
		}
		mark := "  "
		if i == b.at()+2 && i >= 2 {
			mark = "> "
		}
		b.out.Raw(mark + cutTo(line, width-3) + "\r\n")
	}

	if b.note != "" {
		b.out.Raw(b.note + "\r\n")
	}
}

// waitingRows returns the table of requests. It must fit into 80 columns with the deadline and the
// call that would run; one key shows everything else.
func waitingRows(requests []approval.Summary, now time.Time) *term.Table {
	table := term.Heading("ID", "DUE", "VOTES", "TARGET", "AGENT", "MESSAGE")
	for _, r := range requests {
		table.Row(
			term.Bold.Of("…"+lastOf(r.ID)), term.Until(r.Deadline, now), votesOf(r), term.Shorten(r.Target, 28),
			term.Shorten(r.Agent, 20), term.Dim.Of(messageOf(r)),
		)
	}

	return table
}

// cutTo shortens a line to a number of characters.
func cutTo(line string, most int) string {
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	return string([]rune(line)[:max(most-1, 0)]) + "…"
}
