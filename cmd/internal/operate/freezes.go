package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

func (a Commands) freezeCommand() *cobra.Command {
	var c remote.Connection
	var agent, reason string
	var list bool
	cmd := &cobra.Command{
		Use:   "freeze [--agent ID] [--reason TEXT]",
		Short: "Throw the kill switch: deny everything of an agent, or of all, from now on",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return remote.Ask(a.Caller, c, func(s *client.Client) (openapi.Freezes, error) {
				if list {
					freezes, err := s.Freezes(cmd.Context())
					return openapi.Freezes{Freezes: freezes}, err
				}
				freezes, err := s.Freeze(cmd.Context(), agent, reason)
				return openapi.Freezes{Freezes: freezes}, err
			}, printFreezes)
		},
	}
	flags := remote.Connected(cmd, &c).Flags()
	flags.StringVar(&agent, "agent", "", "only of the agent with this `ID`; without it, of every agent")
	flags.StringVar(&reason, "reason", "", "`TEXT` for the record")
	flags.BoolVar(&list, "list", false, "freeze nothing, only list what is frozen")
	cmd.MarkFlagsMutuallyExclusive("list", "agent")

	return cmd
}

// thawFlags are the flags of assent thaw.
type thawFlags struct {
	Place
	agent  string
	reason string
	wait   bool
}

func (a Commands) thawCommand() *cobra.Command {
	var f thawFlags
	cmd := &cobra.Command{
		Use:   "thaw [--agent ID] [--reason TEXT] [--wait]",
		Short: "Lift a freeze, once administrators have approved it",
		Long: "Through the API and the inbox, two people stand behind lifting a freeze. With --store, whoever holds " +
			"the store and its key lifts\n" +
			"it alone; the ledger says so.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.thaw(ctx, f)
		},
	}
	flags := placed(cmd, &f.Place).Flags()
	flags.StringVar(
		&f.agent,
		"agent",
		"",
		"only of the agent with this `ID`; without it, the freeze of every agent",
	)
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for the record")
	flags.BoolVar(&f.wait, "wait", false, "wait until administrators have approved it")

	return cmd
}

// thaw lifts a freeze, and lists what is still frozen.
func (a Commands) thaw(ctx context.Context, f thawFlags) error {
	left, err := at(ctx, a, f.Place, false, func(s store.Store, tenant string) ([]approval.Freeze, error) {
		err := a.Backend.Thaw(ctx, s, tenant, f.agent, f.reason)
		if errors.Is(err, approval.ErrNotFound) {
			return nil, errNoFreeze(f.agent)
		}
		if err != nil {
			return nil, err
		}
		return s.Freezes(ctx, tenant)
	}, func(s *client.Client) ([]approval.Freeze, error) {
		return administer(ctx, a, f.wait, func() ([]approval.Freeze, error) {
			left, err := s.LiftFreeze(ctx, f.agent, f.reason)
			if client.Code(err) == openapi.CodeNotFound {
				return nil, errNoFreeze(f.agent)
			}
			return left, err
		})
	})
	if err != nil {
		return err
	}
	return term.Print(a.Streams, f.AsJSON, openapi.Freezes{Freezes: left}, func(p *term.Printer, left openapi.Freezes) {
		p.Printf("lifted the freeze of %s\n", frozenAgent(f.agent))
		printFreezes(p, left)
	})
}

func errNoFreeze(agent string) error {
	return fmt.Errorf("there is no freeze of %s to lift: `assent freeze --list` shows the freezes", frozenAgent(agent))
}

// frozenAgent returns what a freeze covers: one agent, or everything.
func frozenAgent(agent string) string {
	if agent == "" {
		return "everything"
	}
	return "agent " + term.ScrubLine(agent)
}

func printFreezes(p *term.Printer, f openapi.Freezes) {
	for _, x := range f.Freezes {
		p.Printf("%s: %s, by %s, %s", term.Red.Of("frozen"), frozenAgent(x.Agent), x.By, term.Ago(x.At, time.Now()))
		if x.Reason != "" {
			p.Printf(": %s", x.Reason)
		}
		p.Printf("\n")
	}

	if len(f.Freezes) == 0 {
		p.Printf("nothing is frozen\n")
	}
}
