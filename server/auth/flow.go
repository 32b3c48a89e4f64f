package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// flow is a sign-in under way. It travels in a cookie of the browser that began it, so that nobody can finish it elsewhere (sign-in
// CSRF) and nothing is stored for whoever only knocks. Nothing in it is secret from that browser: the PKCE verifier guards against
// others who get hold of the code.
type flow struct {
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Expires  time.Time `json:"expires"`
}

// secret returns 256 random bits.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}

func (a *Auth) putFlow(w http.ResponseWriter, f flow) {
	text, _ := json.Marshal(f) // strings and a time: can't fail
	c := a.flowCookie(base64.RawURLEncoding.EncodeToString(text))
	c.MaxAge = int(LinkAge.Seconds())
	http.SetCookie(w, c)
}

// takeFlow returns the flow of the browser and makes the browser forget it.
func (a *Auth) takeFlow(w http.ResponseWriter, r *http.Request) (flow, bool) {
	gone := a.flowCookie("")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	c, err := r.Cookie(gone.Name)
	if err != nil {
		return flow{}, false
	}
	f, ok := parseFlow(c.Value)
	return f, ok && a.cfg.Now().Before(f.Expires)
}

func parseFlow(text string) (flow, bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return flow{}, false
	}
	var f flow
	err = json.Unmarshal(b, &f)
	return f, err == nil && f.State != "" && f.Nonce != "" && f.Verifier != ""
}

// flowCookie is Lax, not Strict: the provider's redirect comes from another site.
func (a *Auth) flowCookie(value string) *http.Cookie {
	return &http.Cookie{
		Name: a.cookieName("-flow"), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: a.base.Scheme == "https",
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// local returns where to go after the sign-in: a path of our own, "/" for anything else. Browsers drop tabs and line breaks, and take
// a backslash for a slash, so paths with any of those, or with an empty segment, lead nowhere.
func local(next string) string {
	if len(next) > 1000 || !strings.HasPrefix(next, "/") || strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r == '\\' || r > '~' }) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "\\") ||
		strings.Contains(u.Path, "/../") || strings.HasPrefix(u.Path, "/auth/") {
		return "/"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// wantsPage tells a browser that shows a page from a script or a program.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
