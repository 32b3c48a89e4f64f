package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/assent-dev/assent/server/openapi"
)

// ForHosts answers requests for some names only, whatever the port:
// those given, localhost, and addresses. A page of some site that makes
// its own name lead to this machine (DNS rebinding) sends its own name,
// so nothing that such a page asks for is answered. Health is: whoever
// asks for it knows us by any name. So are addresses below the prefixes
// anyName: they authenticate their callers themselves and are known by
// other names.
func ForHosts(next http.Handler, names []string, anyName ...string) http.Handler {
	known := map[string]bool{"localhost": true}
	for _, name := range names {
		known[canonicalHost(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r)
		if known[host] || isAddress(host) || anyHost(r.URL.Path, anyName) {
			next.ServeHTTP(w, r)
			return
		}
		p := fail(
			openapi.CodeWrongHost,
			fmt.Sprintf("this server has no name %.200q: ask for it by one that it has, "+
				"or let whoever runs it add this one to hosts (--host)", host),
		)
		p.Outcome = openapi.Deny // whatever was asked for, nothing runs
		p.write(w)
	})
}

// hostOf is the name that a request asks for, without the port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return canonicalHost(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func canonicalHost(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// isAddress reports whether a host is an IP address: no name leads to
// another machine later.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

func anyHost(path string, prefixes []string) bool {
	below := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	return path == "/healthz" || path == "/readyz" || slices.ContainsFunc(prefixes, below)
}
