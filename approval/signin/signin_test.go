package signin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/signin"
)

// registered accepts the addresses of one host.
func registered(address string) error {
	if strings.HasPrefix(strings.ToLower(address), "https://idp.example/") && !strings.Contains(address, "#") {
		return nil
	}

	return errors.New("another origin")
}

// TestOnlyRegisteredAddressesAreLinks: only a plain https address of a registered host becomes a
// link, and Host is the host that it leads to.
func TestOnlyRegisteredAddressesAreLinks(t *testing.T) {
	const link = "https://idp.example/authorize?state=8d#x"
	for text, want := range map[string]signin.Place{
		link:                           {Host: "idp.example", Link: link},
		"https://IDP.example/":         {Host: "idp.example", Link: "https://IDP.example/"},
		"https://idp.example:443/":     {Host: "idp.example"},
		"https://idp.example:8443/":    {Host: "idp.example:8443"},
		"https://idp.example./a":       {Host: "idp.example"},
		"https://evil.example/":        {Host: "evil.example"},
		"https://idp.example.evil.org": {Host: "idp.example.evil.org"},
		"https://ldP.exampIe/":         {Host: "ldp.exampie"}, // capital letters that look like small ones
		"https://xn--dp-fla.example/":  {Host: "xn--dp-fla.example"},
		"https://[2001:db8::1]/":       {Host: "[2001:db8::1]"},
		"https://idp.example@evil.org": {},
		"https://a:b@idp.example/":     {},
		"https://idp.example\\@evil/":  {},
		"https://іdp.example/":         {}, // a Cyrillic i
		"https://idp.example/\u202egn": {},
		"https://idp\u200b.example/":   {},
		"https://idp.example/\x1b[2J":  {},
		"http://idp.example/":          {},
		"javascript:alert(1)":          {},
		"javascript://idp.example/%0a": {},
		"data:text/html,x":             {},
		"https:idp.example/":           {},
		"//idp.example/":               {},
		"https:///":                    {},
		"":                             {},
		"https://idp.example/" + strings.Repeat("a", 5000): {},
	} {
		if got := signin.At(text, registered); got != want {
			t.Errorf("%.60q: got %+v, want %+v", text, got, want)
		}
	}
}

// TestTheEndOfALongHostIsShown: the end of the host identifies its owner.
func TestTheEndOfALongHostIsShown(t *testing.T) {
	p := signin.At("https://idp.example."+strings.Repeat("a.", 300)+"evil.org/", func(string) error { return nil })
	if !strings.HasPrefix(p.Host, "…") || !strings.HasSuffix(p.Host, ".evil.org") || len(p.Host) > 260 || p.Link != "" {
		t.Errorf("got %+v", p)
	}
}

func TestWordsBeginWithTheHost(t *testing.T) {
	a := signin.Asked{
		Agent:     "desk",
		Server:    "notes",
		Operation: "read",
		Host:      "idp.example",
		Link:      "https://idp.example/",
	}
	if got := a.Words(); got != "idp.example: the tool server notes of the agent desk asks you to sign in there, for read." {
		t.Error(got)
	}
	if got := a.Warning(); got != "" {
		t.Error(got)
	}
	a.Host, a.Link = "", ""
	if got := a.Words() + a.Warning(); !strings.HasPrefix(got, "An address that can't be shown: ") ||
		!strings.Contains(got, "Do not sign in there") {
		t.Error(got)
	}
}

func TestJoinHasTheNewestFirst(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	one := func(id string, after time.Duration) signin.Page {
		return signin.Page{SignIns: []signin.Asked{{ID: id, Since: at.Add(after)}}}
	}
	page := signin.Join(2, one("a", 1), one("b", 3), one("c", 2))
	if len(page.SignIns) != 2 || page.SignIns[0].ID != "b" || page.SignIns[1].ID != "c" || !page.More {
		t.Errorf("got %+v", page)
	}
	if page := signin.Join(2); page.SignIns == nil || page.More {
		t.Errorf("got %+v", page)
	}
}

func FuzzAt(f *testing.F) {
	f.Add("https://idp.example/authorize?state=8d#x")
	f.Add("javascript:alert(1)")
	f.Fuzz(func(t *testing.T, text string) {
		p := signin.At(text, func(string) error { return nil })
		if p.Link != "" && (p.Link != text || !strings.HasPrefix(strings.ToLower(text), "https://") || p.Host == "") {
			t.Errorf("%q is the link %q at %q", text, p.Link, p.Host)
		}
		if strings.ContainsFunc(p.Host, func(r rune) bool { return r != '…' && (r <= ' ' || r > '~') }) {
			t.Errorf("%q has the host %q", text, p.Host)
		}
	})
}
