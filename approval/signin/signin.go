// Package signin is what a person is told when a tool of their agent
// wants them to sign in somewhere, and says where such a link may lead.
// Every channel shows the host in front, and no link but that of At.
package signin

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Asked is a sign-in that a tool waits for.
type Asked struct {
	ID        string    `json:"id"`
	Agent     string    `json:"agent"`
	Server    string    `json:"server"`         // the tool server, by its configured name
	Operation string    `json:"operation"`      // that waits; the tool's word
	Host      string    `json:"host"`           // see Place
	Link      string    `json:"link,omitempty"` // see Place; a secret of the person's
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"` // when the call ends that waits for it
}

// Place is where a link leads, as a person may see it.
type Place struct {
	// Host is in ASCII and lower case, so that letters of other
	// alphabets, which browsers draw as others, stand as xn--…; with the
	// port where it names one. The end counts: of more than 253 bytes
	// it is what is left.
	Host string
	Link string // "" where it must not be followed
}

// The bounds of what is shown.
const (
	maxLink = 4096
	maxHost = 253
)

// At reads a link. registered says whether a tool server may lead
// people to an address, which it is given without its fragment. Where
// it may not, there is no link; where the text is no plain https
// address, there is no host either.
func At(link string, registered func(address string) error) Place {
	u, err := url.Parse(link)
	if err != nil || len(link) > maxLink || strings.ContainsFunc(link, unprintable) ||
		u.Scheme != "https" || u.Opaque != "" || u.Hostname() == "" || u.User != nil {
		return Place{}
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != "443" {
		host += ":" + port
	}

	p := Place{Host: host}
	if len(host) > maxHost {
		p.Host = "…" + host[len(host)-maxHost:]
		return p
	}
	address, _, _ := strings.Cut(link, "#")
	if registered(address) == nil {
		p.Link = link
	}

	return p
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"<>\^{|}`+"`", r) }

// Words says what is asked, the host first. It holds words of the tool:
// channels show it as foreign text.
func (a *Asked) Words() string {
	return fmt.Sprintf("%s: the tool server %s of the agent %s asks you to sign in there, for %s.",
		cmp.Or(a.Host, "An address that can't be shown"), a.Server, a.Agent, a.Operation)
}

// Warning stands in the place of the link where there is none; "" where
// there is one.
func (a *Asked) Warning() string {
	if a.Link != "" {
		return ""
	}

	return "This host is none that is registered for the tool server, so its link is not shown. Do not sign in " +
		"there; tell whoever looks after this service."
}

// Page is some of a person's sign-ins, the newest first.
type Page struct {
	SignIns []Asked `json:"sign_ins"`
	More    bool    `json:"more"` // there are others
}

// Join makes one page of several, of at most so many.
func Join(most int, pages ...Page) Page {
	out := Page{SignIns: []Asked{}}
	for _, p := range pages {
		out.SignIns = append(out.SignIns, p.SignIns...)
		out.More = out.More || p.More
	}
	slices.SortStableFunc(out.SignIns, func(a, b Asked) int { return b.Since.Compare(a.Since) })
	if len(out.SignIns) > most {
		out.SignIns, out.More = out.SignIns[:most], true
	}

	return out
}

// Book knows what people are asked to sign in to. It alone says who may
// see what: the person of the directory whom the call is made for.
type Book interface {
	// SignIns lists what is open for a person of a tenant, by the id
	// that the directory gives them.
	SignIns(ctx context.Context, tenant, person string) (Page, error)
	// SignIn is one that is open, and the id of the person who may see
	// it; approval.ErrNotFound where there is none any more.
	SignIn(ctx context.Context, tenant, id string) (asked Asked, person string, err error)
}

// The types of ledger entries about a sign-in. Their fact sign_in is
// its id.
const (
	EventAsked = "rap_sign_in"
	EventOver  = "rap_sign_in_over"
	Fact       = "sign_in"
)
