package config

import (
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
)

// ReadServeConfig reads the YAML form.
func (a Reader) ReadServeConfig(file string) (Serve, error) {
	cfg := Serve{Listen: defaultListen, Store: DefaultStore, Drain: defaultDrain, OnBrokenFiles: KeepLastGood,
		LogLevel: "info"}
	src, err := term.ReadFile(file, nil)
	if err != nil {
		return cfg, err
	}
	one := Tenant{Name: DefaultTenant, Admins: Admins{Group: defaultAdmins}}
	err = a.readConfig(file, src, func(r *configReader, root *yamldoc.Node) {
		known := r.tenantFields(&one)
		known["tenant"] = r.text(&one.Name)
		known["store"] = r.store(&cfg.Store)
		known["store_file"] = r.path(&cfg.StoreFile)
		known["listen"] = r.listen(&cfg.Listen)
		known["metrics_listen"] = r.listen(&cfg.MetricsListen)
		known["public_url"] = r.text(&cfg.PublicURL)
		known["hosts"] = r.texts(&cfg.Hosts)
		known["on_broken_files"] = r.oneOf(&cfg.OnBrokenFiles, KeepLastGood, DenyBroken)
		known["log_level"] = r.oneOf(&cfg.LogLevel, LogLevels()...)
		known["key"] = r.path(&cfg.KeyFile)
		known["watermark"] = r.watermark(&cfg.Watermark)
		known["ledger"] = func(n *yamldoc.Node) { r.mapping(n, fields{"keep_arguments": r.number(&cfg.KeepArgs)}) }
		known["witness"] = r.witness(&cfg.Witnesses)
		known["drain"] = r.duration(&cfg.Drain)
		known["dev"] = r.flag(&cfg.Dev)
		known["dev_person"] = r.text(&cfg.DevPerson)
		known["limits"] = r.limits(&cfg.Limits)
		known["tenants"] = r.list(func(n *yamldoc.Node) {
			t := Tenant{Admins: Admins{Group: defaultAdmins}}
			f := r.tenantFields(&t)
			f["name"] = r.text(&t.Name)
			if r.mapping(n, f); t.Name == "" {
				r.wrong(n, "this tenant has no name", "name", "")
			}
			cfg.Tenants = append(cfg.Tenants, t)
		})
		r.mapping(root, known)
		r.oneStore(root)
		if len(cfg.Tenants) > 0 && (one.Name != DefaultTenant || len(one.Agents) > 0 || one.People != "") {
			r.wrong(root, "the file has tenants, and a tenant beside them", "everything of a tenant below tenants", "")
		}
	})
	if len(cfg.Tenants) == 0 {
		cfg.Tenants = []Tenant{one}
	}
	return cfg, err
}

// watermark reads a path, or the word for none.
func (r *configReader) watermark(into *string) func(*yamldoc.Node) {
	read := r.text(into)
	return func(n *yamldoc.Node) {
		if read(n); *into != NoWatermark {
			*into = r.beside(*into)
		}
	}
}

// store reads a path or a URL.
func (r *configReader) store(into *string) func(*yamldoc.Node) {
	read := r.text(into)
	return func(n *yamldoc.Node) {
		if read(n); !IsURL(*into) {
			*into = r.beside(*into)
		}
	}
}

// oneStore refuses a file that says twice where the store is.
func (r *configReader) oneStore(root *yamldoc.Node) {
	if has(root, "store") && has(root, "store_file") {
		r.wrong(root, "store and store_file both say where the store is", "one of them", "")
	}
}

func (r *configReader) tenantFields(t *Tenant) fields {
	return fields{
		"agents": r.paths(&t.Agents), "policies": r.paths(&t.Policies), "people": r.path(&t.People), "rap": r.rap(&t.RAP),
		"trusted_servers": r.texts(&t.TrustedServers), "unknown_principals": r.unknownPrincipals(&t.AcceptUnknown),
		"admins": func(n *yamldoc.Node) {
			r.mapping(n, fields{"group": r.text(&t.Admins.Group), "from_sign_in": r.flag(&t.Admins.FromSignIn)})
		},
		"case_sensitive_arguments": r.targets(&t.CaseSensitive),
		"oidc": func(n *yamldoc.Node) {
			t.OIDC = &OIDC{}
			r.mapping(n, fields{
				"name": r.text(&t.OIDC.Name), "issuer": r.text(&t.OIDC.Issuer), "client_id": r.text(&t.OIDC.ClientID),
				"client_secret_file": r.path(&t.OIDC.ClientSecretFile), "scopes": r.texts(&t.OIDC.Scopes),
				"groups_claim": r.text(&t.OIDC.GroupsClaim),
			})
		},
		"notify": func(n *yamldoc.Node) {
			r.mapping(n, fields{
				"webhooks": r.list(func(n *yamldoc.Node) { t.Webhooks = append(t.Webhooks, r.webhook(n)) }),
				"slack":    func(n *yamldoc.Node) { t.Slack = r.slack(n) },
			})
		},
	}
}

// unknownPrincipals reads what a call for somebody whom the directory doesn't know takes.
func (r *configReader) unknownPrincipals(accept *bool) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		var word string
		r.text(&word)(n)
		if *accept = word == "accept"; word != "accept" && word != "one_more" {
			r.wrong(n, "this is no way to treat principals whom the directory doesn't know", "one_more or accept", "")
		}
	}
}

// targets reads names of what calls go to.
func (r *configReader) targets(into *[]string) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var name string
		if r.text(&name)(n); name == "" {
			return
		}
		if err := resolve.CheckTarget(name); err != nil {
			r.wrong(n, err.Error(), "", "")
			return
		}
		*into = append(*into, name)
	})
}

func (r *configReader) route(c *Route) fields {
	return fields{"events": r.texts(&c.Events), "agents": r.texts(&c.Agents), "groups": r.texts(&c.Groups)}
}

func (r *configReader) webhook(n *yamldoc.Node) Webhook {
	var w Webhook
	f := r.route(&w.Route)
	f["name"], f["url"], f["url_file"], f["secret_file"] = r.text(&w.Name), r.text(&w.URL), r.path(&w.URLFile), r.paths(&w.SecretFiles)
	f["loopback"], f["networks"] = r.flag(&w.Loopback), r.texts(&w.Networks)
	r.mapping(n, f)
	if w.Name == "" || (w.URL == "") == (w.URLFile == "") || len(w.SecretFiles) == 0 {
		r.wrong(n, "this webhook lacks something", "name, secret_file, and one of url and url_file", "")
	}
	return w
}

func (r *configReader) slack(n *yamldoc.Node) *Slack {
	var s Slack
	f := r.route(&s.Route)
	f["team"], f["token_file"], f["signing_secret_file"] = r.text(&s.Team), r.path(&s.TokenFile), r.path(&s.SigningSecretFile)
	f["channels"], f["arguments"] = r.table(&s.Channels), r.flag(&s.Arguments)
	f["api"], f["loopback"] = r.text(&s.API), r.flag(&s.Loopback)
	r.mapping(n, f)
	if s.Team == "" || s.TokenFile == "" || s.SigningSecretFile == "" || len(s.Channels) == 0 {
		r.wrong(n, "this lacks something", "team, token_file, signing_secret_file and channels", "")
	}
	return &s
}
