package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/rap/peer"
)

// RAP is what a tenant does with RAP: tools that its agents call, and operations of its own behind approvals.
type RAP struct {
	Runtimes []RAPRuntime
	Gateways []RAPGateway
}

// RAPRuntime is the runtime of one agent.
type RAPRuntime struct {
	Agent          string // id; its file decides before a call leaves
	Servers        []RAPServer
	CallWithin     time.Duration // 0: as rap.RuntimeConfig
	QuestionWithin time.Duration
}

// RAPServer is a registered tool server.
type RAPServer struct {
	Name             string
	URL              string
	Allow            []string // further origins
	Networks         []string // private networks that its origins may resolve to
	TokenFile        string
	AnsweredBy       []string // groups that answer its questions; none: the user
	MCPServer        string
	TrustDestructive bool
}

// RAPGateway is one tool server of ours.
type RAPGateway struct {
	Name               string
	Description        string
	Agent              string // id; its file decides what is asked about
	MCPServer          string // "": its operations are local tools of the agent's file
	Ask                string // user, approvers or both; "": approvers where there are some, else user
	Within             time.Duration
	RunWithin          time.Duration
	SubscriptionWithin time.Duration
	Session            *RAPSession // nil: users allow single calls only
	Callers            []RAPCaller
	Operations         []RAPOperation // HTTP/JSON endpoints
	Upstream           []RAPServer    // RAP tool servers
}

// RAPSession lets users allow an operation for their session.
type RAPSession struct {
	For      time.Duration
	Uses     int
	Children bool
}

// RAPCaller is a runtime that may call.
type RAPCaller struct {
	Name              string
	Person            string   // whose runtime it is; "": nobody's
	TokenFile         string   // "": whoever connects from this machine
	ServerTokenFile   string   // its token at the server whose approvers are asked; "": that of the gateway
	Callbacks         []string // origins of its callback URLs
	AnyPort           []string // the same, on this machine and at any port
	Networks          []string
	CallbackTokenFile string // what we show there
	Signed            bool   // its answers carry its token too
}

// RAPOperation wraps an HTTP/JSON endpoint.
type RAPOperation struct {
	Name        string
	Description string
	SchemaFile  string
	URL         string
	Networks    []string
	TokenFile   string
	Destructive bool
	ReadOnly    bool
}

func (r *configReader) rap(into **RAP) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		c := &RAP{}
		r.mapping(n, fields{
			"runtimes": r.list(func(n *yamldoc.Node) {
				next := r.rapRuntime(n)
				r.twice(n, "runtime of agent", next.Agent, slices.ContainsFunc(c.Runtimes, func(x RAPRuntime) bool { return x.Agent == next.Agent }))
				c.Runtimes = append(c.Runtimes, next)
			}),
			"gateways": r.list(func(n *yamldoc.Node) {
				var g RAPGateway
				f := r.rapGatewayFields(&g)
				r.mapping(n, f)
				r.rapGatewayWhole(n, &g)
				if slices.ContainsFunc(g.Callers, func(c RAPCaller) bool { return c.ServerTokenFile != "" }) {
					r.wrong(n, "a caller has a server_token_file, and the approvers are those of this server", "no server_token_file; person says whose runtime it is", "")
				}
				r.twice(n, "gateway", g.Name, slices.ContainsFunc(c.Gateways, func(x RAPGateway) bool { return x.Name == g.Name }))
				c.Gateways = append(c.Gateways, g)
			}),
		})
		*into = c
	}
}

func (r *configReader) rapRuntime(n *yamldoc.Node) (c RAPRuntime) {
	r.mapping(n, fields{
		"agent": r.text(&c.Agent), "call_within": r.duration(&c.CallWithin), "question_within": r.duration(&c.QuestionWithin),
		"servers": r.rapServers(&c.Servers),
	})
	r.lacks(n, "this runtime", "agent, and servers with a name and a url each", "agent", "servers")
	return c
}

