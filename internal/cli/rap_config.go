package cli

import (
	"time"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// RAPConfig is what a tenant does with RAP: tools that its agents call, and operations of its own behind approvals.
type RAPConfig struct {
	Runtimes []RAPRuntimeConfig
	Gateways []RAPGatewayConfig
}

// RAPRuntimeConfig is the runtime of one agent.
type RAPRuntimeConfig struct {
	Agent          string // id; its file decides before a call leaves
	Servers        []RAPServerConfig
	CallWithin     time.Duration // 0: as rap.RuntimeConfig
	QuestionWithin time.Duration
}

// RAPServerConfig is a registered tool server.
type RAPServerConfig struct {
	Name             string
	URL              string
	Allow            []string // further origins
	Networks         []string // private networks that its origins may resolve to
	TokenFile        string
	AnsweredBy       []string // groups that answer its questions; none: the user
	MCPServer        string
	TrustDestructive bool
}

// RAPGatewayConfig is one tool server of ours.
type RAPGatewayConfig struct {
	Name        string
	Description string
	Agent       string // id; its file decides what is asked about
	Ask         string // user, approvers or both
	Within      time.Duration
	RunWithin   time.Duration
	Session     *RAPSessionConfig // nil: users allow single calls only
	Callers     []RAPCallerConfig
	Operations  []RAPOperationConfig // HTTP/JSON endpoints
	Upstream    []RAPServerConfig    // RAP tool servers
}

// RAPSessionConfig lets users allow an operation for their session.
type RAPSessionConfig struct {
	For      time.Duration
	Uses     int
	Children bool
}

// RAPCallerConfig is a runtime that may call.
type RAPCallerConfig struct {
	Name              string
	TokenFile         string   // "": whoever connects from this machine
	Callbacks         []string // origins of its callback URLs
	Networks          []string
	CallbackTokenFile string // what we show there
	Signed            bool   // its answers carry its token too
}

// RAPOperationConfig wraps an HTTP/JSON endpoint.
type RAPOperationConfig struct {
	Name        string
	Description string
	SchemaFile  string
	URL         string
	Networks    []string
	TokenFile   string
	Destructive bool
	ReadOnly    bool
}

func (r *configReader) rap(into **RAPConfig) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		c := &RAPConfig{}
		r.mapping(n, fields{
			"runtimes": r.list(func(n *yamldoc.Node) { c.Runtimes = append(c.Runtimes, r.rapRuntime(n)) }),
			"gateways": r.list(func(n *yamldoc.Node) {
				var g RAPGatewayConfig
				f := r.rapGatewayFields(&g)
				r.mapping(n, f)
				r.rapGatewayWhole(n, &g)
				c.Gateways = append(c.Gateways, g)
			}),
		})
		*into = c
	}
}

func (r *configReader) rapRuntime(n *yamldoc.Node) (c RAPRuntimeConfig) {
	r.mapping(n, fields{
		"agent": r.text(&c.Agent), "call_within": r.duration(&c.CallWithin), "question_within": r.duration(&c.QuestionWithin),
		"servers": r.rapServers(&c.Servers),
	})
	if c.Agent == "" || len(c.Servers) == 0 {
		r.wrong(n, "this runtime lacks something", "agent and servers", "")
	}
	return c
}

func (r *configReader) rapServers(into *[]RAPServerConfig) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var s RAPServerConfig
		r.mapping(n, fields{
			"name": r.text(&s.Name), "url": r.text(&s.URL), "allow": r.texts(&s.Allow), "networks": r.texts(&s.Networks), "token_file": r.path(&s.TokenFile),
			"answered_by": r.texts(&s.AnsweredBy), "mcp_server": r.text(&s.MCPServer), "trust_destructive": r.flag(&s.TrustDestructive),
		})
		if s.Name == "" || s.URL == "" {
			r.wrong(n, "this tool server lacks something", "name and url", "")
		}
		*into = append(*into, s)
	})
}

func (r *configReader) rapGatewayFields(g *RAPGatewayConfig) fields {
	return fields{
		"name": r.text(&g.Name), "description": r.text(&g.Description), "agent": r.text(&g.Agent), "ask": r.text(&g.Ask),
		"within": r.duration(&g.Within), "run_within": r.duration(&g.RunWithin), "upstream": r.rapServers(&g.Upstream),
		"session": func(n *yamldoc.Node) {
			g.Session = &RAPSessionConfig{}
			r.mapping(n, fields{"for": r.duration(&g.Session.For), "uses": r.number(&g.Session.Uses), "children": r.flag(&g.Session.Children)})
		},
		"callers": r.list(func(n *yamldoc.Node) {
			var c RAPCallerConfig
			r.mapping(n, fields{
				"name": r.text(&c.Name), "token_file": r.path(&c.TokenFile), "callbacks": r.texts(&c.Callbacks), "networks": r.texts(&c.Networks),
				"callback_token_file": r.path(&c.CallbackTokenFile), "signed": r.flag(&c.Signed),
			})
			if c.Name == "" || len(c.Callbacks) == 0 {
				r.wrong(n, "this caller lacks something", "name and callbacks, the origins of its callback URLs", "")
			}
			g.Callers = append(g.Callers, c)
		}),
		"operations": r.list(func(n *yamldoc.Node) {
			var o RAPOperationConfig
			r.mapping(n, fields{
				"name": r.text(&o.Name), "description": r.text(&o.Description), "schema": r.path(&o.SchemaFile), "url": r.text(&o.URL),
				"networks": r.texts(&o.Networks), "token_file": r.path(&o.TokenFile), "destructive": r.flag(&o.Destructive), "read_only": r.flag(&o.ReadOnly),
			})
			if o.Name == "" || o.Description == "" || o.SchemaFile == "" || o.URL == "" {
				r.wrong(n, "this operation lacks something", "name, description, schema and url", "")
			}
			g.Operations = append(g.Operations, o)
		}),
	}
}

// rapGatewayWhole refuses a gateway that could not work.
func (r *configReader) rapGatewayWhole(n *yamldoc.Node, g *RAPGatewayConfig) {
	if g.Name == "" || g.Agent == "" || len(g.Callers) == 0 || len(g.Operations)+len(g.Upstream) == 0 {
		r.wrong(n, "this gateway lacks something", "name, agent, callers, and operations or upstream", "")
	}
	switch g.Ask {
	case "":
		g.Ask = "user"
	case "user", "approvers", "both":
	default:
		r.wrong(n, "ask is "+g.Ask, "user, approvers or both", "")
	}
}
