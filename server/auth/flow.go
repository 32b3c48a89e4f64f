package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/store"
)

// flow is a sign-in in progress. It is in a cookie of the browser that began it, so that it
// can't be finished elsewhere (sign-in CSRF) and unfinished sign-ins need no storage. The
// cookie is encrypted under a key of this server, so only this server can begin a sign-in,
// and the provider is not contacted for any other.
type flow struct {
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Expires  time.Time `json:"expires"`
}

// age returns how long ago the sign-in was begun.
func (f flow) age(now time.Time) time.Duration { return LinkAge - f.Expires.Sub(now) }

// secret returns 256 random bits.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// flowPurpose is the purpose for which the key of flow cookies is derived.
const flowPurpose = "assent sign-in flow v1"

// sealing returns the AEAD for flow cookies. Without a key it makes a random one, which
// only this process has.
func sealing(key []byte) (cipher.AEAD, error) {
	if len(key) == 0 {
		key = []byte(secret())
	}
	derived, err := hkdf.Key(sha256.New, key, nil, flowPurpose, 32)
	if err != nil {
		return nil, fmt.Errorf("the key of sign-ins: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("the key of sign-ins: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (a *Auth) putFlow(w http.ResponseWriter, f flow) {
	text, _ := json.Marshal(f) // strings and a time can't fail
	c := a.flowCookie(base64.RawURLEncoding.EncodeToString(a.seal.Seal(nil, nil, text, []byte(f.Provider))))
	c.MaxAge = int(LinkAge.Seconds())
	http.SetCookie(w, c)
}

// flowOf returns the flow that the browser began with a provider.
func (a *Auth) flowOf(r *http.Request, provider string) (flow, bool) {
	c, err := r.Cookie(a.flowCookie("").Name)
	if err != nil {
		return flow{}, false
	}
	f, ok := a.openFlow(c.Value, provider)
	return f, ok && a.cfg.Now().Before(f.Expires)
}

func (a *Auth) openFlow(text, provider string) (flow, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return flow{}, false
	}
	b, err := a.seal.Open(nil, nil, sealed, []byte(provider))
	if err != nil {
		return flow{}, false
	}
	var f flow
	err = json.Unmarshal(b, &f)
	return f, err == nil && f.State != "" && f.Nonce != "" && f.Verifier != ""
}

// forgetFlow deletes the browser's flow cookie.
func (a *Auth) forgetFlow(w http.ResponseWriter) {
	gone := a.flowCookie("")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
}

// roomFlows is the namespace in which used flows are remembered until they expire.
const roomFlows = "sign-in flows"

// use marks a flow as used. It returns errOtherBrowser if any replica has already done
// that.
func (a *Auth) use(ctx context.Context, f flow) error {
	_, err := a.cfg.Records.PutRecord(ctx, store.Record{
		Namespace: roomFlows,
		Key:       linkKey(f.State),
		Expires:   f.Expires,
	})
	switch {
	case errors.Is(err, approval.ErrVersion):
		return errOtherBrowser
	case err != nil:
		return fmt.Errorf("%w: %w", errStore, err)
	}

	return nil
}

// flowCookie is Lax and not Strict, because the provider's redirect comes from another
// site.
func (a *Auth) flowCookie(value string) *http.Cookie {
	return &http.Cookie{
		Name:     a.cookieName("-flow"),
		Value:    value,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
		Secure:   a.base.Scheme == "https",
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// local returns the path to go to after the sign-in. It returns "/" unless next is a path
// on this server. Browsers drop tabs and line breaks and treat a backslash as a slash, so
// paths with any of those, or with an empty segment, are not accepted.
func local(next string) string {
	if len(next) > 1000 || !strings.HasPrefix(next, "/") || strings.ContainsFunc(next, func(r rune) bool {
		return r <= ' ' || r == '\\' || r > '~'
	}) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") ||
		strings.Contains(u.Path, "//") || strings.Contains(u.Path, "\\") ||
		strings.Contains(u.Path, "/../") ||
		strings.HasPrefix(u.Path, "/auth/") {
		return "/"
	}

	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// wantsPage reports whether the request is from a browser that will show a page, and not
// from a script or a program.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