func (r *configReader) rapServers(into *[]RAPServer) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var s RAPServer
		r.mapping(n, fields{
			"name": r.text(&s.Name), "url": r.address(&s.URL), "allow": r.origins(&s.Allow), "networks": r.networks(&s.Networks), "token_file": r.path(&s.TokenFile),
			"answered_by": r.texts(&s.AnsweredBy), "mcp_server": r.text(&s.MCPServer), "trust_destructive": r.flag(&s.TrustDestructive),
		})
		r.lacks(n, "this tool server", "name, how people know it, and url, its base URL", "name", "url")
		r.twice(n, "tool server", s.Name, slices.ContainsFunc(*into, func(x RAPServer) bool { return x.Name == s.Name }))
		*into = append(*into, s)
	})
}

func (r *configReader) rapGatewayFields(g *RAPGateway) fields {
	return fields{
		"name": r.text(&g.Name), "description": r.text(&g.Description), "agent": r.text(&g.Agent), "ask": r.ask(&g.Ask), "mcp_server": r.text(&g.MCPServer),
		"within": r.duration(&g.Within), "run_within": r.duration(&g.RunWithin), "subscription_within": r.duration(&g.SubscriptionWithin),
		"upstream": r.rapServers(&g.Upstream),
		"session": func(n *yamldoc.Node) {
			g.Session = &RAPSession{}
			r.mapping(n, fields{"for": r.duration(&g.Session.For), "uses": r.number(&g.Session.Uses), "children": r.flag(&g.Session.Children)})
		},
		"callers":    r.list(func(n *yamldoc.Node) { r.rapCaller(n, g) }),
		"operations": r.list(func(n *yamldoc.Node) { r.rapOperation(n, g) }),
	}
}

func (r *configReader) rapCaller(n *yamldoc.Node, g *RAPGateway) {
	var c RAPCaller
	r.mapping(n, fields{
		"name": r.text(&c.Name), "person": r.text(&c.Person), "token_file": r.path(&c.TokenFile), "server_token_file": r.path(&c.ServerTokenFile),
		"callbacks": r.callbacks(&c), "networks": r.networks(&c.Networks), "callback_token_file": r.path(&c.CallbackTokenFile), "signed": r.flag(&c.Signed),
	})
	if r.lacks(n, "this caller", "name, and callbacks, the origins of its callback URLs", "name", "callbacks"); c.Signed && c.TokenFile == "" {
		r.wrong(n, "signed without a token that answers could carry", "token_file, or no signed", "")
	}
	if c.TokenFile == "" { // a program on this machine: where its address names no port, it listens at another one each time
		c.AnyPort = append(c.AnyPort, slices.DeleteFunc(slices.Clone(c.Callbacks), func(o string) bool { return !peer.LocalWithoutPort(o) })...)
		c.Callbacks = slices.DeleteFunc(c.Callbacks, peer.LocalWithoutPort)
	} else if len(c.AnyPort) > 0 {
		r.wrong(n, "any port of this machine, for a caller with a token, which may be anywhere", "the port of its callbacks, or no token_file", "")
	}
	r.twice(n, "caller", c.Name, slices.ContainsFunc(g.Callers, func(x RAPCaller) bool { return x.Name == c.Name }))
	if c.TokenFile == "" && slices.ContainsFunc(g.Callers, func(x RAPCaller) bool { return x.TokenFile == "" }) {
		r.wrong(n, "another caller has no token either, so nobody could tell them apart", "token_file", "")
	}
	g.Callers = append(g.Callers, c)
}

func (r *configReader) rapOperation(n *yamldoc.Node, g *RAPGateway) {
	var o RAPOperation
	r.mapping(n, fields{
		"name": r.text(&o.Name), "description": r.text(&o.Description), "schema": r.path(&o.SchemaFile), "url": r.address(&o.URL),
		"networks": r.networks(&o.Networks), "token_file": r.path(&o.TokenFile), "destructive": r.flag(&o.Destructive), "read_only": r.flag(&o.ReadOnly),
	})
	r.lacks(n, "this operation", "name, description, schema, a file, and url", "name", "description", "schema", "url")
	r.twice(n, "operation", o.Name, slices.ContainsFunc(g.Operations, func(x RAPOperation) bool { return x.Name == o.Name }))
	g.Operations = append(g.Operations, o)
}

