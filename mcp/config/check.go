package config

import (
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
)

func decoder(dir string) *document.Decoder {
	return &document.Decoder{
		Rule:    rule,
		Formats: formats(dir),
		Checks: map[string]document.Check{
			"gateway":  check(checkGateway),
			"served":   check(checkServed),
			"upstream": check(checkUpstream),
			"issuer":   check(checkIssuer),
			"client":   check(checkClient),
			"sign_in":  check(checkSignIn),
		},
	}
}

func check[T any](look func(*document.Decoder, *yamldoc.Node, *T)) document.Check {
	return func(d *document.Decoder, n *yamldoc.Node, object any) { look(d, n, object.(*T)) }
}

// checkGateway refuses a gateway that could not work, or whose questions could not be answered.
func checkGateway(d *document.Decoder, n *yamldoc.Node, g *Gateway) {
	for _, pair := range [][2]string{{"store", "store_file"}, {"policies", "decisions"}} {
		if n.Get(pair[0]) != nil && n.Get(pair[1]) != nil {
			d.Wrong(n.Field(pair[1]).Key, pair[0]+" and "+pair[1]+" say the same", "one of them", "")
		}
	}

	checkServer(d, n, g)
	checkCallers(d, n, g)
	checkOAuth(d, n, g)
	checkAsk(d, n, g)
	checkWorks(d, n, &g.Works)
}

// checkServed refuses what a gateway inside a service could not work
// with.
func checkServed(d *document.Decoder, n *yamldoc.Node, g *Served) {
	checkWorks(d, n, &g.Works)
	upstream := n.Get("upstream")
	for i := range g.Upstream {
		at := upstream
		if upstream.Kind == yamldoc.Sequence {
			at = upstream.Items[i]
		}
		if g.Upstream[i].SignIn != nil {
			d.Wrong(at.Field("sign_in").Key, "all callers would act as the person who signed in", "token_file or oauth", "")
		}
	}
	if g.InPlace && !g.AsksUser() {
		d.Wrong(
			n.Get("in_place"),
			"in_place is about users, and they are not asked",
			"ask: user or both, or no in_place",
			"",
		)
	}
}

// checkWorks checks the servers of a gateway.
func checkWorks(d *document.Decoder, n *yamldoc.Node, w *Works) {
	knows := func(u Upstream) bool { return u.Alias == w.Resources }
	if w.Resources != "" && !slices.ContainsFunc(w.Upstream, knows) {
		d.Wrong(n.Get("resources"), "no server has this alias", "one of upstream", "")
	}
	if upstream := n.Get("upstream"); upstream != nil && len(w.Upstream) == 0 {
		d.Wrong(upstream, "there is no server", "at least one, with alias and command or url", "")
	}
}

// checkServer refuses fields that don't fit a gateway with a service, or one without.
func checkServer(d *document.Decoder, n *yamldoc.Node, g *Gateway) {
	own := slices.ContainsFunc(g.Callers, func(c Caller) bool { return c.ServerTokenFile != "" })
	switch {
	case g.Server == "" && (g.ServerTokenFile != "" || own):
		d.Wrong(
			n,
			"server_token_file is a token of a server, and there is none",
			"server, or no server_token_file",
			"",
		)
	case g.Server != "" && g.ServerTokenFile == "" && !own:
		d.Wrong(
			n,
			"this gateway has a server and no token of it",
			"server_token_file, here or in each caller",
			"",
		)
	case g.Server == "" && n.Get("offline") != nil:
		d.Wrong(
			n.Field("offline").Key,
			"offline is about a server, and there is none",
			"server, or no offline",
			"",
		)
	case g.Server != "" && n.Get("people") != nil:
		d.Wrong(
			n.Field("people").Key,
			"the people of a server answer, who are known there",
			"no people, or no server",
			"",
		)
	}
}

// checkCallers refuses callers that could not be distinguished.
func checkCallers(d *document.Decoder, n *yamldoc.Node, g *Gateway) {
	nobody := func(c Caller) bool { return c.TokenFile == "" && c.Subject == "" }
	count := 0
	for _, c := range g.Callers {
		if nobody(c) {
			count++
		}
	}

	switch {
	case count > 1:
		d.Wrong(
			n.Get("callers"),
			"several callers have no token, so nobody could tell them apart",
			"token_file, or subject",
			"",
		)
	case g.Listen != "" && len(g.Callers) == 0:
		d.Wrong(
			n,
			"this gateway listens, and nobody may call",
			"callers, each with a token_file or a subject",
			"",
		)
	case g.Listen == "" && len(g.Callers) > 1:
		d.Wrong(
			n.Get("callers"),
			"on its standard streams a gateway has one caller",
			"one caller, or listen",
			"",
		)
	}
}

