package answer

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func (a commands) signInsCommand() *cobra.Command {
	var c remote.Connection
	cmd := &cobra.Command{
		Use:   "sign-ins",
		Short: "List what tools of RAP tool servers ask you to sign in to",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (*signin.Page, error) {
				return s.SignIns(cmd.Context())
			}, printSignIns)
		},
	}

	return remote.Connected(cmd, &c)
}

// signInsOf returns the pending sign-ins of the token's person. It returns nil if the server
// refuses the request, for example because the token belongs to no person.
func signInsOf(ctx context.Context, s *client.Client) (*signin.Page, error) {
	page, err := s.SignIns(ctx)
	if refused := (*client.Problem)(nil); errors.As(err, &refused) {
		return nil, nil
	}

	return page, err
}

// checked returns a sign-in that is safe to show regardless of the server's response: the link must
// be a plain https address of the host shown before it.
func checked(s signin.Asked) signin.Asked {
	at := signin.At(s.Link, func(string) error { return nil })
	if at.Link == "" || at.Host != s.Host {
		s.Link = ""
	}

	return s
}

func printSignIns(p *term.Printer, page *signin.Page) {
	if len(page.SignIns) == 0 {
		p.Printf("no sign-ins\n")
		return
	}
	now := time.Now()
	for _, s := range page.SignIns {
		s = checked(s)
		p.Printf("Sign in at %s\n", s.Words())
		if s.Link != "" {
			p.Printf("  %s\n", s.Link)
		} else {
			p.Printf("  %s\n", s.Warning())
		}
		p.Printf("  ends %s\n", term.Until(s.Until, now))
	}

	if page.More {
		p.Printf("There are more of them; they are shown once some of these are done.\n")
	}
}

// drawSignIns prints a line for each of the first sign-ins, and returns the number of lines. It
// omits addresses, because they would be cut.
func (b *inbox) drawSignIns(width int) int {
	const most = 3
	if b.signIns == nil {
		return 0
	}
	lines := 0
	for _, s := range b.signIns.SignIns[:min(most, len(b.signIns.SignIns))] {
		text := "Sign in at " + term.ScrubLine(s.Words())
		if s = checked(s); s.Link == "" {
			text = "Not registered, do not sign in: " + term.ScrubLine(s.Words())
		}
		b.out.Raw(cutTo(text, width-1) + "\r\n")
		lines++
	}

	if lines > 0 {
		b.out.Raw(cutTo("`assent sign-ins` shows the addresses", width-1) + "\r\n")
		lines++
	}

	return lines
}
