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

// ForHosts answers requests only for some host names, on any port: the given names,
// localhost, and IP addresses. A web page whose own name resolves to this machine (DNS
// rebinding) sends its own name as the host, so it gets no answer. Health checks are
// answered under any name, because probes may use any. So are paths with the prefixes
// anyName: they authenticate their callers themselves and are reached by other names.
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
		p.Outcome = openapi.Deny // whatever the request was, nothing may run
		p.write(w)
	})
}

// hostOf returns the host of a request without the port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return canonicalHost(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

func canonicalHost(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// isAddress reports whether a host is an IP address, which can't be rebound like a name.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

func anyHost(path string, prefixes []string) bool {
	below := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	return path == "/healthz" || path == "/readyz" || slices.ContainsFunc(prefixes, below)
}
