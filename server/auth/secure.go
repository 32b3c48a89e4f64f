package auth

import (
	"net/http"
	"net/url"
)

const (
	// Only our own files, nothing inline, no frames, forms to
	// ourselves: a page made from a call's arguments can neither run
	// nor send anything, nor be laid under another page (threats 6 and
	// 13).
	contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	permissionsPolicy = "camera=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), usb=()"
)

// Secure guards everything that browsers see: requests from other
// origins that would change something are refused with 403 (CSRF), and
// answers carry headers that keep pages from running, framing or
// keeping what they should not. A handler may loosen Cache-Control for
// files that are the same for everybody. base is the public address.
func Secure(next http.Handler, base *url.URL) http.Handler {
	csrf := http.NewCrossOriginProtection()
	// Behind a proxy the Host of a request may be another than the
	// origin that the browser knows. An address that can't be an origin
	// is not trusted, no more.
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
