package config

import (
	"slices"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// checkOAuth checks that callers and issuers fit together.
func checkOAuth(d *document.Decoder, n *yamldoc.Node, g *Gateway) {
	section := n.Field("oauth")
	subject := func(c Caller) bool { return c.Subject != "" }
	switch {
	case section == nil:
	case g.Listen == "":
		d.Wrong(section.Key, "nobody shows a token on the standard streams", "listen, or no oauth", "")
	case g.OAuth != nil && !slices.ContainsFunc(g.Callers, subject):
		d.Wrong(section.Key, "no caller has a subject, so no token opens anything", "a caller with subject", "")
	}

	seen := map[[2]string]bool{}
	for i, c := range g.Callers {
		at := callerAt(n, i)
		if c.Subject == "" && c.Issuer == "" || at == nil {
			continue
		}
		if problem, expected := g.wrongCaller(c); problem != "" {
			d.Wrong(at, problem, expected, "")
			continue
		}
		key := [2]string{g.IssuerOf(c), c.Subject}
		if seen[key] {
			d.Wrong(at, "another caller has this subject", "a subject of its own", "")
		}
		seen[key] = true
	}
}

// callerAt returns the node of a caller. A single caller may be written without a list.
func callerAt(n *yamldoc.Node, i int) *yamldoc.Node {
	all := n.Get("callers")
	switch {
	case all == nil || all.Kind != yamldoc.Sequence:
		return all
	case i < len(all.Items):
		return all.Items[i]
	}

	return nil
}

// wrongCaller returns what is wrong with a caller's subject and issuer.
func (g *Gateway) wrongCaller(c Caller) (problem, expected string) {
	named := func(i Issuer) bool { return i.Issuer == c.Issuer }
	switch {
	case g.OAuth == nil:
		return "there is no issuer whose tokens could be about a subject", "oauth, or no subject and issuer"
	case c.Subject == "":
		return "an issuer says nothing without a subject", "subject"
	case c.Issuer == "" && len(g.OAuth.Issuers) > 1:
		return "there are several issuers, and nobody knows whose subject this is", "issuer"
	case c.Issuer != "" && !slices.ContainsFunc(g.OAuth.Issuers, named):
		return "no issuer is called so", "one of oauth.issuers, exactly as it stands there"
	}

	return "", ""
}

// IssuerOf returns the issuer of a caller's subject.
func (g *Gateway) IssuerOf(c Caller) string {
	if c.Issuer == "" && g.OAuth != nil && len(g.OAuth.Issuers) == 1 {
		return g.OAuth.Issuers[0].Issuer
	}

	return c.Issuer
}

func checkIssuer(d *document.Decoder, n *yamldoc.Node, _ *Issuer) {
	refuseSecond(d, n, "jwks_url", "jwks_file")
}

func checkSignIn(d *document.Decoder, n *yamldoc.Node, s *SignIn) {
	for _, name := range []string{"client_secret_file", "redirect_port"} {
		if f := n.Field(name); f != nil && s.ID == "" {
			d.Wrong(f.Key, name+" belongs to a client that was registered by hand", "client_id, or no "+name, "")
		}
	}
	if f := n.Field("client_secret_file"); f != nil && s.ID != "" && s.Issuer == "" {
		d.Wrong(f.Key, "the secret would be sent to any issuer that the server names", "issuer", "")
	}
	if port := n.Get("redirect_port"); port != nil && (s.RedirectPort < 1 || s.RedirectPort > 65535) {
		d.Wrong(port, "this is no port", "a number from 1 to 65535", "")
	}
}

func checkClient(d *document.Decoder, n *yamldoc.Node, c *Client) {
	if (c.TokenURL == "") == (c.Issuer == "") {
		d.Wrong(n, "tokens are issued at one address", "token_url or issuer, one of them", "")
	}
}
