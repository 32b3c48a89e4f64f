package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func (a Commands) rapGatewayCommand() *cobra.Command {
	var file, listen string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gateway --config FILE",
		Short: "Put tools behind approvals, for any RAP runtime",
		Long: "gateway is a RAP tool server. It wraps HTTP/JSON endpoints and other RAP tool servers, decides each call by an agent's file and policies, and\n" +
			"where people must be asked it asks the runtime's user, the approvers of an assent server, or both (docs/contracts/rap.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.ReadGatewayConfig(file)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				if err := config.CheckAddress("--listen", listen); err != nil {
					return err
				}
				cfg.Listen = listen
			}
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.rapGateway(ctx, cfg, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `FILE`")
	cmd.Flags().StringVar(&listen, "listen", "", "`ADDRESS` to listen at, before the file's")
	cmd.Flags().BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	term.Required(cmd, "config")
	return cmd
}

func (a Commands) rapGateway(ctx context.Context, cfg config.Gateway, asJSON bool) error {
	if a.Backend.Gateway == nil {
		return ErrNoBackend
	}
	p := a.Printer()
	err := a.Backend.Gateway(ctx, cfg, a.Err, func(r Ready) {
		if asJSON {
			p.Err = p.JSONLine(r)
			return
		}
		p.Printf("the gateway %s serves RAP at %s\n", cfg.Name, r.URL)
	})
	return errors.Join(err, p.Done())
}

// rapRuntimeFlags are the flags of assent rap runtime: those of a service, and the tool servers of one agent.
type rapRuntimeFlags struct {
	config.ServeFlags
	agent   string
	servers []string
}

func (a Commands) rapRuntimeCommand() *cobra.Command {
	var f rapRuntimeFlags
	cmd := &cobra.Command{
		Use:   "runtime --agents DIR --agent ID --tools NAME=URL... [--people FILE] [--dev]",
		Short: "Run the approval service with a RAP runtime for one agent",
		Long: "runtime is assent serve with the tool servers of one agent: the agent calls them through POST /v1/agents/ID/rap/calls, its file decides, and\n" +
			"what tools ask is answered in the inbox, at the command line or in Slack. More servers, agents and settings stand in the file of\n" +
			"assent serve --config (docs/contracts/rap.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runtime := config.RAPRuntime{Agent: f.agent}
			for _, text := range f.servers {
				name, url, ok := strings.Cut(text, "=")
				if !ok || name == "" || url == "" {
					return fmt.Errorf("--tools %q: expected NAME=URL", text)
				}
				runtime.Servers = append(runtime.Servers, config.RAPServer{Name: name, URL: url})
			}
			f.Tenant.RAP = &config.RAP{Runtimes: []config.RAPRuntime{runtime}}
			cfg, err := a.Serve(cmd, f.ServeFlags)
			if err != nil {
				return err
			}
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.serve(ctx, cfg, f.AsJSON)
		},
	}
	config.ServeFlagSet(cmd, &f.ServeFlags)
	cmd.Flags().StringVar(&f.agent, "agent", "", "`ID` of the agent that calls")
	cmd.Flags().StringArrayVar(&f.servers, "tools", nil, "a tool server, `NAME=URL` (repeatable)")
	term.Required(cmd, "agent", "tools")
	return cmd
}
