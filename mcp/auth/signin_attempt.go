package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/assent-dev/assent/internal/filelock"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/keyset"
)

// ErrBusy means that another sign-in to the same server is waiting for its person.
var ErrBusy = errors.New("another sign-in to this server is under way")

// Attempt is a sign-in that waits for a person. It must be closed.
type Attempt struct {
	Link   string   // that the person opens
	Issuer string   // at which the person signs in
	Scopes []string // that are requested; none: the issuer decides

	s       *SignIn
	kept    *signedIn
	names   bool // the issuer's answer must name it
	host    string
	state   string
	proof   string // the verifier of PKCE
	config  oauth2.Config
	server  *http.Server
	unlock  func() error
	used    atomic.Bool
	outcome chan error
}

// callback is the path to which the issuer sends the person back.
const callback = "/callback"

// Begin prepares a sign-in: it finds the issuer, registers a client if none is configured, and
// listens on this machine for the issuer's answer, at a port, or at any if port is 0. scopes are
// requested in addition to those that the server or the configuration name.
func (s *SignIn) Begin(ctx context.Context, scopes []string, port int) (*Attempt, error) {
	unlock, err := s.only()
	if err != nil {
		return nil, err
	}
	a := &Attempt{s: s, unlock: unlock, outcome: make(chan error, 1)}
	if err := a.prepare(ctx, scopes, port); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// only ensures that there is one attempt at a time, so that the person's answer belongs to the link
// that was printed last.
func (s *SignIn) only() (unlock func() error, err error) {
	dir, err := s.folder()
	if err != nil {
		return nil, fmt.Errorf("keep the sign-in: %w", err)
	}
	turn := &SignIn{cfg: SignInConfig{File: filepath.Join(dir, "attempt", "lock")}}
	if _, err := turn.folder(); err != nil {
		return nil, fmt.Errorf("keep the sign-in: %w", err)
	}
	unlock, err = filelock.Try(turn.cfg.File)
	if err == nil && unlock == nil {
		err = ErrBusy
	}
	return unlock, err
}

func (a *Attempt) prepare(ctx context.Context, scopes []string, port int) error {
	p, i, err := a.s.discover(ctx)
	if err != nil {
		return err
	}
	for _, e := range [][2]string{{"authorization", i.authorize}, {"token", i.token}, {"registration", i.register}} {
		if err := a.s.mayReach(e[1]); err != nil && e[1] != "" {
			return fmt.Errorf("the %s endpoint of the issuer %.200q: %w", e[0], i.issuer, err)
		}
	}
	at, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen for the issuer's answer: %w", err)
	}
	a.host = at.Addr().String()
	a.server = &http.Server{
		Handler:        a,
		ReadTimeout:    keyset.Patience,
		WriteTimeout:   time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	go func() { _ = a.server.Serve(at) }() // until Close
	a.kept = &signedIn{
		Version:  fileVersion,
		Server:   a.s.cfg.URL,
		Issuer:   i.issuer,
		Resource: p.resource,
		TokenURL: i.token,
	}
	if err := a.client(ctx, i); err != nil {
		return err
	}

	a.Issuer, a.names = i.issuer, i.names
	a.Scopes = a.s.wanted(p.scopes, scopes)
	if i.offline && !slices.Contains(a.Scopes, offline) {
		a.Scopes = append(a.Scopes, offline)
	}
	return a.link(i)
}

// mayReach returns an error for an address that is neither https nor on this machine, if that is
// allowed, and for private networks.
func (s *SignIn) mayReach(address string) error {
	g := guard.Guard{Allow: s.cfg.Networks}.Naming(s.server)
	if issuer, err := url.Parse(s.cfg.Issuer); err == nil {
		g = g.Naming(issuer)
	}
	_, err := g.CheckURL(address)
	return err
}

// wanted returns the scopes to request: the configured ones or those that the server names, those
// of the last sign-in, and more.
func (s *SignIn) wanted(named, more []string) []string {
	out := slices.Clone(s.cfg.Scopes)
	if len(out) == 0 {
		out = slices.Clone(named)
	}
	if last, err := s.read(); err == nil {
		out = append(out, last.Scopes...)
	}
	out = append(out, more...)
	slices.Sort(out)
	return slices.Compact(out)
}

// client sets the client of the sign-in.
func (a *Attempt) client(ctx context.Context, i issuing) error {
	cfg := a.s.cfg
	redirect := "http://" + a.host + callback
	switch {
	case cfg.ID == "" && i.register != "":
		return a.s.register(ctx, i, redirect, a.kept)
	case cfg.ID == "":
		return fmt.Errorf("the issuer %.200q registers no clients by itself: register one there, for the redirect URI "+
			"%s, and set client_id and redirect_port in sign_in", i.issuer, redirect)
	}
	a.kept.Client, a.kept.Method = cfg.ID, methodNone
	if cfg.Secret != nil {
		a.kept.Method = methodBasic
		if len(i.methods) > 0 && !slices.Contains(i.methods, methodBasic) {
			a.kept.Method = methodPost
		}
	}
	return nil
}

// link builds the address that the person opens.
func (a *Attempt) link(i issuing) error {
	secret, err := a.s.secretOf(a.kept)
	if err != nil {
		return err
	}
	a.config = oauth2.Config{
		ClientID:     a.kept.Client,
		ClientSecret: secret,
		RedirectURL:  "http://" + a.host + callback,
		Scopes:       a.Scopes,
		Endpoint:     oauth2.Endpoint{AuthURL: i.authorize, TokenURL: i.token, AuthStyle: a.kept.style()},
	}
	a.state, a.proof = rand.Text()+rand.Text(), oauth2.GenerateVerifier()
	options := []oauth2.AuthCodeOption{
		oauth2.S256ChallengeOption(a.proof),
		oauth2.SetAuthURLParam("resource", a.kept.Resource),
	}
	if slices.Contains(a.Scopes, offline) { // OpenID Connect Core section 11
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	a.Link = a.config.AuthCodeURL(a.state, options...)
	return nil
}

// Result describes a sign-in.
type Result struct {
	Issuer string
	Scopes []string  // that were granted
	Until  time.Time // when the token ends; zero: unknown
	Renews bool      // it is renewed without the person
}

// Wait waits until the person has signed in and the tokens are stored, or ctx ends. If the issuer's
// answer has arrived by then, Wait returns its outcome. Wait must be called once, before Close.
func (a *Attempt) Wait(ctx context.Context) (Result, error) {
	var err error
	select {
	case err = <-a.outcome:
	case <-ctx.Done():
		if !a.used.Swap(true) {
			return Result{}, fmt.Errorf("nobody signed in: %w", context.Cause(ctx))
		}
		err = <-a.outcome // accept ends within keyset.Patience
	}
	k := a.kept
	return Result{Issuer: k.Issuer, Scopes: k.Scopes, Until: k.Until, Renews: k.Refresh != ""}, err
}

// Close ends the attempt. The link has no effect any more.
func (a *Attempt) Close() error {
	a.used.Store(true)
	if a.server != nil {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		if a.server.Shutdown(ctx) != nil { // the page is still being sent
			_ = a.server.Close()
		}
	}
	return a.unlock()
}

// ServeHTTP receives the issuer's answer from the person's browser. An answer without the exact
// state is refused and does not end the attempt, because any page can make a browser request it.
func (a *Attempt) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case r.URL.Path != callback:
		page(w, http.StatusNotFound, "There is nothing here.")
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		page(w, http.StatusMethodNotAllowed, "Expected GET.")
		return
	case r.Host != a.host || err != nil || len(q["state"]) != 1 ||
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(a.state)) != 1:
		page(w, http.StatusBadRequest, "This is not the answer to the sign-in that waits here.")
		return
	case a.used.Swap(true):
		page(w, http.StatusConflict, "This sign-in has ended already.")
		return
	}

	err = a.accept(r.Context(), q)
	if err != nil {
		page(w, http.StatusBadRequest, "Not signed in: "+err.Error()+".")
	} else {
		page(w, http.StatusOK, "Signed in. You can close this page.")
	}
	a.outcome <- err
}

