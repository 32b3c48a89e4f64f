package operate

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// MCPGateway returns the command assent mcp gateway.
func (a Commands) MCPGateway() *cobra.Command {
	var f config.MCPFlags
	cmd := &cobra.Command{
		Use:   "gateway --config FILE | --agent FILE [--policies DIR]... -- COMMAND [ARG]...",
		Short: "Stand between an MCP client and its servers, and let nothing run that nobody allowed",
		Long: "gateway is an MCP server. It starts the servers behind it, decides each call by the agent's file and " +
			"policies, asks people where they have to be\n" +
			"asked, and passes on exactly what was allowed (docs/contracts/mcp.md).\n\n" +
			"It speaks on its standard streams, or by HTTP where the file says listen. Everything else goes to standard " +
			"error. It ends when its input ends.\n\n" +
			"Without a server it asks people by itself: assent mcp inbox shows what waits.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.TakeCommand(cmd, args); err != nil {
				return err
			}
			cfg, err := a.MCP(f)
			if err == nil {
				err = cfg.CheckTogether()
			}
			if err != nil {
				return err
			}
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.Backend.MCP(ctx, cfg, a.Streams)
		},
	}
	mcpFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.Strict, "strict", false, "don't start if agf-validate has an error about the file of the agent "+
		"or of a policy")
	return cmd
}

func mcpFlags(cmd *cobra.Command, f *config.MCPFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.File, "config", "", "YAML `FILE`")
	flags.StringVar(&f.Agent, "agent", "", "`FILE` of the agent, *.agf.yaml")
	flags.StringArrayVar(&f.Policies, "policies", nil, "`DIR` with *.policy.yaml (repeatable)")
	flags.StringVar(&f.People, "people", "", "`FILE` people.yaml: who may answer; the person of this machine without it")
	flags.StringVar(&f.Store, "store", "", "`PATH` of the store; mcp.db beside the agent's file")
	flags.StringVar(&f.Alias, "alias", "", "`ALIAS` of the server; the only one of the agent's mcp_servers")
}

// MCPInbox returns the command assent mcp inbox.
func (a Commands) MCPInbox() *cobra.Command {
	var f config.MCPFlags
	var person string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inbox --config FILE | --agent FILE",
		Short: "Show and answer what an MCP gateway asks",
		Long: "inbox opens the store of a gateway that asks by itself, and serves its inbox to this machine until it is " +
			"stopped. It prints a link that signs you\n" +
			"in, and the commands that answer in a terminal. The gateway may run or not meanwhile.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.MCPPlace(f)
			if err != nil {
				return err
			}
			if cfg.Server != "" {
				return errors.New("the people of " + term.ScrubLine(cfg.Server) + " are asked: they answer there")
			}
			if cfg.People != "" && person == "" {
				return errors.New("--person: expected who you are in " + term.ScrubLine(cfg.People))
			}
			return a.inbox(cmd, cfg, person, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.File, "config", "", "YAML `FILE` of the gateway")
	flags.StringVar(&f.Agent, "agent", "", "`FILE` of the agent, for a gateway without a file")
	flags.StringVar(&f.Store, "store", "", "`PATH` of the store; mcp.db beside the agent's file")
	flags.StringVar(&f.People, "people", "", "`FILE` people.yaml, as the gateway has it")
	flags.StringArrayVar(&f.Policies, "policies", nil, "`DIR` with *.policy.yaml, as the gateway has them (repeatable)")
	flags.StringVar(&person, "person", "", "`ID` of you in people.yaml")
	flags.BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	return cmd
}

// inbox serves the inbox of a store to the user of this machine, and prints how to answer there.
func (a Commands) inbox(cmd *cobra.Command, cfg config.MCP, person string, asJSON bool) error {
	ctx, stop := system.UntilSignal(cmd)
	defer stop()
	p := a.Printer()
	err := a.Backend.MCPInbox(ctx, cfg, person, a.Err, func(r Ready, file string) {
		if asJSON {
			p.Err = p.JSONLine(inboxDoc{Ready: r, TokenFile: file})
			return
		}

		p.Printf("%s\n", term.Yellow.Of("Whoever reads this terminal can sign in and answer as you."))
		p.Printf("sign in, once, within 10 minutes: %s\n", r.Link)
		p.Printf("in a terminal: assent watch --server %s --token-file %s\n", r.API, file)
		p.Printf("one at a time: assent approve ID --server %s --token-file %s\n", r.API, file)
	})

	return errors.Join(err, p.Done())
}

// inboxDoc is the output of assent mcp inbox --json and assent hook inbox --json.
type inboxDoc struct {
	Ready
	TokenFile string `json:"token_file"`
}
