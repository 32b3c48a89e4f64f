package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// GatewayConfig is a RAP gateway that runs by itself: it asks the calling runtime's user, or the approvers of a server elsewhere.
type GatewayConfig struct {
	RAPGatewayConfig
	Listen    string
	PublicURL string // how runtimes reach it; "" means http:// and the address
	Store     string
	StoreFile string // file that holds Store
	KeyFile   string // "" means assent.key beside a store that is a file
	Watermark string // file; "" means one beside the key, NoWatermark none
	Agents    []string
	Policies  []string
	// OnBrokenFiles is KeepLastGood or DenyBroken.
	OnBrokenFiles string
	Server        string // URL of the assent server whose approvers are asked; "" none
	TokenFile     string // for it; scope request. It is that of the one caller that has none of its own
	LogText       bool
}

func (a Assent) rapGatewayCommand() *cobra.Command {
	var file, listen string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gateway --config FILE",
		Short: "Put tools behind approvals, for any RAP runtime",
		Long: "gateway is a RAP tool server. It wraps HTTP/JSON endpoints and other RAP tool servers, decides each call by an agent's file and policies, and\n" +
			"where people must be asked it asks the runtime's user, the approvers of an assent server, or both (docs/contracts/rap.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.readGatewayConfig(file)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				if err := checkAddress("--listen", listen); err != nil {
					return err
				}
				cfg.Listen = listen
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			return a.rapGateway(ctx, cfg, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `FILE`")
	cmd.Flags().StringVar(&listen, "listen", "", "`ADDRESS` to listen at, before the file's")
	cmd.Flags().BoolVar(&asJSON, "json", false, "tell in JSON where it answers")
	required(cmd, "config")
	return cmd
}

func (a Assent) rapGateway(ctx context.Context, cfg GatewayConfig, asJSON bool) error {
	if a.Backend.Gateway == nil {
		return errNoBackend
	}
	p := a.printer()
	err := a.Backend.Gateway(ctx, cfg, a.Err, func(r Ready) {
		if asJSON {
			p.err = p.jsonLine(r)
			return
		}
		p.printf("the gateway %s serves RAP at %s\n", cfg.Name, r.URL)
	})
	return errors.Join(err, p.done())
}

func (a Assent) readGatewayConfig(file string) (GatewayConfig, error) {
	cfg := GatewayConfig{Listen: "127.0.0.1:7718", Store: "./assent-gateway.db", OnBrokenFiles: KeepLastGood,
		LogText: a.ErrTerminal}
	src, err := readInput(file, nil)
	if err != nil {
		return cfg, err
	}
	err = a.readConfig(file, src, func(r *configReader, root *yamldoc.Node) {
		known := r.rapGatewayFields(&cfg.RAPGatewayConfig)
		known["listen"], known["public_url"] = r.listen(&cfg.Listen), r.text(&cfg.PublicURL)
		known["store"], known["store_file"] = r.store(&cfg.Store), r.path(&cfg.StoreFile)
		known["watermark"] = r.watermark(&cfg.Watermark)
		known["key"], known["agents"], known["policies"] = r.path(&cfg.KeyFile), r.paths(&cfg.Agents), r.paths(&cfg.Policies)
		known["on_broken_files"] = r.oneOf(&cfg.OnBrokenFiles, KeepLastGood, DenyBroken)
		known["server"], known["server_token_file"] = r.text(&cfg.Server), r.path(&cfg.TokenFile)
		r.mapping(root, known)
		r.rapGatewayWhole(root, &cfg.RAPGatewayConfig)
		r.oneStore(root)
		switch {
		case !has(root, "agents"):
			r.wrong(root, "this gateway lacks agents", "agents: the directory of the agent's file", "")
		case has(root, "server_token_file") && !has(root, "server"):
			r.wrong(root, "server_token_file is a token of a server, and there is none", "server, or no server_token_file", "")
		case (cfg.Ask == "approvers" || cfg.Ask == "both") && cfg.Server == "":
			r.wrong(root, "ask is "+cfg.Ask+", and there are no approvers to ask", "server and server_token_file: an assent server, and a token of it with the scope request", "")
		}
		r.askersThere(root, &cfg)
	})
	if err != nil {
		return cfg, err
	}
	if cfg.Store, err = a.whereStore(cfg.Store, cfg.StoreFile, true); err != nil {
		return cfg, err
	}
	where, err := cfg.StoreConfig().WithDefaults()
	cfg.KeyFile, cfg.Watermark = where.KeyFile, where.Watermark
	return cfg, err
}

// StoreConfig is what the gateway opens its store with.
func (c *GatewayConfig) StoreConfig() StoreConfig {
	return StoreConfig{Where: c.Store, KeyFile: c.KeyFile, Watermark: c.Watermark, Create: true}
}

// askersThere holds the callers to what the server elsewhere can know of them: it knows them by its tokens alone.
func (r *configReader) askersThere(root *yamldoc.Node, cfg *GatewayConfig) {
	own, shared := 0, 0
	for _, c := range cfg.Callers {
		switch {
		case cfg.Server != "" && c.Person != "":
			r.wrong(root, "person of the caller "+c.Name+" can't be told to the server whose approvers are asked",
				"no person, and a server_token_file that was made there for that person", "")
		case c.ServerTokenFile != "":
			own++
		default:
			shared++
		}
	}
	switch {
	case cfg.Server != "" && shared > 0 && cfg.TokenFile == "":
		r.wrong(root, "this gateway has a server and no token of it", "server_token_file, here or in each caller", "")
	case cfg.Server == "" && own > 0:
		r.wrong(root, "a caller has a server_token_file, and there is no server", "server, or no server_token_file", "")
	case cfg.Server != "" && shared > 1:
		r.wrong(root, "several callers would ask by one token, so that what is allowed to one is allowed to all", "server_token_file in each caller, a token of its own", "")
	}
}

// rapRuntimeFlags are the flags of assent rap runtime: those of a service, and the tool servers of one agent.
type rapRuntimeFlags struct {
	serveFlags
	agent   string
	servers []string
}

func (a Assent) rapRuntimeCommand() *cobra.Command {
	var f rapRuntimeFlags
	cmd := &cobra.Command{
		Use:   "runtime --agents DIR --agent ID --tools NAME=URL... [--people FILE] [--dev]",
		Short: "Run the approval service with a RAP runtime for one agent",
		Long: "runtime is assent serve with the tool servers of one agent: the agent calls them through POST /v1/agents/ID/rap/calls, its file decides, and\n" +
			"what tools ask is answered in the inbox, at the command line or in Slack. More servers, agents and settings stand in the file of\n" +
			"assent serve --config (docs/contracts/rap.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runtime := RAPRuntimeConfig{Agent: f.agent}
			for _, text := range f.servers {
				name, url, ok := strings.Cut(text, "=")
				if !ok || name == "" || url == "" {
					return fmt.Errorf("--tools %q: expected NAME=URL", text)
				}
				runtime.Servers = append(runtime.Servers, RAPServerConfig{Name: name, URL: url})
			}
			f.tenant.RAP = &RAPConfig{Runtimes: []RAPRuntimeConfig{runtime}}
			cfg, err := a.serveConfig(cmd, f.serveFlags)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			return a.serve(ctx, cfg, f.asJSON)
		},
	}
	serveFlagSet(cmd, &f.serveFlags)
	cmd.Flags().StringVar(&f.agent, "agent", "", "`ID` of the agent that calls")
	cmd.Flags().StringArrayVar(&f.servers, "tools", nil, "a tool server, `NAME=URL` (repeatable)")
	required(cmd, "agent", "tools")
	return cmd
}