// accept checks the issuer's answer, exchanges its code for tokens, and stores them.
func (a *Attempt) accept(ctx context.Context, q url.Values) error {
	for _, name := range []string{"code", "error", "iss"} {
		if len(q[name]) > 1 {
			return fmt.Errorf("the issuer's answer has %s twice", name)
		}
	}
	switch issuer := q.Get("iss"); { // RFC 9207 section 2.4: before anything else of the answer counts
	case q.Has("iss") && issuer != a.kept.Issuer:
		return fmt.Errorf("the answer is that of the issuer %.200q, expected %.200q", issuer, a.kept.Issuer)
	case !q.Has("iss") && a.names:
		return fmt.Errorf("the answer doesn't name its issuer, expected %.200q", a.kept.Issuer)
	case q.Has("error"):
		return fmt.Errorf("the issuer answered %.60q", q.Get("error"))
	case q.Get("code") == "":
		return errors.New("the issuer's answer has no code")
	}

	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keyset.Patience)
	defer stop()
	token, err := a.config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, a.s.http), q.Get("code"),
		oauth2.VerifierOption(a.proof), oauth2.SetAuthURLParam("resource", a.kept.Resource),
		oauth2.SetAuthURLParam("client_id", a.kept.Client)) // the official Python server wants it in the form, too
	if err != nil {
		return grantError(err)
	}
	a.kept.Scopes = a.Scopes
	if err := a.kept.take(token, a.s.cfg.Now()); err != nil {
		return err
	}
	unlock, err := filelock.Lock(ctx, a.s.cfg.File)
	if err != nil {
		return fmt.Errorf("keep the sign-in: %w", err)
	}
	return errors.Join(a.s.write(a.kept), unlock())
}

// page answers the person's browser.
func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>assent</title><p>%s</p>\n",
		html.EscapeString(strings.ToValidUTF8(text, "?"))) // the browser may be gone
}
