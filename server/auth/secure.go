package auth

import (
	"net/http"
	"net/url"
)

const (
	// Only our own files, nothing inline, no frames, and forms only to ourselves: a page
	// made from a call's arguments can't run or send anything, or be framed by another page
	// (threats 6 and 13).
	contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	permissionsPolicy = "camera=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), usb=()"
)

// Secure protects everything that browsers see. It refuses requests from other origins that
// would change something with 403 (CSRF), and adds headers that prevent pages from running
// foreign code, being framed or being cached. A handler may relax Cache-Control for files
// that are the same for everybody. base is the public address.
func Secure(next http.Handler, base *url.URL) http.Handler {
	csrf := http.NewCrossOriginProtection()
	// Behind a proxy, the Host of a request may differ from the origin that the browser
	// sees. An address that can't be an origin is just not trusted.
	_ = csrf.AddTrustedOrigin(base.Scheme + "://" + base.Host)
	guarded := csrf.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Permissions-Policy", permissionsPolicy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if base.Scheme == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		guarded.ServeHTTP(w, r)
	})
}
