package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/rap/peer"
)

// RAP is a tenant's RAP configuration: tools that its agents call, and operations of its own that
// need approval.
type RAP struct {
	Runtimes []RAPRuntime `doc:"runtimes"`
	Gateways []RAPGateway `doc:"gateways"`
}

// RAPRuntime is the runtime of one agent.
type RAPRuntime struct {
	Agent          string        `doc:"agent"` // id; its file decides before a call leaves
	Servers        []RAPServer   `doc:"servers"`
	CallWithin     time.Duration `doc:"call_within"` // 0: as rap.RuntimeConfig
	QuestionWithin time.Duration `doc:"question_within"`
	// Server is the URL of an assent server whose people are asked. If it is empty, the people of
	// this server are. The other server identifies callers only by its tokens.
	Server string     `doc:"server"`
	Askers []RAPAsker `doc:"askers"`
}

// RAPAsker pairs a token of this server with the token to use at the server whose people are asked.
type RAPAsker struct {
	Token           string `doc:"token"`             // its name here
	ServerTokenFile string `doc:"server_token_file"` // scope request
}

// checkRuntime reports a runtime that has no one to ask.
func checkRuntime(d *document.Decoder, n *yamldoc.Node, r *RAPRuntime) {
	switch {
	case r.Server != "" && len(r.Askers) == 0:
		d.Wrong(n, "this runtime has a server, and nobody could ask there", "askers: the tokens here that call", "")
	case r.Server == "" && len(r.Askers) > 0:
		d.Wrong(n, "askers have tokens of a server, and there is none", "server, or no askers", "")
	}
}

// RAPServer is a registered tool server.
type RAPServer struct {
	Name             string   `doc:"name"`
	URL              string   `doc:"url"`
	Allow            []string `doc:"allow"`    // further origins
	Networks         []string `doc:"networks"` // private networks that its origins may resolve to
	TokenFile        string   `doc:"token_file"`
	AnsweredBy       []string `doc:"answered_by"` // groups that answer its questions; none: the user
	MCPServer        string   `doc:"mcp_server"`
	TrustDestructive bool     `doc:"trust_destructive"`
}

// RAPGateway is one tool server of ours.
type RAPGateway struct {
	Name        string `doc:"name"`
	Description string `doc:"description"`
	Agent       string `doc:"agent"`      // id; its file decides what is asked about
	MCPServer   string `doc:"mcp_server"` // "": its operations are local tools of the agent's file
	// Ask is user, approvers or both. If it is empty, it is approvers if there are any, and
	// otherwise user.
	Ask                string         `doc:"ask"`
	Within             time.Duration  `doc:"within"`
	RunWithin          time.Duration  `doc:"run_within"`
	SubscriptionWithin time.Duration  `doc:"subscription_within"`
	Session            *RAPSession    `doc:"session"` // nil: users allow single calls only
	Callers            []RAPCaller    `doc:"callers"`
	Operations         []RAPOperation `doc:"operations"` // HTTP/JSON endpoints
	Upstream           []RAPServer    `doc:"upstream"`   // RAP tool servers
}

// RAPSession lets users allow an operation for their session.
type RAPSession struct {
	For      time.Duration `doc:"for"`
	Uses     int           `doc:"uses"`
	Children bool          `doc:"children"`
}

// RAPCaller is a runtime that may call.
type RAPCaller struct {
	Name      string `doc:"name"`
	Person    string `doc:"person"`     // whose runtime it is; may be empty
	TokenFile string `doc:"token_file"` // empty: any program on this machine
	// its token at the server whose approvers are asked; "": that of
	// the gateway
	ServerTokenFile   string   `doc:"server_token_file"`
	Callbacks         []string `doc:"callbacks"` // origins of its callback URLs
	AnyPort           []string // the same, on this machine and at any port
	Networks          []string `doc:"networks"`
	CallbackTokenFile string   `doc:"callback_token_file"` // what we show there
	Signed            bool     `doc:"signed"`              // its answers carry its token too
}

// RAPOperation wraps an HTTP/JSON endpoint.
type RAPOperation struct {
	Name        string   `doc:"name"`
	Description string   `doc:"description"`
	SchemaFile  string   `doc:"schema"`
	URL         string   `doc:"url"`
	Networks    []string `doc:"networks"`
	TokenFile   string   `doc:"token_file"`
	Destructive bool     `doc:"destructive"`
	ReadOnly    bool     `doc:"read_only"`
}

// checkServed looks at a gateway of a service.
func checkServed(d *document.Decoder, n *yamldoc.Node, g *RAPGateway) {
	checkGateway(d, n, g)
	if slices.ContainsFunc(g.Callers, func(c RAPCaller) bool { return c.ServerTokenFile != "" }) {
		d.Wrong(n, "a caller has a server_token_file, and the approvers are those of this server",
			"no server_token_file; person says whose runtime it is", "")
	}
}

// checkGateway reports a gateway that could not work.
func checkGateway(d *document.Decoder, n *yamldoc.Node, g *RAPGateway) {
	if n.Get("operations") == nil && n.Get("upstream") == nil {
		d.Wrong(n, "this gateway has nothing to offer", "operations or upstream", "")
	}
	nobody := func(c RAPCaller) bool { return c.TokenFile == "" }
	if i := slices.IndexFunc(g.Callers, nobody); i >= 0 {
		if j := slices.IndexFunc(g.Callers[i+1:], nobody); j >= 0 {
			d.Wrong(
				callerAt(n, i+1+j),
				"another caller has no token either, so nobody could tell them apart",
				"token_file",
				"",
			)
		}
	}
}

// callerAt returns the node of one caller of a gateway. A single caller may be written without a
// list.
func callerAt(gateway *yamldoc.Node, i int) *yamldoc.Node {
	callers := gateway.Get("callers")
	if i < len(callers.Items) {
		return callers.Items[i]
	}

	return callers
}

// checkCaller separates origins at any port of this machine from origins with a port.
func checkCaller(d *document.Decoder, n *yamldoc.Node, c *RAPCaller) {
	if c.Signed && c.TokenFile == "" {
		d.Wrong(n, "signed without a token that answers could carry", "token_file, or no signed", "")
	}
	var callbacks []string
	for _, origin := range c.Callbacks {
		local, anyPort := strings.CutSuffix(origin, ":*")
		switch {
		case anyPort:
			c.AnyPort = append(c.AnyPort, local)
		case c.TokenFile == "" && peer.LocalWithoutPort(origin):
			// A program on this machine: where its address names no
			// port, it listens at another one each time.
			c.AnyPort = append(c.AnyPort, origin)
		default:
			callbacks = append(callbacks, origin)
		}
	}

	c.Callbacks = callbacks
	if c.TokenFile != "" && len(c.AnyPort) > 0 {
		d.Wrong(n, "any port of this machine, for a caller with a token, which may be anywhere",
			"the port of its callbacks, or no token_file", "")
	}
}

// everywhere returns networks that contain every address. Whether an address is allowed is checked
// at the start, because networks are in another field.
func everywhere() []netip.Prefix {
	return []netip.Prefix{
		netip.PrefixFrom(netip.IPv4Unspecified(), 0),
		netip.PrefixFrom(netip.IPv6Unspecified(), 0),
	}
}
