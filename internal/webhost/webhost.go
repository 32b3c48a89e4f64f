// Package webhost reads the host of an address in the way in which browsers do, and refuses every
// address that programs read differently.
package webhost

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// profile is UTS 46 as browsers use it: non-transitional, without CheckHyphens and STD3.
var profile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.BidiRule(),
	idna.CheckHyphens(false),
	idna.StrictDomainName(false),
	idna.VerifyDNSLength(false),
)

// Limits of names.
const (
	maxName  = 253
	maxLabel = 63
	maxPort  = 65535
)

// Of returns the canonical host of an absolute address of http, https, ws, wss or ftp. It returns
// false if the text is none, or not one that every program reads alike: with user information, an
// escaped host, white space, control characters or backslashes.
func Of(text string) (host string, ok bool) {
	odd := func(r rune) bool { return r == '\\' || unicode.IsSpace(r) || unicode.IsControl(r) }
	if strings.ContainsFunc(text, odd) {
		return "", false
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || !slices.Contains([]string{"http", "https", "ws", "wss", "ftp"}, lower(scheme)) {
		return "", false
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.ContainsAny(rest, "@%") {
		return "", false
	}
	host, port := rest, ""
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, ']') {
		host, port = rest[:at], rest[at+1:]
	}
	if !isPort(port) {
		return "", false
	}
	return Canonical(host)
}

// lower converts ASCII letters only: a scheme has no others.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func isPort(port string) bool {
	if strings.Trim(port, "0123456789") != "" {
		return false
	}
	n, err := strconv.Atoi("0" + strings.TrimLeft(port, "0"))
	return err == nil && n <= maxPort
}

// Canonical returns the form of a host in which hosts are compared: names in lower-case ASCII
// without a dot at the end, IPv6 addresses in brackets in the form of RFC 5952.
func Canonical(host string) (string, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		return "[" + address.String() + "]", ok && err == nil && address.Is6() && address.Zone() == ""
	}
	name, err := profile.ToASCII(host)
	if name = strings.TrimSuffix(name, "."); err != nil || name == "" || len(name) > maxName {
		return "", false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return "", false
		}
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		address, err := netip.ParseAddr(name)
		return name, err == nil && address.Is4() && address.String() == name
	}
	return name, true
}

// isLabel reports whether a label has only characters of names. The end of a label in Punycode
// that encodes no other characters is a hyphen.
func isLabel(label string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	punycode := strings.HasPrefix(label, "xn--") && strings.HasSuffix(label, "-")
	return label != "" && len(label) <= maxLabel && strings.Trim(label, allowed) == "" && !punycode
}
