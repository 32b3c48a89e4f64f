package answer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

func (a commands) whoamiCommand() *cobra.Command {
	var c remote.Connection
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Tell whose token this command line has, and what it may do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (*openapi.Whoami, error) {
				return s.Whoami(cmd.Context())
			}, printWhoami)
		},
	}

	return remote.Connected(cmd, &c)
}

func printWhoami(p *term.Printer, w *openapi.Whoami) {
	p.Printf("%s (%s) of tenant %s\n", term.Bold.Of(w.Name), joined(w.Roles), w.Tenant)
	p.Printf("  may     %s\n", joined(w.Scopes))
	if mayAsk(w.Scopes) {
		p.Printf("  agents  %s\n", cmp.Or(strings.Join(w.Agents, ", "), "all"))
	}
	if w.Person != nil {
		p.Printf("  person  %s\n", personText(w.Person))
	}
	p.Printf("  until   %s, %s\n", term.Stamp(w.Expires), term.Until(w.Expires, time.Now()))
}

// mayAsk reports whether a token asks for calls: others have no agents.
func mayAsk(scopes []openapi.Scope) bool {
	return slices.Contains(scopes, openapi.ScopeRequest) || slices.Contains(scopes, openapi.ScopeDecide)
}

func personText(person *openapi.WhoamiPerson) string {
	switch {
	case !person.Known:
		return person.ID + ", whom the directory of people doesn't know: their answers don't count"
	case len(person.Groups) == 0:
		return person.ID + ", in no groups"
	}

	return person.ID + ", in " + strings.Join(person.Groups, ", ")
}

// joined lists words of the API.
func joined[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}

	return strings.Join(out, ", ")
}
