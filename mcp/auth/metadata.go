package auth

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// wellKnown is the path of the metadata in which a resource names the issuers of its tokens (RFC
// 9728 section 3).
const wellKnown = "/.well-known/oauth-protected-resource"

// metadataURL returns the address of the metadata: the well-known path followed by the path of the
// resource.
func (r *Resource) metadataURL() string {
	u, err := url.Parse(r.cfg.URL)
	if err != nil {
		return ""
	}
	u.Path = wellKnown + u.Path
	u.RawPath, u.RawQuery = "", ""
	return u.String()
}

// IsMetadata reports whether clients look for the metadata of the gateway at a path. own is the
// gateway's own path, if it is served at one.
func (r *Resource) IsMetadata(path, own string) bool {
	u, err := url.Parse(r.metadataURL())
	return path == wellKnown || path == wellKnown+own || err == nil && path == u.Path
}

// ServeHTTP returns the metadata of the gateway as a protected resource. It needs no
// authentication.
func (r *Resource) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "expected GET", http.StatusMethodNotAllowed)
		return
	}
	text, err := jsonmsg.Object(r.describe)
	if err != nil {
		http.Error(w, "the metadata can't be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(text) // the client may be gone
}

func (r *Resource) describe(w *jsonmsg.Writer) {
	var issuers []string
	for _, i := range r.cfg.Issuers {
		issuers = append(issuers, i.URL)
	}
	w.Member("resource", r.cfg.URL)
	w.Name("authorization_servers").Strings(issuers)
	if len(r.cfg.Scopes) > 0 {
		w.Name("scopes_supported").Strings(r.cfg.Scopes)
	}
	w.Name("bearer_methods_supported").Strings([]string{"header"})
	w.Member("resource_name", "assent")
}

// metadataOf returns the addresses of an issuer's metadata in the order in which MCP requires
// clients to try them (RFC 8414 section 3.1, OpenID Connect Discovery section 4.1).
func metadataOf(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	path := strings.TrimRight(u.Path, "/")
	at := func(path string) string {
		one := *u
		one.Path, one.RawPath = path, ""
		return one.String()
	}
	out := []string{
		at("/.well-known/oauth-authorization-server" + path),
		at("/.well-known/openid-configuration" + path),
	}
	if path != "" {
		out = append(out, at(path+"/.well-known/openid-configuration"))
	}
	return out
}
