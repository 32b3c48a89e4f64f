package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/assent-dev/assent/approval"
)

// ErrNoDev means that one-time links exist only in dev mode.
var ErrNoDev = errors.New("one-time links are made in dev mode only")

// CheckDev returns an error for a listener that other machines can reach: in dev mode, a
// reader of the console can sign in as any person.
func CheckDev(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: %w", addr, err)
	}
	if !isLoopback(host) {
		return fmt.Errorf(
			"address %q: dev mode listens on this machine only: expected 127.0.0.1, [::1] or localhost",
			addr,
		)
	}

	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// link is the content of a one-time link.
type link struct {
	Tenant string `json:"tenant"`
	Person string `json:"person"` // canonical
}

// linkKey hashes the secret, so that the contents of a stolen store can't be used to sign
// in.
func linkKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// DevLink makes a link that signs a person in once, within LinkAge. Opening the link does
// not use it, because mail scanners and previews open links (threat 11); the button on its
// page does.
func (a *Auth) DevLink(ctx context.Context, tenant, person string) (string, error) {
	if !a.cfg.Dev {
		return "", ErrNoDev
	}
	p, ok, err := a.cfg.People.Person(ctx, tenant, person)
	if err != nil {
		return "", fmt.Errorf("find the person: %w", err)
	}
	if !ok {
		return "", fmt.Errorf("%q: %w: expected somebody of people.yaml", person, approval.ErrUnknownName)
	}
	text, err := json.Marshal(link{tenant, p.ID})
	if err != nil {
		return "", fmt.Errorf("make the link: %w", err)
	}
	s := secret()
	if err := a.cfg.Values.SetValue(ctx, bucketLink, linkKey(s), text, a.cfg.Now().Add(LinkAge)); err != nil {
		return "", fmt.Errorf("make the link: %w", err)
	}
	return a.base.String() + "/auth/dev/" + s, nil
}

func (a *Auth) devPage(w http.ResponseWriter, r *http.Request) {
	l, err := parseLink(a.cfg.Values.Value(r.Context(), bucketLink, linkKey(r.PathValue("secret")), a.cfg.Now()))
	if a.refuseLink(w, r, err) {
		return
	}
	show(w, http.StatusOK, "dev", devView{
		Person: l.Person,
		Tenant: l.Tenant,
		Action: "/auth/dev/" + r.PathValue("secret"),
		Warn:   !a.cfg.Personal,
	})
}

func (a *Auth) devSignIn(w http.ResponseWriter, r *http.Request) {
	l, err := parseLink(
		a.cfg.Values.TakeValue(r.Context(), bucketLink, linkKey(r.PathValue("secret")), a.cfg.Now()),
	)
	if a.refuseLink(w, r, err) {
		return
	}
	p, ok, err := a.cfg.People.Person(r.Context(), l.Tenant, l.Person)
	if err == nil && !ok {
		err = approval.ErrNotFound
	}
	if err == nil {
		err = a.begin(w, r, signedIn{tenant: l.Tenant, person: p.ID, method: MethodDev})
	}

	if a.refuseLink(w, r, err) {
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func parseLink(text []byte, err error) (link, error) {
	var l link
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l, err
}

// refuseLink answers if a link can't be used. It returns false if it can.
func (a *Auth) refuseLink(w http.ResponseWriter, r *http.Request, err error) bool {
	switch {
	case !a.cfg.Dev:
		http.NotFound(w, r)
	case err == nil:
		return false
	case errors.Is(err, approval.ErrNotFound):
		refuse(
			w,
			r,
			http.StatusGone,
			message{
				Title: "This link is spent",
				Text: "It was used, or it is older than ten minutes. assent makes a new one each time it starts: " +
					"restart it, and open the link that it prints.",
			},
		)
	default:
		a.cfg.Log.ErrorContext(r.Context(), "sign-in by link failed", "error", err)
		refuse(w, r, http.StatusServiceUnavailable, unavailable())
	}

	return true
}
