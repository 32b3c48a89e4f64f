package operate

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// HookInbox returns the command assent hook inbox.
func (a Commands) HookInbox() *cobra.Command {
	var f config.HookFlags
	var person string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inbox --agent-file FILE",
		Short: "Show and answer what hooks without a server ask",
		Long: "inbox opens the store of hooks that ask by themselves (--agent-file), and serves its inbox to this machine " +
			"until it is stopped. It prints a link that\n" +
			"signs you in, and the commands that answer in a terminal. Hooks ask whether it runs or not; what they ask is " +
			"answered while it runs.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.People != "" && person == "" {
				return errors.New("--person: expected who you are in " + term.ScrubLine(f.People))
			}
			cfg, err := a.Hook(f)
			if err != nil {
				return err
			}
			return a.inbox(cmd, cfg, person, asJSON)
		},
	}
	HookFlags(cmd, &f)
	flags := cmd.Flags()
	flags.StringVar(&person, "person", "", "`ID` of you in people.yaml")
	flags.BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	term.Required(cmd, "agent-file")

	return cmd
}

// HookFlags adds the flags of hooks without a server.
func HookFlags(cmd *cobra.Command, f *config.HookFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.Agent, "agent-file", "", "`FILE` of the agent, *.agf.yaml: asks without a server")
	flags.StringArrayVar(&f.Policies, "policies", nil, "`DIR` with *.policy.yaml (repeatable)")
	flags.StringVar(&f.People, "people", "", "`FILE` people.yaml: who may answer; the person of this machine without it")
	flags.StringVar(&f.Store, "store", "", "`PATH` of the store; hook.db beside the agent's file")
	flags.StringVar(&f.Decisions, "decisions", "", "`FILE` of what the owner chose, policies too")
	flags.StringVar(&f.Undeclared, "undeclared", "", "deny tools that the agent's file doesn't name (the default), ask "+
		"about them, or leave them to the product (native)")
	term.Offer(cmd, "undeclared", "deny", "ask", "native")
}
