// Package signin describes the sign-ins that tools request from people, and decides which links may
// be shown. Every channel shows the host first, and no link except the one that At returns.
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
	Server    string    `json:"server"`         // configured name of the tool server
	Operation string    `json:"operation"`      // the operation that waits, in the tool's words
	Host      string    `json:"host"`           // see Place
	Link      string    `json:"link,omitempty"` // see Place; secret, only for the person
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"` // when the waiting call ends
}

// Place is the target of a link, as a person may see it.
type Place struct {
	// Host is in ASCII and lower case, so that letters of other alphabets that look alike appear as
	// xn--…. It includes the port if the link has one. If it is longer than 253 bytes, its end is
	// kept, because the end identifies the owner.
	Host string
	Link string // empty if the link must not be followed
}

// The limits of what is shown, in bytes.
const (
	maxLink = 4096
	maxHost = 253
)

// At parses a link. registered returns an error if the tool server may not send people to the address,
// which is passed without its fragment. In that case, and for a host of more than 253 bytes, Link is
// empty. If the text is not a plain https address, Host is empty too.
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

// Words describes the sign-in, with the host first. It contains text of the tool, so channels must
// show it as untrusted.
func (a *Asked) Words() string {
	return fmt.Sprintf("%s: the tool server %s of the agent %s asks you to sign in there, for %s.",
		cmp.Or(a.Host, "An address that can't be shown"), a.Server, a.Agent, a.Operation)
}

// Warning returns the text that is shown if there is no link, or an empty string if there is one.
func (a *Asked) Warning() string {
	if a.Link != "" {
		return ""
	}

	return "This host is none that is registered for the tool server, so its link is not shown. Do not sign in " +
		"there; tell whoever looks after this service."
}

// Page is a part of a person's sign-ins, newest first.
type Page struct {
	SignIns []Asked `json:"sign_ins"`
	More    bool    `json:"more"` // there are more sign-ins
}

// Join merges pages into one with at most that many sign-ins.
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

// Book stores the sign-ins that people are asked for. It decides who may see a sign-in: the person
// in the directory that the call is made for.
type Book interface {
	// SignIns lists the open sign-ins of a person of a tenant. person is the id in the directory.
	SignIns(ctx context.Context, tenant, person string) (Page, error)
	// SignIn returns an open sign-in and the id of the person who may see it. It returns
	// approval.ErrNotFound if the sign-in is not open any more.
	SignIn(ctx context.Context, tenant, id string) (asked Asked, person string, err error)
}

// The types of ledger entries about a sign-in. Their fact sign_in contains its id.
const (
	EventAsked = "rap_sign_in"
	EventOver  = "rap_sign_in_over"
	Fact       = "sign_in"
)
