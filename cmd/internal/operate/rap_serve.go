package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func (a Commands) rapGatewayCommand() *cobra.Command {
	var flags *config.Flags
	var file string
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "gateway --config FILE",
		Short: "Put tools behind approvals, for any RAP runtime",
		Long: "gateway is a RAP tool server. It wraps HTTP/JSON endpoints and other RAP tool servers, decides each " +
			"call by an agent's file and policies, and\n" +
			"where people must be asked it asks the runtime's user, the approvers of an assent server, or both " +
			"(docs/contracts/rap.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.Gateway(file, flags)
			cfg.Strict = strict
			if err != nil {
				return err
			}
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.rapGateway(ctx, cfg, asJSON)
		},
	}
	flags = config.NewGatewayFlags(cmd)
	cmd.Flags().StringVar(&file, "config", "", "YAML `FILE`")
	cmd.Flags().BoolVar(&strict, "strict", false, "don't start if agf-validate has an error about a file of agents or "+
		"policies")
	cmd.Flags().BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	term.Required(cmd, "config")
	return cmd
}

func (a Commands) rapGateway(ctx context.Context, cfg config.Gateway, asJSON bool) error {
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

func (a Commands) rapRuntimeCommand() *cobra.Command {
	var f *config.ServeFlags
	var agent string
	var servers, tokenFiles []string
	var desk string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "runtime --agents DIR --agent ID --tools NAME=URL... [--people FILE] [--dev]",
		Short: "Run the approval service with a RAP runtime for one agent",
		Long: "runtime is assent serve with the tool servers of one agent: the agent calls them through POST " +
			"/v1/agents/ID/rap/calls, its file decides, and\n" +
			"what tools ask is answered in the inbox, at the command line or in Slack. More servers, agents and " +
			"settings stand in the file of\n" +
			"assent serve --config (docs/contracts/rap.md).\n" +
			"With --server the people of another assent server are asked, which knows who asks by its own tokens: " +
			"--token-file NAME=FILE for each\n" +
			"token here that calls.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runtime := config.RAPRuntime{Agent: agent}
			for _, text := range servers {
				name, url, ok := strings.Cut(text, "=")
				if !ok || name == "" || url == "" {
					return fmt.Errorf("--tools %q: expected NAME=URL", text)
				}
				runtime.Servers = append(runtime.Servers, config.RAPServer{Name: name, URL: url})
			}

			if err := asksAt(&runtime, desk, tokenFiles); err != nil {
				return err
			}

			f.RAP = &config.RAP{Runtimes: []config.RAPRuntime{runtime}}
			cfg, err := a.Serve(f)
			if err != nil {
				return err
			}

			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.serve(ctx, cfg, asJSON)
		},
	}
	f = config.NewServeFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	cmd.Flags().StringVar(&agent, "agent", "", "`ID` of the agent that calls")
	cmd.Flags().StringVar(&desk, "server", "", "`URL` of an assent server whose people are asked instead")
	cmd.Flags().StringArrayVar(&tokenFiles, "token-file", nil,
		"the token here that calls, and the file of its token there (scope request), `NAME=FILE` (repeatable)")
	cmd.Flags().StringArrayVar(&servers, "tools", nil, "a tool server, `NAME=URL` (repeatable)")
	term.Required(cmd, "agent", "tools")
	return cmd
}

// asksAt reads --server and --token-file.
func asksAt(r *config.RAPRuntime, server string, tokenFiles []string) error {
	r.Server = server
	for _, text := range tokenFiles {
		name, file, ok := strings.Cut(text, "=")
		twice := slices.ContainsFunc(r.Askers, func(a config.RAPAsker) bool { return a.Token == name })
		if !ok || name == "" || file == "" || twice {
			return fmt.Errorf("--token-file %q: expected NAME=FILE, and each NAME once", text)
		}
		r.Askers = append(r.Askers, config.RAPAsker{Token: name, ServerTokenFile: file})
	}

	switch {
	case server == "" && len(tokenFiles) > 0:
		return errors.New("--token-file is a token of a server: expected --server with it")
	case server != "" && len(tokenFiles) == 0:
		return errors.New("--server: expected --token-file NAME=FILE for each token here that calls")
	}

	return nil
}
