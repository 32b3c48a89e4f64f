package config

import (
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Gateway is a RAP gateway that runs by itself: it asks the calling
// runtime's user, or the approvers of a server elsewhere.
type Gateway struct {
	RAPGateway
	Listen    string   `doc:"listen"`
	PublicURL string   `doc:"public_url"` // how runtimes reach it; "" means http:// and the address
	Store     string   `doc:"store"`
	StoreFile string   `doc:"store_file"` // file that holds Store
	KeyFile   string   `doc:"key"`        // "" means assent.key next to a store that is a file
	Watermark string   `doc:"watermark"`  // file; "" means one next to the key, NoWatermark none
	Agents    []string `doc:"agents"`
	Policies  []string `doc:"policies"`
	// Decisions is the file of the decision configuration, as that of
	// Tenant; what it says is in Chosen.
	Decisions string `doc:"decisions"`
	Chosen    *term.Decisions
	// OnBrokenFiles is KeepLastGood or DenyBroken.
	OnBrokenFiles string `doc:"on_broken_files"`
	Server        string `doc:"server"` // URL of the assent server whose approvers are asked; "" none
	// for it; scope request. It is that of the one caller that has none
	// of its own
	TokenFile string `doc:"server_token_file"`
	LogText   bool
	Strict    bool // as Serve.Strict
}

// Gateway reads the file of `assent rap gateway`; its flags take precedence.
func (a Reader) Gateway(file string, flags *Flags) (Gateway, error) {
	cfg := Gateway{LogText: a.ErrTerminal}
	if err := a.read(file, "gateway_file", &cfg); err != nil {
		return cfg, err
	}
	if err := flags.Put(&cfg); err != nil {
		return cfg, err
	}
	err := a.decisions(cfg.Decisions, &cfg.Chosen, map[string]bool{"policies": len(cfg.Policies) > 0})
	if err != nil {
		return cfg, err
	}
	if cfg.Store, err = a.whereStore(cfg.Store, cfg.StoreFile, true); err != nil {
		return cfg, err
	}
	where, err := cfg.Location().WithDefaults()
	cfg.KeyFile, cfg.Watermark = where.KeyFile, where.Watermark
	return cfg, err
}

// Location returns the store that the gateway opens.
func (c *Gateway) Location() Store {
	return Store{Where: c.Store, KeyFile: c.KeyFile, Watermark: c.Watermark, Create: true}
}

// checkGatewayFile reports a configuration with which a standalone gateway could not work.
func checkGatewayFile(d *document.Decoder, n *yamldoc.Node, cfg *Gateway) {
	checkGateway(d, n, &cfg.RAPGateway)
	oneStore(d, n)
	switch {
	case n.Get("agents") == nil:
		d.Wrong(n, "this gateway lacks agents", "agents: the directory of the agent's file", "")
	case cfg.TokenFile != "" && cfg.Server == "":
		d.Wrong(
			n,
			"server_token_file is a token of a server, and there is none",
			"server, or no server_token_file",
			"",
		)
	case (cfg.Ask == "approvers" || cfg.Ask == "both") && cfg.Server == "":
		d.Wrong(n, "ask is "+cfg.Ask+", and there are no approvers to ask",
			"server and server_token_file: an assent server, and a token of it with the scope request", "")
	}

	checkAskers(d, n, cfg)
}

// checkAskers reports callers whose settings the server with the approvers could not use: it
// identifies callers only by its tokens.
func checkAskers(d *document.Decoder, root *yamldoc.Node, cfg *Gateway) {
	own, shared := 0, 0
	for _, c := range cfg.Callers {
		switch {
		case cfg.Server != "" && c.Person != "":
			d.Wrong(root, "person of the caller "+c.Name+" can't be told to the server whose approvers are asked",
				"no person, and a server_token_file that was made there for that person", "")
		case c.ServerTokenFile != "":
			own++
		default:
			shared++
		}
	}

	switch {
	case cfg.Server != "" && shared > 0 && cfg.TokenFile == "":
		d.Wrong(
			root,
			"this gateway has a server and no token of it",
			"server_token_file, here or in each caller",
			"",
		)
	case cfg.Server == "" && own > 0:
		d.Wrong(
			root,
			"a caller has a server_token_file, and there is no server",
			"server, or no server_token_file",
			"",
		)
	case cfg.Server != "" && shared > 1:
		d.Wrong(
			root,
			"several callers would ask by one token, so that what is allowed to one is allowed to all",
			"server_token_file in each caller, a token of its own",
			"",
		)
	}
}
