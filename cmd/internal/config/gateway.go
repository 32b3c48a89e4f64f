package config

import (
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Gateway is a RAP gateway that runs by itself: it asks the calling runtime's user, or the approvers of a server elsewhere.
type Gateway struct {
	RAPGateway
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

func (a Reader) ReadGatewayConfig(file string) (Gateway, error) {
	cfg := Gateway{Listen: "127.0.0.1:7718", Store: "./assent-gateway.db", OnBrokenFiles: KeepLastGood,
		LogText: a.ErrTerminal}
	src, err := term.ReadFile(file, nil)
	if err != nil {
		return cfg, err
	}
	err = a.readConfig(file, src, func(r *configReader, root *yamldoc.Node) {
		known := r.rapGatewayFields(&cfg.RAPGateway)
		known["listen"], known["public_url"] = r.listen(&cfg.Listen), r.text(&cfg.PublicURL)
		known["store"], known["store_file"] = r.store(&cfg.Store), r.path(&cfg.StoreFile)
		known["watermark"] = r.watermark(&cfg.Watermark)
		known["key"], known["agents"], known["policies"] = r.path(&cfg.KeyFile), r.paths(&cfg.Agents), r.paths(&cfg.Policies)
		known["on_broken_files"] = r.oneOf(&cfg.OnBrokenFiles, KeepLastGood, DenyBroken)
		known["server"], known["server_token_file"] = r.text(&cfg.Server), r.path(&cfg.TokenFile)
		r.mapping(root, known)
		r.rapGatewayWhole(root, &cfg.RAPGateway)
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
	where, err := cfg.Location().WithDefaults()
	cfg.KeyFile, cfg.Watermark = where.KeyFile, where.Watermark
	return cfg, err
}

// Location is what the gateway opens its store with.
func (c *Gateway) Location() Store {
	return Store{Where: c.Store, KeyFile: c.KeyFile, Watermark: c.Watermark, Create: true}
}

// askersThere holds the callers to what the server elsewhere can know of them: it knows them by its tokens alone.
func (r *configReader) askersThere(root *yamldoc.Node, cfg *Gateway) {
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