// checkAsk refuses to ask users if callers don't name a person.
func checkAsk(d *document.Decoder, n *yamldoc.Node, g *Gateway) {
	named := func(c Caller) bool { return c.Person != "" }
	everybody := len(g.Callers) > 0 && !slices.ContainsFunc(g.Callers, func(c Caller) bool { return !named(c) })
	switch {
	case !g.AsksUser():
		if slices.ContainsFunc(g.Callers, func(c Caller) bool { return c.InPlace }) {
			d.Wrong(
				n.Get("callers"),
				"in_place is about users, and they are not asked",
				"ask: user or both, or no in_place",
				"",
			)
		}
	case g.Server != "":
		d.Wrong(
			n.Get("ask"),
			"the users of clients are asked by a gateway without a server",
			"ask: approvers, or no server",
			"",
		)
	case g.People != "" && !everybody:
		d.Wrong(n.Get("ask"), "nobody knows whom to ask: a caller has no person", "person in each caller", "")
	}
}

// checkUpstream refuses a server that is neither a program nor an
// address, or has fields of the other.
func checkUpstream(d *document.Decoder, n *yamldoc.Node, u *Upstream) {
	program := []string{"args", "cwd", "env", "env_file", "env_from", "dotenv_file", "pin_binary"}
	remote := []string{"networks", "token_file", "token_env", "oauth", "sign_in", "header_files", "header_env"}
	given := func(name string) bool { return n.Get(name) != nil }
	switch {
	case given("command") == given("url"):
		d.Wrong(n, "a server is either a program or an address", "command or url, one of them", "")
	case given("command"):
		refuse(d, n, remote, "url", "command")
	default:
		refuse(d, n, program, "command", "url")
	}

	refuseSecond(d, n, "token_file", "token_env", "oauth", "sign_in")
	checkVariables(d, n, u)
	for _, f := range fields(n.Get("fill_in")) {
		if f.Key.Text == "" {
			d.Wrong(f.Key, "nothing can be replaced", "a text, such as ${workspaceFolder}", "")
		}
	}
	checkHeaders(d, n, u)
}

func refuse(d *document.Decoder, n *yamldoc.Node, names []string, of, has string) {
	for _, name := range names {
		if f := n.Field(name); f != nil {
			d.Wrong(f.Key, name+" belongs to a server with "+of+", and this one has "+has, "no "+name, "")
		}
	}
}

// refuseSecond refuses a field if an earlier one of the names already sets the same thing.
func refuseSecond(d *document.Decoder, n *yamldoc.Node, names ...string) {
	first := ""
	for _, name := range names {
		f := n.Field(name)
		switch {
		case f == nil:
		case first == "":
			first = name
		default:
			d.Wrong(f.Key, first+" and "+name+" say the same", "one of them", "")
		}
	}
}

// checkVariables checks the names of variables, each of which may be given once. env_file is read
// only at the start.
func checkVariables(d *document.Decoder, n *yamldoc.Node, u *Upstream) {
	for _, field := range []string{"env", "env_from"} {
		for _, f := range fields(n.Get(field)) {
			if !IsVariable(f.Key.Text) {
				d.Wrong(f.Key, "this is no name of a variable", "letters, digits and _, such as API_KEY", "")
			}

			if _, twice := u.Env[f.Key.Text]; twice && field == "env_from" {
				d.Wrong(f.Key, f.Key.Text+" stands in env too", "one of them", "")
			}
		}
	}
}

// checkHeaders refuses headers that the gateway sets itself, and headers that are given twice.
func checkHeaders(d *document.Decoder, n *yamldoc.Node, u *Upstream) {
	seen := map[string]bool{}
	for _, field := range []string{"header_files", "header_env"} {
		for _, f := range fields(n.Get(field)) {
			name := textproto.CanonicalMIMEHeaderKey(f.Key.Text)
			switch {
			case !header().MatchString(f.Key.Text):
				d.Wrong(f.Key, "this is no name of a header", "one such as X-Api-Key", "")
			case IsOurHeader(name):
				d.Wrong(f.Key, "the gateway sets "+name+" itself", "another header", "")
			case seen[name]:
				d.Wrong(f.Key, "the header "+name+" is given twice", "one of them", "")
			case name == "Authorization" && (u.TokenFile+u.TokenEnv != "" || u.OAuth != nil || u.SignIn != nil):
				d.Wrong(f.Key, "the token goes into Authorization", "token_file or this header", "")
			}

			seen[name] = true
		}
	}
}

func fields(n *yamldoc.Node) []yamldoc.Field {
	if n == nil || n.Kind != yamldoc.Mapping {
		return nil
	}

	return n.Fields
}

// IsOurHeader reports whether the gateway itself sets a header, from the body or for the
// connection, so that the configuration may not set it.
func IsOurHeader(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	own := strings.Fields(
		"Accept Accept-Encoding Connection Content-Encoding Content-Length Content-Type Host " +
			"Last-Event-Id Te Trailer Transfer-Encoding Upgrade",
	)

	return slices.Contains(own, name) || strings.HasPrefix(name, "Mcp-")
}

// Variables returns the sorted names of all variables that an upstream gets in addition to Passed.
// Those of env_file are missing, because that file is read only at the start.
func (u *Upstream) Variables() []string {
	names := slices.Concat(slices.Collect(maps.Keys(u.Env)), slices.Collect(maps.Keys(u.EnvFrom)))
	slices.Sort(names)

	return slices.Compact(names)
}