// rapGatewayWhole refuses a gateway that could not work.
func (r *configReader) rapGatewayWhole(n *yamldoc.Node, g *RAPGateway) {
	r.lacks(n, "this gateway", "name, agent, the id of one in agents, and callers, the runtimes that may call", "name", "agent", "callers")
	if n.Kind == yamldoc.Mapping && !has(n, "operations") && !has(n, "upstream") {
		r.wrong(n, "this gateway has nothing to offer", "operations or upstream", "")
	}
}

// lacks names the fields of a mapping that are not there. Those that are there and wrong were named where they stand.
func (r *configReader) lacks(n *yamldoc.Node, what, expected string, names ...string) {
	if names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return has(n, name) }); len(names) > 0 && (n.Kind == yamldoc.Mapping || n.Kind == yamldoc.Null) {
		r.wrong(n, what+" lacks "+strings.Join(names, " and "), expected, "")
	}
}

func has(n *yamldoc.Node, name string) bool {
	return slices.ContainsFunc(n.Fields, func(f yamldoc.Field) bool { return f.Key.Text == name })
}

func (r *configReader) twice(n *yamldoc.Node, what, name string, known bool) {
	if known && name != "" {
		r.wrong(n, fmt.Sprintf("another %s is called %q", what, name), "a name of its own", "")
	}
}

func (r *configReader) ask(into *string) func(*yamldoc.Node) {
	read := r.text(into)
	return func(n *yamldoc.Node) {
		if read(n); n.Kind == yamldoc.String && !slices.Contains([]string{"user", "approvers", "both"}, *into) {
			r.wrong(n, fmt.Sprintf("nobody is called %q here", *into), "user, approvers or both", diag.Nearest(*into, []string{"user", "approvers", "both"}))
			*into = ""
		}
	}
}

// address reads a URL that package peer would reach. It never repeats one: paths and queries may hold secrets.
func (r *configReader) address(into *string) func(*yamldoc.Node) {
	read := r.text(into)
	return func(n *yamldoc.Node) {
		if read(n); n.Kind != yamldoc.String || n.Text == "" {
			return
		}
		if _, err := peer.New(peer.Config{URL: n.Text, Networks: everywhere()}); err != nil {
			r.wrong(n, "this is no address that could be called", "https://HOST/PATH without user and password; http only of this machine", "")
		}
	}
}

// origins reads what package peer takes for origins.
func (r *configReader) origins(into *[]string) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var text string
		if r.text(&text)(n); text == "" {
			return
		}
		if _, err := peer.New(peer.Config{Allow: []string{text}, Networks: everywhere()}); err != nil {
			r.wrong(n, "this is no origin that could be reached", "https://HOST or https://HOST:PORT, without a path; http only of this machine", "")
		}
		*into = append(*into, text)
	})
}

// callbacks reads origins, and origins of this machine at any port: http://127.0.0.1:*.
func (r *configReader) callbacks(c *RAPCaller) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		origin, anyPort := strings.CutSuffix(n.Text, ":*")
		switch {
		case n.Kind != yamldoc.String || !anyPort:
			r.origins(&c.Callbacks)(n)
		case !peer.LocalWithoutPort(origin):
			r.wrong(n, "any port is for addresses of this machine alone", "http://127.0.0.1:*, or an origin with its port", "")
		default:
			c.AnyPort = append(c.AnyPort, origin)
		}
	})
}

// everywhere leaves it to the start whether an address is in networks, which stand in a field of their own.
func everywhere() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
}

func (r *configReader) networks(into *[]string) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		if _, err := netip.ParsePrefix(n.Text); n.Kind != yamldoc.String || err != nil {
			r.wrong(n, "this is no network", "one such as 10.1.0.0/16", "")
			return
		}
		*into = append(*into, n.Text)
	})
}
